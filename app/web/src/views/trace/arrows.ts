/** Arrows between grids: where a pool takes its value from, and where the gradient goes back to. */

import { svg } from "../../core/dom";
import { effect, type Read } from "../../core/signal";
import { corner } from "../../grid/draw";
import type { Explanation, Role } from "../../math/layer";
import { isConvolution } from "../../state/spec";
import type { App } from "../../state/app";
import { type Planes, sliceOf } from "./planes";

const MOST = 200;
/** Arrows to the side leave a cell above its number, and so pass above those of its neighbours. */
const OVER = 0.34;

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
    if (other.role === "factor" || other.role === "dz") continue;
    const self = { role: of.role, index: of.index };
    const far = { role: other.role, index: other.index };
    const outward = of.role === "x" || of.role === "dy";
    found.push(outward ? { from: self, to: far } : { from: far, to: self });
  }
  return found.slice(0, MOST);
}

export function arrows(
  app: App, planes: Planes, canvases: ReadonlyMap<Role, HTMLCanvasElement>, cell: (role: Role) => number, layout: Read<unknown>,
): SVGSVGElement {
  const head = svg("marker", {
    id: "arrow-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto",
  }, svg("path", { d: "M0 0.5 8 4 0 7.5 2 4Z" }));
  const lines = svg("g", {});
  const overlay = svg("svg", { class: "arrows", "aria-hidden": "true" }, svg("defs", {}, head), lines);
  /** A point of a cell: its middle, moved by parts of its size. */
  const point = (role: Role, index: number, right: number, down: number): [number, number] | null => {
    const canvas = canvases.get(role);
    const { base, rows, cols } = sliceOf(app, role);
    if (!canvas || index < base || index >= base + rows * cols) return null;
    const size = cell(role);
    const [x, y] = corner(planes.plane(role)(), size, index - base);
    const box = canvas.getBoundingClientRect();
    const origin = overlay.getBoundingClientRect();
    return [box.left - origin.left + x + (0.5 + right) * size, box.top - origin.top + y + (0.5 + down) * size];
  };
  const path = ({ from, to }: Arrow): SVGPathElement | null => {
    const [here, there] = [canvases.get(from.role), canvases.get(to.role)].map((canvas) => canvas?.getBoundingClientRect());
    if (!here || !there) return null;
    const below = there.top >= here.bottom ? 1 : there.bottom <= here.top ? -1 : 0;
    const right = from.role === "x" ? 1 : -1;
    const a = below ? point(from.role, from.index, 0, 0.25 * below) : point(from.role, from.index, 0.25 * right, -OVER);
    const b = below ? point(to.role, to.index, 0, -0.45 * below) : point(to.role, to.index, -0.45 * right, 0);
    if (!a || !b) return null;
    const [across, down] = below ? [0, (b[1] - a[1]) * 0.45] : [(b[0] - a[0]) * 0.45, 0];
    return svg("path", {
      d: `M${a[0]} ${a[1]}C${a[0] + across} ${a[1] + down} ${b[0] - across} ${b[1] - down} ${b[0]} ${b[1]}`, "marker-end": "url(#arrow-head)",
    });
  };
  effect(() => {
    layout();
    const explained = app.explanation();
    const served = app.session.served();
    const drawn = explained && served && !isConvolution(served.spec.op) ? arrowsOf(explained) : [];
    requestAnimationFrame(() => lines.replaceChildren(...drawn.flatMap((arrow) => path(arrow) ?? [])));
  });
  return overlay;
}
