/** The state as a link. Everything read from one is checked; what is not valid is left out and named. */

import type { Fill } from "../data/fill";
import { isPacked, packFill, readFill, unpackFill, writeFill } from "../data/text";
import type { Role } from "../math/layer";
import { FIRST_IMAGE, type ImageSettings, readImage, writeImage } from "../views/image/settings";
import { type App, type Board, type Cell, FIRST_BOARD, FIRST_CELL, FIRST_PICK, isFirst, mostPadding, type Pick, type View, VIEWS } from "./app";
import { onShow } from "./places";
import { CAPS, type Config, type Editable, OPERATIONS, type Spec, start } from "./spec";

const VERSION = "1";
/** Longer links are cut by some of the programs they are sent through; and not taken by every common browser. */
export const LONG = 8_000;
export const LONGEST = 64_000;
const EDITABLE: readonly Editable[] = ["x", "weight", "bias", "indices", "dy"];
const ROLES: readonly Role[] = ["x", "weight", "bias", "indices", "y", "dy", "dx", "dweight", "dbias"];
const DIGITS = /^\d{1,4}$/;

export interface Linked {
  readonly view: View;
  readonly spec: Spec;
  readonly pinned: Cell | null;
  readonly pick: Pick;
  readonly direction: "forward" | "backward";
  readonly step: number | null;
  readonly board: Board;
  readonly image: ImageSettings;
  /** The picture on show is the sender's own, which no link has. */
  readonly own: boolean;
  /** What in the link was not valid. */
  readonly ignored: readonly string[];
}

/** @param spec the layer: as it is asked for, which may not have been answered yet. */
export function linkedOf(app: App, spec = app.session.draft()): Omit<Linked, "ignored"> {
  return {
    view: app.view(), spec: onShow(spec, app.session.outputOf(spec)), pinned: shownCell(app),
    pick: app.wish(), direction: app.direction(), step: app.playing() ? null : app.step(), board: app.board(), image: app.image(),
    own: app.view() === "image" && app.picture() !== null,
  };
}

/** The chosen cell as it is on show: a link to one that its layer does not have would be told as not valid. The usual one goes without saying. */
function shownCell(app: App): Cell | null {
  const pinned = app.pinned();
  if (app.session.stale() || !app.session.served() || isFirst(pinned)) return pinned;
  return app.held();
}

const list = (values: readonly number[]) => values.join(".");

/** As `writeHash`, with tensors of many numbers packed. */
export async function packHash(linked: Omit<Linked, "ignored">): Promise<string> {
  const fills = EDITABLE.map((name) => linked.spec.fills[name]);
  const texts = await Promise.all(fills.map(packFill));
  return writeHash(linked, (fill) => texts[fills.indexOf(fill)] ?? writeFill(fill));
}

/** Only what differs from the start is written, so that a plain view has a short link. */
export function writeHash(linked: Omit<Linked, "ignored">, write: (fill: Fill) => string = writeFill): string {
  const { spec, pick, board } = linked;
  const first = start(spec.op, spec.dims);
  const out = new URLSearchParams({ v: VERSION, view: linked.view, op: spec.op });
  const put = (key: string, value: string, otherwise: string) => {
    if (value !== otherwise) out.set(key, value);
  };
  put("dims", String(spec.dims), "2");
  put("n", String(spec.samples), String(first.samples));
  put("c", String(spec.channels), String(first.channels));
  put("o", String(spec.outputs), String(first.outputs));
  put("size", list(spec.size), list(first.size));
  put("kernel", list(spec.kernel), list(first.kernel));
  put("b", spec.bias ? "1" : "0", "0");
  put("config", JSON.stringify(spec.config), JSON.stringify(first.config));
  for (const name of EDITABLE) put(name, write(spec.fills[name]), writeFill(first.fills[name]));
  const cell = (one: Cell | null) => (one ? `${one.role}.${list(one.at)}` : "none");
  put("cell", cell(linked.pinned), cell(FIRST_CELL));
  put("pick", list(Object.values(pick)), list(Object.values(FIRST_PICK)));
  put("way", linked.direction, "backward");
  if (linked.step !== null) out.set("step", String(linked.step));
  put("board", Object.values(board).join("."), Object.values(FIRST_BOARD).join("."));
  put("image", writeImage(linked.image), writeImage(FIRST_IMAGE));
  put("own", linked.own ? "1" : "0", "0");
  // What may stand in a link as it is: edits have many of them.
  return `#${out}`.replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%7E", "~");
}

/** What is packed in a link, by its text. */
export type Unpacked = ReadonlyMap<string, Fill>;

export async function unpack(hash: string): Promise<Unpacked> {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const texts = EDITABLE.flatMap((name) => given.get(name) ?? []).filter(isPacked);
  const fills = await Promise.all(texts.map(unpackFill));
  return new Map(texts.flatMap((text, at) => (fills[at] ? [[text, fills[at]]] : [])));
}

class Reader {
  readonly ignored: string[] = [];
  constructor(private readonly given: URLSearchParams) {}

  /** The value of `key` read by `read`, which gives undefined for what is not valid. */
  take<T>(key: string, otherwise: T, read: (text: string) => T | undefined): T {
    const text = this.given.get(key);
    if (text === null) return otherwise;
    const value = read(text);
    if (value !== undefined) return value;
    this.ignored.push(key);
    return otherwise;
  }

  whole(key: string, otherwise: number, low: number, high: number): number {
    return this.take(key, otherwise, (text) => {
      const value = Number(text);
      return DIGITS.test(text) && value >= low && value <= high ? value : undefined;
    });
  }

  list(key: string, otherwise: readonly number[], length: number, low: number, high: number): readonly number[] {
    return this.take<readonly number[]>(key, otherwise, (text) => numbers(text, length, low, high));
  }
}

function numbers(text: string, length: number, low: number, high: number): number[] | undefined {
  const parts = text.split(".");
  const good = parts.length === length && parts.every((part) => DIGITS.test(part) && +part >= low && +part <= high);
  return good ? parts.map(Number) : undefined;
}

function oneOf<T extends string>(options: readonly T[]): (text: string) => T | undefined {
  return (text) => options.find((option) => option === text);
}

/** A flat map of plain values; whether they make sense is for the service's plan to say. */
function readConfig(text: string): Config | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value) || text.length > 1000) return undefined;
    return Object.fromEntries(Object.entries(value).filter(([key]) => /^[a-z][a-z_]{0,39}$/.test(key)));
  } catch {
    return undefined;
  }
}

function readCell(text: string): Cell | null | undefined {
  if (text === "none") return null;
  const [role, ...rest] = text.split(".");
  const at = numbers(rest.join("."), 5, 0, 9999);
  return at && ROLES.includes(role as Role) ? { role: role as Role, at } : undefined;
}

function readBoard(text: string): Board | undefined {
  const [kernel, stride, padding, weights] = text.split(".");
  const values = numbers([kernel, stride, padding].join("."), 3, 0, 9);
  if (!values || values[0] < 1 || values[1] < 1 || (weights !== "ones" && weights !== "random")) return undefined;
  const board: Board = { kernel: values[0], stride: values[1], padding: values[2], weights };
  return board.padding <= mostPadding(board.kernel) ? board : undefined;
}

/** @param unpacked what `unpack` found in the link; without it packed tensors are not valid. */
export function readHash(hash: string, unpacked: Unpacked = new Map()): Linked {
  const reader = new Reader(new URLSearchParams(hash.replace(/^#/, "")));
  reader.take("v", VERSION, oneOf([VERSION]));
  const op = reader.take("op", "conv", oneOf(Object.keys(OPERATIONS)));
  const dims = reader.whole("dims", 2, 1, 3);
  const first = start(op, dims);
  const spec: Spec = {
    ...first,
    samples: reader.whole("n", first.samples, 1, CAPS.samples),
    channels: reader.whole("c", first.channels, 1, CAPS.channels),
    outputs: reader.whole("o", first.outputs, 1, CAPS.channels),
    size: reader.list("size", first.size, dims, 1, CAPS.size[dims]),
    kernel: reader.list("kernel", first.kernel, dims, 1, CAPS.kernel),
    bias: reader.whole("b", 0, 0, 1) === 1,
    config: reader.take("config", first.config, readConfig),
    fills: Object.fromEntries(EDITABLE.map((name) => [
      name, reader.take(name, first.fills[name], (text) => unpacked.get(text) ?? readFill(text) ?? undefined),
    ])) as Spec["fills"],
  };
  const [n, c, o, xd, yd, kd] = reader.list("pick", Object.values(FIRST_PICK), 6, 0, 999);
  return {
    spec,
    view: reader.take<View>("view", "trace", oneOf(VIEWS)),
    pinned: reader.take("cell", FIRST_CELL, readCell),
    pick: { n, c, o, xd, yd, kd },
    direction: reader.take("way", "backward" as const, oneOf(["forward", "backward"] as const)),
    step: reader.take<number | null>("step", null, (text) => (DIGITS.test(text) ? Number(text) : undefined)),
    board: reader.take("board", FIRST_BOARD, readBoard),
    image: reader.take("image", FIRST_IMAGE, readImage),
    own: reader.whole("own", 0, 0, 1) === 1,
    ignored: reader.ignored,
  };
}
