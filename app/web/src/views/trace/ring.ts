/** The padding around a plane: how wide it is, and what stands in it. */

import { NO_RING, type Ring } from "../../grid/draw";
import { type PaddingMode, source } from "../../math/axis";
import { type Role, SPACE } from "../../math/layer";
import type { Served } from "../../state/served";

/** Padding wider than this is cut in the picture. */
const WIDEST_RING = 8;

/** The side that windows slide over, and so the one with padding around it. */
export function denseSpace(served: Served): "x" | "y" | null {
  if (!served.layer.axes || served.spec.op.startsWith("adaptive")) return null;
  return served.spec.op === "conv_transpose" ? "y" : "x";
}

export function ringOf(served: Served, role: Role): Ring {
  if (SPACE[role] !== denseSpace(served)) return NO_RING;
  const pads = served.padding.map((pair) => pair.map((p) => Math.min(p, WIDEST_RING)));
  const [left, right] = pads[pads.length - 1] ?? [0, 0];
  const [top, bottom] = pads.length > 1 ? pads[pads.length - 2] : [0, 0];
  return { top, bottom, left, right };
}

/** For padding that copies inputs: which of a plane's cells stands at a place around it. Null where padding is zeros. */
export function copiesOf(served: Served, role: Role, rows: number, cols: number): ((row: number, col: number) => number) | null {
  const mode = (served.spec.config.padding_mode ?? "zeros") as PaddingMode;
  if (role !== "x" || mode === "zeros") return null;
  return (row, col) => source(row, rows, mode) * cols + source(col, cols, mode);
}
