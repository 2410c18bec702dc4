/** One plane of a tensor as cells: colours, numbers, padding around it, and what is lit. */

import { brief, coarse } from "../core/format";
import { level, type Scale, table } from "./colour";
import type { Painter } from "./painter";
import { picture } from "./raster";

export interface Theme {
  readonly name: "light" | "dark";
  readonly surface: string;
  readonly ink: string;
  readonly muted: string;
  readonly faint: string;
  /** Numbers of cells that are not lit, and of copies in the padding: 4.5 to 1 or better on whatever they stand. */
  readonly dim: string;
}

export interface Ring {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

export const NO_RING: Ring = { top: 0, left: 0, bottom: 0, right: 0 };

/** What a plane holds; changes with the data. */
export interface Plane {
  readonly rows: number;
  readonly cols: number;
  readonly values: ArrayLike<number>;
  readonly scale: Scale;
  readonly ring: Ring;
  /** Where padding copies cells: which of them stands at a row and column around the plane. */
  readonly copies?: ((row: number, col: number) => number) | null;
  /** 1: no window reads the cell. */
  readonly unread?: Uint8Array | null;
  /** 1: the sweep has not come to the cell yet. */
  readonly hidden?: Uint8Array | null;
  /** How many windows have their maximum here. */
  readonly wins?: Uint8Array | null;
}

/** Room around the cells for outlines. */
export const MARGIN = 3;
/** From this size on numbers can be read. */
export const READABLE = 20;

export function extent(plane: Plane, cell: number): { width: number; height: number } {
  return {
    width: (plane.cols + plane.ring.left + plane.ring.right) * cell + 2 * MARGIN,
    height: (plane.rows + plane.ring.top + plane.ring.bottom) * cell + 2 * MARGIN,
  };
}

export function cellAt(plane: Plane, cell: number, x: number, y: number): number {
  const c = Math.floor((x - MARGIN) / cell) - plane.ring.left;
  const r = Math.floor((y - MARGIN) / cell) - plane.ring.top;
  return r >= 0 && c >= 0 && r < plane.rows && c < plane.cols ? r * plane.cols + c : -1;
}

export function corner(plane: Plane, cell: number, index: number): [number, number] {
  const [r, c] = [Math.floor(index / plane.cols), index % plane.cols];
  return place(plane, cell, r, c);
}

export function place(plane: Plane, cell: number, r: number, c: number): [number, number] {
  return [MARGIN + (c + plane.ring.left) * cell, MARGIN + (r + plane.ring.top) * cell];
}

export const gapOf = (cell: number) => (cell >= 8 ? 1 : 0);

/** How much of a cell's colour gives way to the surface where others are lit. */
const FADE = 0.72;
/** Copies in the padding are paler still. */
const COPY_FADE = 0.88;

export interface Drawing {
  /** Cells as they are where others are lit: pale, but their numbers can still be read. */
  readonly faded?: boolean;
  /** 1: the cells to draw. */
  readonly only?: Uint8Array | null;
}

export function drawPlane(p: Painter, plane: Plane, cell: number, theme: Theme, { faded = false, only }: Drawing = {}): void {
  const colours = table(theme.name, plane.scale.map);
  const gap = gapOf(cell);
  const side = cell - gap;
  const numbers = numbersOf(plane, cell);
  if (!only) drawRing(p, plane, cell, theme, numbers);
  const raster = p.raster && gap === 0 && !plane.hidden && !only;
  if (raster) {
    const [x, y] = corner(plane, cell, 0);
    p.raster!(x, y, plane.cols * cell, plane.rows * cell, picture(plane, plane.scale, theme.name));
    if (faded) p.rect(x, y, plane.cols * cell, plane.rows * cell, theme.surface, FADE);
    if (!plane.unread) return;
  }
  for (let index = 0; index < plane.rows * plane.cols; index += 1) {
    if (only && !only[index]) continue;
    const [x, y] = corner(plane, cell, index);
    if (plane.hidden?.[index]) {
      p.frame(x + 0.5, y + 0.5, side - 1, side - 1, theme.faint, 1);
      continue;
    }
    const value = plane.values[index];
    const at = level(plane.scale, value);
    if (!raster) {
      p.rect(x, y, side, side, colours.css[at]);
      if (faded) p.rect(x, y, side, side, theme.surface, FADE);
    }
    const ink = faded ? theme.dim : colours.ink(at);
    if (plane.unread?.[index]) hatch(p, x, y, side, theme);
    if (numbers) p.text(x + side / 2, y + side / 2, numbers.write(value), ink, numbers.size);
    if (plane.wins?.[index]) winMarks(p, x, y, side, plane.wins[index], ink);
  }
}

/** Widths of characters, in parts of the font's size, as a wide font has them. */
const WIDTHS: Readonly<Record<string, number>> = { "−": 0.84, ".": 0.32, ",": 0.32, " ": 0.32, "·": 0.32, "=": 0.84, "∞": 0.84, "≈": 0.84 };

/** How wide a number, or a list of them, is in parts of its font's size. */
export function breadth(text: string): number {
  let width = 0;
  for (const character of text) width += WIDTHS[character] ?? 0.64;
  return width;
}

const SMALLEST_FONT = 7;

interface Numbers {
  readonly size: number;
  readonly write: (value: number) => string;
}

/** One size for the whole plane, so that the widest number fits; null where none could be read. */
function numbersOf(plane: Plane, cell: number): Numbers | null {
  if (cell < READABLE) return null;
  for (const write of [brief, coarse]) {
    let widest = 1.3;
    for (let i = 0; i < plane.rows * plane.cols; i += 1) widest = Math.max(widest, breadth(write(plane.values[i])));
    const size = Math.floor(Math.min(cell * 0.4, 15, (cell - 5) / widest) * 2) / 2;
    if (size >= SMALLEST_FONT) return { size, write };
  }
  return null;
}

function drawRing(p: Painter, plane: Plane, cell: number, theme: Theme, numbers: Numbers | null): void {
  const { top, left, bottom, right } = plane.ring;
  if (top + left + bottom + right === 0) return;
  for (let r = -top; r < plane.rows + bottom; r += 1) {
    for (let c = -left; c < plane.cols + right; c += 1) {
      if (r >= 0 && r < plane.rows && c >= 0 && c < plane.cols) continue;
      const [x, y] = place(plane, cell, r, c);
      if (plane.copies) drawCopy(p, plane, cell, theme, numbers, [r, c]);
      if (cell >= 8) p.frame(x + 1.5, y + 1.5, cell - 4, cell - 4, theme.faint, 1, true);
      else if (!plane.copies) p.rect(x + cell / 2 - 0.5, y + cell / 2 - 0.5, 1, 1, theme.faint);
    }
  }
  if (!plane.copies) return;
  const [x, y] = place(plane, cell, 0, 0);
  const gap = gapOf(cell);
  p.frame(x - gap, y - gap, plane.cols * cell + gap, plane.rows * cell + gap, theme.muted, 1);
}

/** What stands in the padding. */
function drawCopy(p: Painter, plane: Plane, cell: number, theme: Theme, numbers: Numbers | null, [r, c]: readonly [number, number]): void {
  const [x, y] = place(plane, cell, r, c);
  const value = plane.values[plane.copies!(r, c)];
  const [inset, side] = cell >= 8 ? [1.5, cell - 4] : [0, cell];
  p.rect(x + inset, y + inset, side, side, table(theme.name, plane.scale.map).css[level(plane.scale, value)]);
  p.rect(x + inset, y + inset, side, side, theme.surface, COPY_FADE);
  if (numbers) p.text(x + (cell - gapOf(cell)) / 2, y + (cell - gapOf(cell)) / 2, numbers.write(value), theme.dim, numbers.size);
}

/** Unread: struck through from corner to corner. */
function hatch(p: Painter, x: number, y: number, side: number, theme: Theme): void {
  const inset = side * 0.16;
  p.line(x + inset, y + side - inset, x + side - inset, y + inset, theme.muted, side >= 16 ? 1.25 : 1);
}

function winMarks(p: Painter, x: number, y: number, side: number, wins: number, ink: string): void {
  if (side < 12) return;
  const r = Math.max(1.2, side * 0.045);
  const shown = Math.min(wins, Math.floor((side - 4) / (r * 3)));
  for (let i = 0; i < shown; i += 1) p.dot(x + 4 + r + i * r * 3, y + side - 4 - r, r, ink);
}
