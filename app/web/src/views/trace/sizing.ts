/** How large cells can be so that the grids of a row stand side by side. */

import type { Plane } from "../../grid/draw";

export interface Needs {
  readonly x: Plane;
  readonly y: Plane;
  readonly middle: Plane | null;
}

const LARGEST = 46;
const SMALLEST = 4;
const SMALLEST_WEIGHT = 24;
const GAP = 44;

const across = (plane: Plane) => plane.cols + plane.ring.left + plane.ring.right;
const down = (plane: Plane) => plane.rows + plane.ring.top + plane.ring.bottom;

export interface Sizes {
  readonly cell: number;
  readonly middle: number;
}

/** @param paired narrow windows: each tensor beside its gradient, the three pairs below each other. */
export function sizes(needs: Needs, width: number, height: number, paired: boolean): Sizes {
  const { x, y, middle } = needs;
  const middleCell = (cell: number) =>
    middle ? Math.max(cell, Math.min(SMALLEST_WEIGHT, Math.floor(200 / across(middle)))) : 0;
  if (paired) {
    const half = (width - 20) / 2 - 8;
    const cell = Math.floor(half / Math.max(across(x), across(y)));
    const own = middle ? Math.floor(Math.min(half / across(middle), 30)) : 0;
    return { cell: Math.max(2, Math.min(LARGEST, cell)), middle: own };
  }
  const fits = (cell: number) => {
    const gaps = middle ? 2 * GAP : 120;
    return (across(x) + across(y)) * cell + (middle ? across(middle) * middleCell(cell) : 0) + gaps <= width;
  };
  const tallest = Math.max(down(x), down(y));
  // A row of small cells would be worse than a little scrolling.
  const most = Math.min(LARGEST, Math.max(18, Math.floor(height / 2 / tallest)));
  let cell = most;
  while (cell > SMALLEST && !fits(cell)) cell -= 1;
  return { cell, middle: middleCell(cell) };
}
