/** How long the page takes, at 8 channels of 32×32: from a change to its picture, and for a move of the pointer. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LARGE, launch, link, open } from "./browser";

const ROUNDS = Number(process.env.ROUNDS ?? 8);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** All that a move takes: its handlers, and the frame's work from its first callback until a task can run again. */
function moves(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const grid = document.querySelector('[data-tensor="dx"] .grid')!;
    const box = grid.getBoundingClientRect();
    const times: number[] = [];
    for (let i = 0; i < 60; i += 1) {
      await new Promise(requestAnimationFrame);
      // Between frames, as a pointer's events come.
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
    return times;
  });
}

/** From the event to the frame after the picture is that of the change. */
function changes(page: Page, what: "config" | "cell"): Promise<number[]> {
  return page.evaluate(async (what) => {
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
    const times: number[] = [];
    for (let i = 0; i < 40; i += 1) {
      const started = performance.now();
      changes[what](i);
      while (root.dataset.stale === "1") await frame();
      await frame();
      times.push(performance.now() - started);
    }
    return times;
  }, what);
}

it.each([
  ["a move of the pointer", 16, moves],
  ["a change of the config", 100, (page: Page) => changes(page, "config")],
  ["a change of a cell", 100, (page: Page) => changes(page, "cell")],
] as const)("%s", async (name, target, round) => {
  const { page, done } = await open(browser, link(LARGE));
  await page.locator('[data-field="stride"]').waitFor();
  const found: number[] = [];
  for (let i = 0; i < ROUNDS; i += 1) {
    const times = (await round(page)).sort((a, b) => a - b);
    expect(times.length).toBeGreaterThan(0);
    found.push(times[Math.floor(times.length * 0.95)]);
  }
  found.sort((a, b) => a - b);
  const [least, middle, most] = [found[0], found[Math.floor(found.length / 2)], found.at(-1)!].map((ms) => ms.toFixed(1));
  console.log(`${name}: p95 of a round ${least} to ${most} ms, ${middle} in the median round; target ${target} ms`);
  await done();
});
