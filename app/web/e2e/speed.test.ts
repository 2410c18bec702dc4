/** How little the page asks and paints. How long it takes is for `make bench-page` to say. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asking, go, grid, LARGE, launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it("asks nothing while the pointer moves over a hundred cells, and paints each within a frame", async () => {
  const { page, done } = await open(browser, link(LARGE));
  await page.locator('[data-field="stride"]').waitFor();
  await page.waitForLoadState("networkidle");
  const asked = asking(page);
  const box = (await page.locator(grid("dx")).boundingBox())!;
  const seen = new Set<string | null>();
  for (let i = 0; i < 100; i += 1) {
    await page.mouse.move(box.x + 6 + ((i * 7) % (box.width - 12)), box.y + 6 + ((i * 13) % (box.height - 12)));
    if (i % 10 === 0) seen.add(await page.locator(".cell-name .place").textContent());
  }
  expect(asked).toEqual([]);
  expect(seen.size).toBeGreaterThan(5);
  // Callbacks of a frame run in the order they were asked for, so that what the page asks for on a move is done before ours.
  const frames = await page.evaluate(async () => {
    const grid = document.querySelector('[data-tensor="dx"] .grid')!;
    const box = grid.getBoundingClientRect();
    let painted = new Map<HTMLCanvasElement, number>();
    const draw = CanvasRenderingContext2D.prototype.drawImage;
    CanvasRenderingContext2D.prototype.drawImage = function (this: CanvasRenderingContext2D, ...args: unknown[]) {
      if (this.canvas.isConnected) painted.set(this.canvas, (painted.get(this.canvas) ?? 0) + 1);
      return Reflect.apply(draw, this, args) as void;
    };
    const frame = () => new Promise(requestAnimationFrame);
    const task = () => new Promise((resolve) => setTimeout(resolve));
    const found: { within: number; most: number; late: number; named: string | null }[] = [];
    for (let i = 0; i < 30; i += 1) {
      await frame();
      painted = new Map();
      grid.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.left + 8 + (((i + 1) * 37) % (box.width - 16)), clientY: box.top + 8 + (((i + 1) * 23) % (box.height - 16)) }));
      const named = document.querySelector(".cell-name .place")!.textContent;
      await task();
      await frame();
      const [within, most] = [painted.size, Math.max(...painted.values())];
      painted = new Map();
      await frame();
      await frame();
      found.push({ within, most, late: painted.size, named });
    }
    CanvasRenderingContext2D.prototype.drawImage = draw;
    return found;
  });
  expect(new Set(frames.map(({ named }) => named)).size).toBe(frames.length);
  for (const { within, most, late } of frames) {
    expect(within, "grids painted in the frame after a move").toBeGreaterThan(2);
    expect(most, "copies onto one grid: the pale sheet and the lit cells").toBeLessThanOrEqual(2);
    expect(late, "grids painted later than that").toBe(0);
  }
  expect(asked).toEqual([]);
  await done();
});

it("asks for gradients once a change and for a plan once a layer, after its picture, and paints what changed", async () => {
  const { page, done } = await open(browser, link(LARGE));
  await page.locator('[data-field="stride"]').waitFor();
  await page.waitForLoadState("networkidle");
  const asked = asking(page);
  const pictures = () => page.evaluate(async () => {
    const root = document.querySelector<HTMLElement>(".page")!;
    const frame = () => new Promise(requestAnimationFrame);
    while (root.dataset.stale === "1") await frame();
    for (let i = 0; i < 3; i += 1) await frame();
    const urls = [...document.querySelectorAll<HTMLCanvasElement>("[data-tensor] canvas")].map((canvas) => canvas.toDataURL());
    const bytes = new TextEncoder().encode(urls.join());
    return [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].join();
  });
  const change = {
    more: () => page.getByRole("button", { name: "increase Padding" }).click(),
    less: () => page.getByRole("button", { name: "decrease Padding" }).click(),
    cell: async () => {
      await page.locator(grid("x")).focus();
      await page.keyboard.type("7");
      await page.keyboard.press("Enter");
    },
  };
  let before = await pictures();
  for (const [how, expected] of [
    ["more", ["backward", "plan"]], ["less", ["backward"]], ["more", ["backward"]], ["less", ["backward"]], ["cell", ["backward"]],
  ] as const) {
    await change[how]();
    const after = await pictures();
    expect(asked.splice(0), how).toEqual(expected.map((action) => `/v1/conv/${action}`));
    expect(after, how).not.toEqual(before);
    before = after;
  }
  await done();
});

it("has one request in flight, and shows the last of many quick changes", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1, size: "9.9", config: {} }));
  let flying = 0;
  let most = 0;
  let at = 0;
  await page.route("**/v1/conv/*", async (route) => {
    flying += 1;
    most = Math.max(most, flying);
    at += 1;
    await new Promise((resolve) => setTimeout(resolve, [90, 5, 60, 20][at % 4]));
    await route.continue().catch(() => undefined);
    flying -= 1;
  });
  await page.locator('[data-tensor="x"] .menu summary').click();
  const seed = page.getByRole("button", { name: "increase Seed" });
  for (let i = 0; i < 20; i += 1) await seed.click();
  await settled(page);
  const expected = await page.evaluate(() => window.convoke.value("x"));
  expect(await page.getByRole("spinbutton", { name: "Seed", exact: true }).inputValue()).toBe("86");
  await page.unroute("**/v1/conv/*");
  await go(page, link({ op: "conv", c: 1, o: 1, size: "9.9", config: {}, x: "integers.86" }));
  expect(await page.evaluate(() => window.convoke.value("x"))).toEqual(expected);
  expect(most).toBe(1);
  await done();
});
