/** What of a plane is lit, and the marks on it. */

import { corner, gapOf, place, type Plane, type Theme } from "./draw";
import type { Painter } from "./painter";

/** Changes with the pointer. */
export interface Light {
  readonly lit: Uint8Array | null;
  /** Cells of the one term under the pointer. */
  readonly strong: readonly number[];
  /** Rows and columns on the padding, counted from the first real cell. */
  readonly ring: readonly (readonly [number, number])[];
  readonly selected: number;
}

export const NO_LIGHT: Light = { lit: null, strong: [], ring: [], selected: -1 };

/** The marks on what is lit. */
export function drawLight(p: Painter, plane: Plane, light: Light, cell: number, theme: Theme): void {
  const gap = gapOf(cell);
  const width = cell >= 16 ? 2 : 1.5;
  if (light.lit) outline(p, plane, light.lit, cell, theme, width);
  for (const [r, c] of light.ring) {
    const [x, y] = place(plane, cell, r, c);
    p.frame(x + 1, y + 1, cell - gap - 2, cell - gap - 2, theme.ink, 1, true);
  }
  for (const index of light.strong) {
    const [x, y] = corner(plane, cell, index);
    p.frame(x + 1.5, y + 1.5, cell - gap - 3, cell - gap - 3, theme.ink, 3);
  }
  if (light.selected >= 0) {
    const [x, y] = corner(plane, cell, light.selected);
    p.frame(x - 0.5, y - 0.5, cell - gap + 1, cell - gap + 1, theme.ink, 3);
    p.frame(x + 1.5, y + 1.5, cell - gap - 3, cell - gap - 3, theme.surface, 1);
  }
}

/** The border between lit cells and others, drawn once along each edge. */
function outline(p: Painter, plane: Plane, lit: Uint8Array, cell: number, theme: Theme, width: number): void {
  const { rows, cols } = plane;
  const on = (r: number, c: number) => r >= 0 && c >= 0 && r < rows && c < cols && lit[r * cols + c] === 1;
  const half = gapOf(cell) / 2;
  for (let r = 0; r < rows; r += 1) {
    for (let c = 0; c < cols; c += 1) {
      if (!on(r, c)) continue;
      const [x0, y0] = place(plane, cell, r, c);
      const [x, y, s] = [x0 - half, y0 - half, cell];
      if (!on(r - 1, c)) p.line(x, y, x + s, y, theme.ink, width);
      if (!on(r + 1, c)) p.line(x, y + s, x + s, y + s, theme.ink, width);
      if (!on(r, c - 1)) p.line(x, y, x, y + s, theme.ink, width);
      if (!on(r, c + 1)) p.line(x + s, y, x + s, y + s, theme.ink, width);
    }
  }
}

/** Runs of lit cells, row by row, as boxes. */
export function litBoxes(plane: Plane, lit: Uint8Array, cell: number): [x: number, y: number, width: number, height: number][] {
  const { rows, cols } = plane;
  const boxes: [number, number, number, number][] = [];
  for (let r = 0; r < rows; r += 1) {
    for (let from = 0; from < cols; from += 1) {
      if (!lit[r * cols + from]) continue;
      let to = from;
      while (to + 1 < cols && lit[r * cols + to + 1]) to += 1;
      boxes.push([...place(plane, cell, r, from), (to - from + 1) * cell, cell]);
      from = to;
    }
  }
  return boxes;
}
