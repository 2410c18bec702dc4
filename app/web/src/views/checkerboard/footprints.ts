/** The reason in one dimension: every window as a bar over the outputs it writes to, counts below. */

import { svg } from "../../core/dom";
import { coverage } from "./coverage";

const WINDOWS = 5;
const UNIT = 30;
const BAR = 9;

export function footprints(kernel: number, stride: number): SVGSVGElement {
  const counts = coverage(kernel, stride, WINDOWS);
  const most = Math.max(...counts);
  const width = counts.length * UNIT;
  const rows = WINDOWS * (BAR + 4);
  const tall = 22;
  const scale = 34 / most;
  const base = rows + tall + 10 + most * scale;
  const bars = Array.from({ length: WINDOWS }, (_, window) => svg("g", { class: "footprint" },
    svg("rect", { x: window * stride * UNIT + 2, y: window * (BAR + 4), width: kernel * UNIT - 4, height: BAR, rx: 2 }),
    Array.from({ length: kernel - 1 }, (_, tap) => svg("line", {
      x1: (window * stride + tap + 1) * UNIT, x2: (window * stride + tap + 1) * UNIT, y1: window * (BAR + 4), y2: window * (BAR + 4) + BAR,
    }))));
  const columns = counts.map((count, at) => svg("g", { class: "column", "data-count": count },
    svg("rect", { x: at * UNIT + 2, y: base - count * scale, width: UNIT - 4, height: Math.max(1, count * scale) }),
    svg("text", { x: at * UNIT + UNIT / 2, y: base + 15 }, String(count))));
  return svg("svg", {
    class: "footprints", viewBox: `0 0 ${width} ${base + 20}`, role: "img",
    "aria-label": `${WINDOWS} windows of ${kernel}, ${stride} apart. Windows over each output: ${counts.join(", ")}.`,
    style: { "max-width": `${width}px` },
  }, bars, columns);
}
