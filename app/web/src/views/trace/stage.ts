/** The linked grids: X, W, Y above dX, dW, dY. */

import { type Child, h } from "../../core/dom";
import { computed, memo, onCleanup, signal } from "../../core/signal";
import { menu, stepper } from "../../form/widgets";
import type { Role } from "../../math/layer";
import type { App } from "../../state/app";
import { isConvolution } from "../../state/spec";
import { arrows } from "./arrows";
import { Planes } from "./planes";
import { type Arrangement, type Sizes, sizes } from "./sizing";
import { tensorCard } from "./tensor";
import { formulas } from "./words";

/** Window widths below this have each tensor beside its gradient. */
const NARROW = 620;

export interface Stage {
  readonly element: HTMLElement;
  readonly planes: Planes;
  /** Cell size of a tensor, as it is on the page. */
  readonly cell: (role: Role) => number;
}

export function stage(app: App): Stage {
  const planes = new Planes(app);
  const width = signal(800);
  const height = signal(innerHeight);
  const roles = memo(() => {
    const served = app.session.served();
    const key = served ? [served.spec.op, String("bias" in served.shapes)].join() : "";
    return key;
  });
  const line = memo(() => app.session.served()?.spec.dims === 1);
  const arrangement = memo((): Arrangement => (line() ? "line" : width() < NARROW ? "paired" : "rows"));
  const middleRole = (): Role | null => {
    const { shapes } = app.session.served()!;
    return shapes.weight ? "weight" : shapes.indices ? "indices" : null;
  };
  const sized = computed(() => {
    const role = middleRole();
    const bias = "bias" in app.session.served()!.shapes;
    const needs = {
      x: planes.plane("x")(), y: planes.plane("y")(), middle: role && planes.plane(role)(), bias: bias ? planes.plane("bias")() : null,
    };
    return sizes(needs, width(), height() - 412, arrangement());
  });
  const cell = (role: Role) =>
    role === "weight" || role === "dweight" || role === "indices" ? sized().middle
      : role === "bias" || role === "dbias" ? sized().bias : sized().cell;
  const element = h("div", { class: "stage", "data-layout": arrangement }, () => {
    if (roles() === "") return h("p", { class: "hint" }, "…");
    return content(app, planes, cell, arrangement, () => [sized(), arrangement(), roles()], () => sized().columns);
  });
  const observer = new ResizeObserver(([entry]) => {
    width.set(Math.floor(entry.contentRect.width));
    height.set(innerHeight);
  });
  observer.observe(element);
  onCleanup(() => observer.disconnect());
  return { element, planes, cell };
}

function content(
  app: App, planes: Planes, cell: (role: Role) => number, arrangement: () => Arrangement, layout: () => unknown, room: () => Sizes["columns"],
): Child {
  const served = app.session.served.peek()!;
  const canvases = new Map<Role, HTMLCanvasElement>();
  const card = (role: Role | null): Child => {
    if (!role) return h("div", { class: "tensor empty" });
    const { element, grid } = tensorCard(app, planes, role, () => cell(role), () => indentOf(planes, role, cell(role), arrangement()));
    canvases.set(role, grid.canvas);
    return element;
  };
  const { op } = served.spec;
  const bias = "bias" in served.shapes;
  const middle: readonly [Role | null, Role | null] = isConvolution(op) ? ["weight", "dweight"] : op === "max_unpool" ? ["indices", null] : [null, null];
  // Bias, activation and flip change nothing else of what is made here.
  const formula = (way: "forward" | "backward") => formulas(app.session.served()!.spec)[way];
  const line = (way: "forward" | "backward", name: string) =>
    h("h2", { class: "way", "data-way": way }, h("span", null, name), h("span", { class: "formula" }, () => formula(way)),
      way === "forward" && h("span", { class: "lede" }, "Choose any number to see the terms that made it."));
  const pair = (first: Role, second: Role): Child => h("div", { class: "stack" }, card(first), bias ? card(second) : null);
  const columns = middle[0] ? "three" : "two";
  // Heads and small pictures may have what is left, and never what the grids beside them need.
  const least = (at: number) => () => (room() ? `${room()![at]}px` : "0px");
  const grid = h("div", { class: `tensors ${columns}`, style: { "--x": least(0), "--middle": least(1), "--y": least(2) } },
    line("forward", "Forward"),
    card("x"), middle[0] === "weight" ? pair("weight", "bias") : middle[0] && card(middle[0]), card("y"),
    line("backward", "Backward"),
    card("dx"), middle[1] ? pair("dweight", "dbias") : middle[0] && card(null), card("dy"));
  const overlay = arrows(app, planes, canvases, cell, layout);
  return [samplePicker(app), h("div", { class: "tensors-frame" }, grid, overlay)];
}

/** In one dimension x and y stand below each other: the one without padding begins where the other's first cell is. */
function indentOf(planes: Planes, role: Role, cell: number, arrangement: Arrangement): number {
  if (arrangement !== "line" || !["x", "dx", "y", "dy"].includes(role)) return 0;
  const low = (of: Role) => planes.plane(of)().ring.left;
  return (Math.max(low("x"), low("y")) - low(role)) * cell;
}

function samplePicker(app: App): Child {
  const count = memo(() => app.shapes().x?.[0] ?? 1);
  return () => {
    const samples = count();
    return samples > 1 && h("div", { class: "samples" }, "Sample",
      stepper({
        label: "Sample", value: () => app.pick().n, minimum: 0, maximum: samples - 1,
        onChange: (n) => app.showSample(n),
      }), ` of ${samples}`);
  };
}

/** What the marks in the grids mean. */
export function key(app: App): HTMLElement {
  const unread = memo(() => app.session.served()?.read.some((seen) => seen === 0) ?? false);
  const wins = memo(() => (app.session.served()?.layer.winners(0) ?? null) !== null);
  return h("div", { class: "key" },
    h("span", { class: "key-item" }, h("span", { class: "swatch chosen" }), "chosen"),
    h("span", { class: "key-item" }, h("span", { class: "swatch lit" }), "has to do with it"),
    () => unread() && h("span", { class: "key-item" }, h("span", { class: "swatch unread" }), "read by no window"),
    () => wins() && h("span", { class: "key-item" }, h("span", { class: "swatch wins" }), "one dot per window whose maximum it is"),
    menu("Keys", "Keys", () => shortcuts()));
}

function shortcuts(): Child {
  const clip = /^(Mac|iP)/.test(navigator.platform) ? "⌘" : "Ctrl";
  const list: [string, string][] = [
    ["arrows", "move the chosen cell"], ["Home End", "row’s ends; with Ctrl the plane’s"], ["0–9 . −", "type a value into X, W or dY"],
    ["Enter", "edit the cell, or paint it"], [`${clip} C`, "copy the plane, for a spreadsheet"], [`${clip} V`, "paste rows of numbers from the cell on"], ["Esc", "choose no cell"], ["F B", "forward, backward"],
    ["Space", "play, pause"], ["[ ]", "channel before, after"], [", .", "one step of the sweep"], ["?", "these keys"],
  ];
  return h("dl", { class: "keys" }, list.map(([keys, does]) => [h("dt", null, keys), h("dd", null, does)]));
}
