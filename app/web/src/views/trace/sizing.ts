/** How large cells can be so that the grids of a row stand side by side. */

import type { Plane } from "../../grid/draw";

export interface Needs {
  readonly x: Plane;
  readonly y: Plane;
  readonly middle: Plane | null;
  readonly bias: Plane | null;
}

const LARGEST = 46;
/** From this size on numbers can be read well. */
export const READABLE_CELL = 28;
const SMALLEST_WEIGHT = 24;
/** Of weights whose column has room for it, beside cells too small for numbers: sums over many outputs have five digits. */
const LARGE_WEIGHT = 40;
/** Of weights beside their gradients, and of biases: these are larger than others' cells nowhere. */
const LARGEST_BESIDE = 30;
/** A window can be narrower for a moment than what surrounds the grids; a canvas of no size cannot be drawn. */
const LEAST = 2;
const GAP = 46;
/** Room that the heads above the grids need, whatever the grids do. */
const HEAD = { x: 212, middle: 158, y: 158 };
/** Rows of one-dimensional tensors stand below each other, so that positions stand below positions. */
const TALLEST_LINE = 36;

export type Arrangement = "rows" | "paired" | "line";

const across = (plane: Plane) => plane.cols + plane.ring.left + plane.ring.right;
const down = (plane: Plane) => plane.rows + plane.ring.top + plane.ring.bottom;

export interface Sizes {
  readonly cell: number;
  readonly middle: number;
  readonly bias: number;
  /** What the columns of a row need at least, in pixels; null where tensors do not stand in such. */
  readonly columns: readonly [x: number, middle: number, y: number] | null;
}

/** The largest cells, up to `largest`, with which planes fit in so many pixels. */
function fitting(room: number, largest: number, ...planes: readonly (Plane | null)[]): number {
  const widest = Math.max(1, ...planes.map((plane) => (plane ? across(plane) : 1)));
  return Math.max(LEAST, Math.min(largest, Math.floor(room / widest)));
}

/**
 * @param arrangement rows: forward above backward. paired: narrow windows, each tensor beside its gradient,
 *   the pairs below each other. line: one tensor in each row.
 */
export function sizes(needs: Needs, width: number, height: number, arrangement: Arrangement): Sizes {
  const { x, y, middle, bias } = needs;
  const biasCell = (room: number, beside: number) => fitting(room, Math.min(beside, LARGEST_BESIDE), bias);
  if (arrangement === "line") {
    const room = width - 8;
    const cell = Math.max(3, fitting(room, TALLEST_LINE, x, y, middle));
    return { cell, middle: cell, bias: biasCell(room, cell), columns: null };
  }
  if (arrangement === "paired") {
    const half = (width - 20) / 2 - 8;
    const own = fitting(half, LARGEST_BESIDE, middle);
    return { cell: fitting(half, LARGEST, x, y), middle: own, bias: biasCell(half, own), columns: null };
  }
  const middleCell = (cell: number) => {
    if (!middle) return 0;
    const least = Math.min(SMALLEST_WEIGHT, Math.floor(200 / across(middle)));
    const room = Math.floor((HEAD.middle - 6) / Math.max(across(middle), down(middle)));
    return Math.max(cell, least, cell < READABLE_CELL ? Math.min(LARGE_WEIGHT, room) : 0);
  };
  const column = (cells: number, least: number) => Math.max(cells + 6, least);
  const ends = (cell: number) => [column(across(x) * cell, HEAD.x), column(across(y) * cell, HEAD.y)] as const;
  const sides = (cell: number) => ends(cell)[0] + ends(cell)[1];
  const between = (cell: number) => (middle ? column(across(middle) * middleCell(cell), HEAD.middle) : 0);
  const fits = (cell: number) => sides(cell) + (middle ? between(cell) + 2 * GAP : 120) <= width;
  const tallest = Math.max(down(x), down(y));
  // Cells without numbers would be worse than a little scrolling.
  const most = Math.min(LARGEST, Math.max(READABLE_CELL, Math.floor(height / 2 / tallest)));
  let cell = most;
  while (cell > LEAST && !fits(cell)) cell -= 1;
  // The others do not shrink for a bias: it has half of what they leave, since Y's small pictures want some of it too.
  const left = Math.max(0, width - sides(cell) - between(cell) - 2 * GAP);
  const own = biasCell(between(cell) + left / 2 - 6, middleCell(cell));
  const [first, last] = ends(cell);
  const columns = [first, bias ? column(across(bias) * own, between(cell)) : between(cell), last] as const;
  return { cell, middle: middleCell(cell), bias: own, columns };
}
