/** How large cells can be so that the grids of a row stand side by side. */

import type { Plane } from "../../grid/draw";

export interface Needs {
  readonly x: Plane;
  readonly y: Plane;
  readonly middle: Plane | null;
}

const LARGEST = 46;
const SMALLEST = 4;
/** From this size on numbers can be read well. */
export const READABLE_CELL = 28;
const SMALLEST_WEIGHT = 24;
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
}

/**
 * @param arrangement rows: forward above backward. paired: narrow windows, each tensor beside its gradient,
 *   the pairs below each other. line: one tensor in each row.
 */
export function sizes(needs: Needs, width: number, height: number, arrangement: Arrangement): Sizes {
  const { x, y, middle } = needs;
  if (arrangement === "line") {
    const widest = Math.max(across(x), across(y), middle ? across(middle) : 1);
    const cell = Math.max(3, Math.min(TALLEST_LINE, Math.floor((width - 8) / widest)));
    return { cell, middle: cell };
  }
  const middleCell = (cell: number) =>
    middle ? Math.max(cell, Math.min(SMALLEST_WEIGHT, Math.floor(200 / across(middle)))) : 0;
  if (arrangement === "paired") {
    const half = (width - 20) / 2 - 8;
    const cell = Math.floor(half / Math.max(across(x), across(y)));
    const own = middle ? Math.floor(Math.min(half / across(middle), 30)) : 0;
    return { cell: Math.max(2, Math.min(LARGEST, cell)), middle: own };
  }
  const fits = (cell: number) => {
    const column = (cells: number, least: number) => Math.max(cells + 6, least);
    const sides = column(across(x) * cell, HEAD.x) + column(across(y) * cell, HEAD.y);
    if (!middle) return sides + 120 <= width;
    return sides + column(across(middle) * middleCell(cell), HEAD.middle) + 2 * GAP <= width;
  };
  const tallest = Math.max(down(x), down(y));
  // Cells without numbers would be worse than a little scrolling.
  const most = Math.min(LARGEST, Math.max(READABLE_CELL, Math.floor(height / 2 / tallest)));
  let cell = most;
  while (cell > SMALLEST && !fits(cell)) cell -= 1;
  return { cell, middle: middleCell(cell) };
}
