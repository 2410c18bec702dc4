/** Grids beside each other: none reaches into the next, nor beyond the stage. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { go, launch, link, open, resize } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Layers whose heads and small pictures are wider than their grids. */
const LAYERS = [
  { op: "conv_transpose", dims: 3, c: 16, o: 16 },
  { op: "conv", c: 16, o: 16, size: "20.20" },
  { op: "conv", c: 16, o: 16, bias: 1, config: { groups: 4 } },
  { op: "max_unpool", c: 16 },
  { op: "avg_pool", dims: 3, c: 16, n: 4, config: { kernel: 1 } },
];

it("leaves each grid the room that it needs, whatever stands above and below the others", async () => {
  const { page, done } = await open(browser);
  for (const [width, height] of [[1440, 900], [1366, 768], [1250, 700], [980, 700]]) {
    await resize(page, width, height);
    for (const layer of LAYERS) {
      await go(page, link(layer));
      // Grids are fitted some frames after the window has another size.
      await expect.poll(() => page.evaluate(() => {
        const box = (one: Element) => one.getBoundingClientRect();
        const found = [...document.querySelectorAll("[data-tensor]")];
        const grids = found.map((one) => ({ name: one.getAttribute("data-tensor"), canvas: box(one.querySelector(".grid canvas")!) }));
        const end = box(document.querySelector(".stage")!).right;
        const level = (a: DOMRect, b: DOMRect) => a.top < b.bottom && b.top < a.bottom;
        return grids.filter(({ canvas }) => canvas.right > end + 0.5
          || grids.some((other) => other.canvas !== canvas && level(other.canvas, canvas) && other.canvas.left >= canvas.left && other.canvas.left < canvas.right))
          .map(({ name }) => name);
      }), { message: `${JSON.stringify(layer)} at ${width} × ${height}`, timeout: 10_000 }).toEqual([]);
    }
  }
  await done();
});
