/** How quickly the page answers, and how little it asks. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { go, grid, launch, link, open, settled } from "./browser";

/** The targets: from a change to its picture, and all that a move of the pointer takes. For machines too slow for them. */
const CHANGE_MS = Number(process.env.CONVOKE_CHANGE_MS ?? 100);
const HOVER_MS = Number(process.env.CONVOKE_HOVER_MS ?? 16);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** The least of a few rounds: what other programs on the machine take is not the page's doing. */
async function best(enough: number, round: () => Promise<number>): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < 8 && least >= enough; i += 1) least = Math.min(least, await round());
  return least;
}

const LARGE = { op: "conv", c: 8, o: 8, size: "32.32", config: { padding: 1 }, x: "random.1", weight: "random.2", dy: "random.3" };

it("asks nothing while the pointer moves over a hundred cells, and paints each within a frame", async () => {
  const { page, done } = await open(browser, link(LARGE));
  await page.locator('[data-field="stride"]').waitFor();
  await page.waitForLoadState("networkidle");
  let asked = 0;
  page.on("request", () => {
    asked += 1;
  });
  const box = (await page.locator(grid("dx")).boundingBox())!;
  const seen = new Set<string | null>();
  for (let i = 0; i < 100; i += 1) {
    await page.mouse.move(box.x + 6 + ((i * 7) % (box.width - 12)), box.y + 6 + ((i * 13) % (box.height - 12)));
    if (i % 10 === 0) seen.add(await page.locator(".cell-name .place").textContent());
  }
  expect(asked).toBe(0);
  expect(seen.size).toBeGreaterThan(5);
  const p95 = await best(HOVER_MS, () => page.evaluate(async () => {
    const grid = document.querySelector('[data-tensor="dx"] .grid')!;
    const box = grid.getBoundingClientRect();
    const times: number[] = [];
    for (let i = 0; i < 60; i += 1) {
      await new Promise(requestAnimationFrame);
      // Between frames, as a pointer's events come. The frame's work is from its first callback until a task can run again.
      await new Promise((resolve) => setTimeout(resolve));
      let frame = 0;
      const painted = new Promise((resolve) => requestAnimationFrame(() => {
        frame = performance.now();
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = resolve;
        port2.postMessage(null);
      }));
      const started = performance.now();
      grid.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.left + 8 + ((i * 11) % (box.width - 16)), clientY: box.top + 8 + ((i * 5) % (box.height - 16)) }));
      const handled = performance.now() - started;
      await painted;
      times.push(handled + performance.now() - frame);
    }
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)];
  }));
  console.log(`a move of the pointer and its frame, p95: ${p95.toFixed(1)} ms`);
  expect(p95).toBeLessThan(HOVER_MS);
  await done();
}, 180_000);

for (const [name, change] of [["of the config", "config"], ["of a cell", "cell"]] as const) {
  it(`paints a change ${name} within the limit, at 8 channels of 32×32`, async () => {
    const { page, done } = await open(browser, link(LARGE));
    await page.locator('[data-field="stride"]').waitFor();
    const p95 = await best(CHANGE_MS, () => page.evaluate(async (what) => {
      const root = document.querySelector<HTMLElement>(".page")!;
      const frame = () => new Promise(requestAnimationFrame);
      const changes = {
        config: (i: number) => document.querySelector<HTMLButtonElement>(`button[aria-label="${i % 2 ? "less" : "more"} Padding"]`)!.click(),
        cell: (i: number) => {
          const press = (where: Element, key: string) => where.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
          const grid = document.querySelector<HTMLElement>('[data-tensor="x"] .grid')!;
          press(grid, String(i % 10));
          press(grid.querySelector(".grid-editor")!, "Enter");
        },
      };
      const found: number[] = [];
      for (let i = 0; i < 40; i += 1) {
        const started = performance.now();
        changes[what](i);
        while (root.dataset.stale === "1") await frame();
        await frame();
        found.push(performance.now() - started);
      }
      return found.sort((a, b) => a - b)[Math.floor(found.length * 0.95)];
    }, change));
    console.log(`change ${name} to paint, p95: ${p95.toFixed(0)} ms`);
    expect(p95).toBeLessThan(CHANGE_MS);
    await done();
  });
}

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
  const seed = page.getByRole("button", { name: "more Seed" });
  for (let i = 0; i < 20; i += 1) await seed.click();
  await settled(page);
  const expected = await page.evaluate(() => window.convoke.value("x"));
  expect(await page.getByRole("textbox", { name: "Seed", exact: true }).inputValue()).toBe("86");
  await page.unroute("**/v1/conv/*");
  await go(page, link({ op: "conv", c: 1, o: 1, size: "9.9", config: {}, x: "integers.86" }));
  expect(await page.evaluate(() => window.convoke.value("x"))).toEqual(expected);
  expect(most).toBe(1);
  await done();
});
