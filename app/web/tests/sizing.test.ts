/** How large Trace's cells are. */

import { expect, it } from "vitest";
import type { Plane } from "../src/grid/draw";
import { type Arrangement, READABLE_CELL, sizes } from "../src/views/trace/sizing";

const plane = (rows: number, cols = rows): Plane => ({
  rows, cols, values: [], scale: { map: "diverging", low: 0, high: 0 }, ring: { top: 0, left: 0, bottom: 0, right: 0 },
});
const first = { x: plane(7), y: plane(3), middle: plane(3), bias: null };

it("cells shrink until a row of grids fits", () => {
  const needs = { x: plane(32), y: plane(32), middle: plane(3), bias: null };
  const { cell, middle } = sizes(needs, 760, 500, "rows");
  expect(cell * 64 + 158 + 92).toBeLessThanOrEqual(760);
  expect(middle).toBe(40);
  const tall = sizes({ ...needs, middle: plane(11, 3) }, 760, 500, "rows");
  expect(tall.middle).toBe(24);
  const largest = sizes({ x: plane(74), y: plane(64), middle: plane(11), bias: null }, 732, 500, "rows");
  expect(74 * largest.cell + 11 * largest.middle + 64 * largest.cell + 92).toBeLessThanOrEqual(732);
  expect(sizes(needs, 340, 500, "paired").cell * 32).toBeLessThan(170);
});

it("cells are large enough for numbers wherever the width has room, however low the window", () => {
  // The grids' width, and the window's height without all else, at 1366×650, 1366×690, 960×470, 720×450, 1536×730 and 1920×1080.
  for (const [width, height] of [[658, 238], [658, 278], [656, 58], [696, 38], [828, 318], [1212, 668]]) {
    expect(sizes(first, width, height, "rows").cell, `${width} × ${height}`).toBeGreaterThanOrEqual(READABLE_CELL);
  }
  expect(sizes(first, 1212, 668, "rows").cell).toBe(46);
  expect(sizes({ ...first, x: plane(20) }, 658, 238, "rows").cell).toBe(12);
});

it("a bias fits into its column, and nothing else shrinks for it", () => {
  // The grids' widths at 320, 375, 600, 1024 and 1240 pixels, and at 719, 1366 and 1440.
  const columns: (readonly [Arrangement, number, (width: number) => number])[] = [
    ...[296, 351, 576, 390, 605].map((width) => ["paired", width, (all: number) => (all - 12) / 2] as const),
    ...[695, 658, 732].map((width) => ["rows", width, (all: number) => all - 212 - 158 - 2 * 40] as const),
    ...[296, 351].map((width) => ["line", width, (all: number) => all] as const),
  ];
  for (const [arrangement, width, column] of columns) {
    const without = sizes(first, width, 388, arrangement);
    for (let outputs = 1; outputs <= 16; outputs += 1) {
      const { bias, columns: widths, ...others } = sizes({ ...first, bias: plane(1, outputs) }, width, 388, arrangement);
      const at = `${outputs} in ${arrangement} of ${width}`;
      expect(outputs * bias + 6, at).toBeLessThanOrEqual(column(width));
      expect(bias, at).toBeGreaterThanOrEqual(8);
      expect(bias, at).toBeLessThanOrEqual(30);
      if (outputs <= 4) expect(bias, at).toBe(Math.min(30, others.middle));
      expect(others, at).toEqual({ cell: without.cell, middle: without.middle });
      if (widths) expect(widths[0] + widths[1] + widths[2] + 2 * 40, at).toBeLessThanOrEqual(width);
    }
  }
});

it("cells have a size in a window that has no room at all", () => {
  for (const arrangement of ["paired", "rows", "line"] as const) {
    for (const width of [0, 8, 20, 40]) {
      const { cell, middle, bias } = sizes({ ...first, bias: plane(1, 16) }, width, -400, arrangement);
      expect(Math.min(cell, middle, bias), `${arrangement} ${width}`).toBeGreaterThan(0);
    }
  }
});
