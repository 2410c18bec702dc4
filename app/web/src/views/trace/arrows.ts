/** Arrows between grids: where a pool takes its value from, and where the gradient goes back to. */

import { svg } from "../../core/dom";
import { effect, type Read } from "../../core/signal";
import { arrowBetween, type Spot } from "../../grid/arrow";
import { corner } from "../../grid/draw";
import type { Explanation, Role } from "../../math/layer";
import { isConvolution } from "../../state/spec";
import type { App } from "../../state/app";
import { type Planes, sliceOf } from "./planes";

const MOST = 200;

export interface Arrow {
  readonly from: { readonly role: Role; readonly index: number };
  readonly to: { readonly role: Role; readonly index: number };
}

/** Values flow from X to Y, gradients from dY to dX. */
export function arrowsOf(of: Explanation): Arrow[] {
  const found: Arrow[] = [];
  for (const term of of.terms) {
    if (term.idle) continue;
    const other = term.into ?? term.parts[0];
    if (other.role === "factor") continue;
    const self = { role: of.role, index: of.index };
    const far = { role: other.role, index: other.index };
    const outward = of.role === "x" || of.role === "dy";
    found.push(outward ? { from: self, to: far } : { from: far, to: self });
  }
  return found.slice(0, MOST);
}

/** Where a cell is on the plane that is shown; −1 where that is another. */
export function placeOn(app: App, role: Role, index: number): number {
  const { base, rows, cols } = sliceOf(app, role);
  return index >= base && index < base + rows * cols ? index - base : -1;
}

/** A convolution has too many of them. */
export function arrowsShown(app: App): readonly Arrow[] {
  const explained = app.explanation();
  const served = app.session.served();
  return explained && served && !isConvolution(served.spec.op) ? arrowsOf(explained) : [];
}

export function arrows(
  app: App, planes: Planes, canvases: ReadonlyMap<Role, HTMLCanvasElement>, cell: (role: Role) => number, layout: Read<unknown>,
): SVGSVGElement {
  const lines = svg("g", {});
  const overlay = svg("svg", { class: "arrows", "aria-hidden": "true" }, lines);
  const spot = ({ role, index }: Arrow["from"]): Spot | null => {
    const canvas = canvases.get(role);
    const at = placeOn(app, role, index);
    if (!canvas || at < 0) return null;
    const side = cell(role);
    const [x, y] = corner(planes.plane(role)(), side, at);
    const box = canvas.getBoundingClientRect();
    const origin = overlay.getBoundingClientRect();
    const [left, top] = [box.left - origin.left, box.top - origin.top];
    return { grid: { left, top, right: left + box.width, bottom: top + box.height }, x: left + x, y: top + y, side };
  };
  const path = ({ from, to }: Arrow): SVGPathElement | null => {
    const [a, b] = [spot(from), spot(to)];
    return a && b && svg("path", { d: arrowBetween(a, b) });
  };
  effect(() => {
    layout();
    const drawn = arrowsShown(app);
    requestAnimationFrame(() => lines.replaceChildren(...drawn.flatMap((arrow) => path(arrow) ?? [])));
  });
  return overlay;
}
