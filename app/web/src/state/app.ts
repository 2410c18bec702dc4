/** All that the page remembers while it is open. What a link carries is in `url.ts`. */

import type { Client } from "../client";
import { NOTHING, type Sheet } from "../export/panels";
import { batch, computed, type Read, type Signal, signal, untrack } from "../core/signal";
import { edited } from "../data/fill";
import { type Explanation, type Role, type Space, SPACE } from "../math/layer";
import { flat, plane, type Shape5, unravel } from "../math/shape";
import { FIRST_IMAGE, type ImageSettings } from "../views/image/settings";
import { facing, meeting } from "./channels";
import type { Key } from "./key";
import { Session } from "./session";
import { type Editable, type Spec, start, wantedBy } from "./spec";

export const VIEWS = ["trace", "verify", "checkerboard", "request", "image"] as const;
export type View = (typeof VIEWS)[number];

/** A cell by its place, which outlives a change of sizes better than a flat index. */
export interface Cell {
  readonly role: Role;
  readonly at: readonly number[];
}

/** Which planes are shown: sample, channel of x, channel of y, and depths in three dimensions. */
export interface Pick {
  readonly n: number;
  readonly c: number;
  readonly o: number;
  readonly xd: number;
  readonly yd: number;
  readonly kd: number;
}

export interface Board {
  readonly kernel: number;
  readonly stride: number;
  readonly padding: number;
  readonly weights: "ones" | "random";
}

export const FIRST_PICK: Pick = { n: 0, c: 0, o: 0, xd: 0, yd: 0, kd: 0 };
export const FIRST_CELL: Cell = { role: "dx", at: [0, 0, 0, 2, 4] };
export const FIRST_BOARD: Board = { kernel: 3, stride: 2, padding: 0, weights: "ones" };

/** Whether a cell is the one that is chosen before any other, which goes without saying. */
export const isFirst = (cell: Cell | null): boolean => JSON.stringify(cell) === JSON.stringify(FIRST_CELL);

/** Padding may take away less than the kernel. */
export const mostPadding = (kernel: number): number => Math.floor((kernel - 1) / 2);

const clamp = (value: number, extent: number) => Math.min(Math.max(0, value), extent - 1);

export class App {
  readonly session: Session;
  readonly view = signal<View>("trace");
  readonly pinned = signal<Cell | null>(FIRST_CELL);
  readonly hover = signal<{ role: Role; index: number } | null>(null);
  /** The term of the inspector under the pointer. */
  readonly term = signal(-1);
  readonly wish = signal<Pick>(FIRST_PICK);
  readonly direction = signal<"forward" | "backward">("backward");
  /** As it was asked for; another layer has fewer steps. */
  private readonly wishedStep = signal<number | null>(null);
  readonly playing = signal(false);
  readonly speed = signal(1);
  /** Value that painting sets; null while not painting. */
  readonly brush = signal<number | null>(null);
  readonly board = signal<Board>(FIRST_BOARD);
  readonly image = signal<ImageSettings>(FIRST_IMAGE);
  /** What an exported picture of the current view has. */
  sheet: () => Sheet = () => NOTHING;
  /** The user's own picture; null: the sample. */
  readonly picture = signal<Blob | null>(null);
  /** One line for the user about something that was done or could not be. */
  readonly notice = signal<string | null>(null);
  /** The link to what is shown is too long for the address bar, which has an older one. */
  readonly unlinked = signal(false);
  readonly catalogue = signal<Record<string, unknown> | null>(null);
  /** How often a whole layer has taken the place of another. */
  readonly leaps = signal(0);

  /** @param key the one that the client sends. */
  constructor(readonly client: Client, readonly key: Key) {
    this.session = new Session(client, start("conv"));
    // What is said of one act is over with the next.
    this.session.onWish = () => this.notice.set(null);
  }

  /** Whatever puts a whole layer in the place of another: the browser's way back leads to that one. */
  leap(put: () => void): void {
    batch(() => {
      this.leaps.set(this.leaps.peek() + 1);
      put();
    });
  }

  /** Another key, or none, and once more what waits for one. */
  useKey(next: string | null): void {
    this.key.set(next);
    this.session.tryNow();
  }

  readonly shapes: Read<Partial<Record<Role, Shape5>>> = computed(
    () => this.session.served()?.layer.shapes ?? {},
  );

  /** The wish for planes, held inside the shapes that there are. */
  readonly pick: Read<Pick> = computed(() => {
    const wish = this.wish();
    const { x, y, weight } = this.shapes();
    if (!x || !y) return wish;
    // Only a link and a change of groups leave two that do not meet; the chosen cell stays on show then.
    const { c, o } = meeting(this.session.served()!, clamp(wish.c, x[1]), clamp(wish.o, y[1]), this.pinned());
    return {
      n: clamp(wish.n, x[0]), c, o, xd: clamp(wish.xd, x[2]), yd: clamp(wish.yd, y[2]),
      kd: clamp(wish.kd, weight?.[2] ?? 1),
    };
  });

  /** The cell that the sweep has come to. */
  readonly swept: Read<{ role: Role; index: number } | null> = computed(() => {
    const step = this.step();
    const served = this.session.served();
    if (step === null || step === 0 || !served) return null;
    const { sweep } = served.layer;
    const role: Role = this.direction() === "forward" ? sweep : sweep === "y" ? "dy" : "dx";
    const shape = served.layer.shapes[role]!;
    const area = plane(shape);
    const { n, c, o } = this.pick();
    return { role, index: (n * shape[1] + (sweep === "y" ? o : c)) * area + Math.min(step, area) - 1 };
  });

  /** Steps that a whole sweep has. */
  readonly steps: Read<number> = computed(() => {
    const served = this.session.served();
    return served ? plane(served.layer.shapes[served.layer.sweep]!) : 1;
  });

  /** How many steps of the sweep have been taken, held inside those that there are; null: no sweep, all is shown. */
  readonly step: Signal<number | null> = Object.assign(computed(() => {
    const step = this.wishedStep();
    return step === null || !this.session.served() ? step : Math.min(step, this.steps());
  }), {
    set: this.wishedStep.set,
    update: (change: (step: number | null) => number | null) => this.wishedStep.set(change(this.step.peek())),
    peek: () => untrack(this.step),
  });

  /** The pinned cell, held inside its tensor, which may be smaller than the one it was chosen in; null where there is no such tensor. */
  readonly held: Read<Cell | null> = computed(() => {
    const pinned = this.pinned();
    const shape = pinned && this.shapes()[pinned.role];
    if (!pinned || !shape) return null;
    const inside = pinned.at.every((place, axis) => place < shape[axis]);
    return inside ? pinned : { ...pinned, at: pinned.at.map((place, axis) => clamp(place, shape[axis])) };
  });

  /** The cell that everything is about: under the pointer, else pinned. */
  readonly active: Read<{ role: Role; index: number } | null> = computed(() => {
    const hover = this.hover();
    const shapes = this.shapes();
    if (hover && shapes[hover.role]) return hover;
    const swept = this.swept();
    if (swept) return swept;
    const held = this.held();
    return held && { role: held.role, index: flat(shapes[held.role]!, held.at) };
  });

  readonly explanation: Read<Explanation | null> = computed(() => {
    const cell = this.active();
    const served = this.session.served();
    return cell && served ? served.layer.explain(cell.role, cell.index) : null;
  });

  pin(role: Role, index: number): void {
    const shape = this.shapes()[role];
    if (!shape) return;
    batch(() => {
      this.endSweep();
      this.pinned.set({ role, at: unravel(shape, index) });
      this.hover.set(null);
      this.term.set(-1);
    });
  }

  /** The chosen cell, where it is one of these spaces, goes to another sample (axis 0) or channel (axis 1). */
  carry(axis: 0 | 1, to: number, spaces: readonly Space[] = ["x", "y"]): void {
    const pinned = this.pinned.peek();
    if (pinned && spaces.includes(SPACE[pinned.role])) {
      this.pinned.set({ ...pinned, at: pinned.at.map((at, i) => (i === axis ? to : at)) });
    }
  }

  /** Shows a channel of X (`c`) or of Y (`o`), and one that it meets beside it. */
  showChannel(side: "c" | "o", channel: number): void {
    const served = this.session.served.peek();
    if (!served) return;
    const other = side === "c" ? "o" : "c";
    const beside = facing(served, side, channel, this.pick()[other]);
    this.wish.update((wish) => ({ ...wish, [side]: channel, [other]: beside }));
  }

  showSample(n: number): void {
    batch(() => {
      this.wish.update((wish) => ({ ...wish, n }));
      this.carry(0, n);
    });
  }

  unpin(): void {
    this.pinned.set(null);
  }

  /** Pins a cell and turns the pages so that it can be seen. */
  reveal(role: Role, index: number): void {
    const shape = this.shapes()[role];
    if (!shape) return;
    const [a, b, d] = unravel(shape, index);
    const served = this.session.served()!;
    const { c, o } = this.pick();
    const change: Partial<Record<keyof Pick, number>> = {};
    if (SPACE[role] === "x") Object.assign(change, { n: a, c: b, o: facing(served, "c", b, o), xd: d });
    else if (SPACE[role] === "y") Object.assign(change, { n: a, c: facing(served, "o", b, c), o: b, yd: d });
    else if (SPACE[role] === "weight") {
      const side = served.spec.op === "conv" ? "o" : "c";
      Object.assign(change, { [side]: a, [side === "o" ? "c" : "o"]: facing(served, side, a, b), kd: d });
    }
    batch(() => {
      this.wish.update((wish) => ({ ...wish, ...change }));
      this.pin(role, index);
    });
  }

  /** Sets a cell of a tensor that is the user's, where it takes the value. */
  edit(role: Editable, index: number, value: number): void {
    const { test, words } = wantedBy(role, this.shapes().y!);
    if (this.session.replaced) this.notice.set("Nothing was changed: the layer has changed, and its grids have yet to follow.");
    else if (test(value)) this.editAll(role, new Map([[index, value]]));
    else this.notice.set(`Nothing was changed. The cell: expected ${words}, got ${value}.`);
  }

  /** Sets several of them, where they are in the layer on show, as one change. */
  editAll(role: Editable, values: ReadonlyMap<number, number>): void {
    const shape = this.session.served.peek()!.shapes[role];
    this.session.change((spec) => ({
      ...spec,
      fills: { ...spec.fills, [role]: edited(spec.fills[role], values, shape) },
    }), role);
  }

  change(change: (spec: Spec) => Spec, field: string): void {
    this.session.change(change, field);
  }

  endSweep(): void {
    batch(() => {
      this.playing.set(false);
      this.step.set(null);
    });
  }
}
