/** The planes on show: those of one row belong together. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { go, grid, launch, link, open } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it("names the plane of the weight on show, which belongs to the channels beside it", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 4, o: 4, config: { groups: 2 } }));
  const named = () => page.locator('[data-tensor="weight"] .plane-words, [data-tensor="dweight"] .plane-words').evaluateAll(
    (all) => all.map((one) => (one as HTMLElement).innerText.trim().replace(/\s+/g, " ")));
  const chosen = (role: string) => page.locator(`[data-tensor="${role}"] .thumbnails [aria-pressed="true"]`).getAttribute("aria-label");
  await page.locator('[data-tensor="x"] .thumbnails button').nth(3).click();
  expect(await chosen("y")).toBe("Y, channel 2");
  expect(await named()).toEqual(Array(2).fill("o = 2, i = 1 reads X channel 3"));
  await page.locator('[data-tensor="dy"] .thumbnails button').nth(1).click();
  expect(await chosen("x")).toBe("X, channel 1");
  expect(await named()).toEqual(Array(2).fill("o = 1, i = 1 reads X channel 1"));
  await page.locator(grid("weight")).click({ position: { x: 12, y: 12 } });
  expect(await page.locator(".cell-name").textContent()).toContain("[1, 1, 0, 0]");
  await page.locator(grid("x")).click({ position: { x: 12, y: 12 } });
  await page.keyboard.press("]");
  expect(await chosen("y")).toBe("Y, channel 3");
  expect(await named()).toEqual(Array(2).fill("o = 3, i = 0 reads X channel 2"));
  await go(page, link({ op: "conv" }));
  expect(await named()).toEqual(Array(2).fill("o = 0, i = 0"));
  await done();
});

it("keeps the chosen cell on show where the channels of a link do not meet", async () => {
  const grouped = { op: "conv", c: 4, o: 4, config: { groups: 2 } };
  const { page, done } = await open(browser, link({ ...grouped, pick: "0.0.3.0.0.0", cell: "y.0.3.0.1.1" }));
  const chosen = (role: string) => page.locator(`[data-tensor="${role}"] .thumbnails [aria-pressed="true"]`).getAttribute("aria-label");
  expect(await page.locator(".cell-name").textContent()).toContain("[0, 3, 1, 1]");
  expect([await chosen("x"), await chosen("y")]).toEqual(["X, channel 2", "Y, channel 3"]);
  await page.locator('[data-tensor="x"] .thumbnails button').nth(1).click();
  expect([await chosen("x"), await chosen("y")]).toEqual(["X, channel 1", "Y, channel 1"]);
  await go(page, link({ ...grouped, pick: "0.1.2.0.0.0", cell: "weight.2.1.0.0.0" }));
  expect([await chosen("x"), await chosen("y")]).toEqual(["X, channel 3", "Y, channel 2"]);
  await go(page, link({ ...grouped, pick: "0.1.2.0.0.0", cell: "x.0.1.0.1.1" }));
  expect([await chosen("x"), await chosen("y")]).toEqual(["X, channel 1", "Y, channel 0"]);
  await done();
});
