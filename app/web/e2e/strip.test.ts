/** The strip at a narrow window's foot: what was chosen, while its terms are out of view, and the way to them. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { go, grid, launch, link, open, resize } from "./browser";
import { serious } from "./serious";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const NARROW = [[360, 740], [390, 844], [700, 800], [720, 450], [900, 700]] as const;
const bar = (page: Page) => page.locator(".strip");

it("is there while the terms are below the window, leads to them, and goes", async () => {
  for (const [width, height] of NARROW) {
    const { page, done } = await open(browser, "", { viewport: { width, height }, hasTouch: true });
    const at = `${width} × ${height}`;
    await page.locator(grid("x")).tap({ position: { x: 12, y: 12 } });
    await bar(page).waitFor();
    expect(await bar(page).locator("span").first().textContent(), at).toBe("X[0, 0, 0, 0] = −2 · 2 terms");
    const box = (await bar(page).boundingBox())!;
    expect(box.y + box.height, at).toBeCloseTo(height, 0);
    await bar(page).tap();
    await bar(page).waitFor({ state: "hidden" });
    const name = (await page.locator(".cell-name").boundingBox())!;
    expect(name.y, at).toBeGreaterThanOrEqual(0);
    expect(name.y + name.height, at).toBeLessThan(height);
    expect(await page.evaluate(() => document.activeElement!.className), at).toBe("inspector");
    await page.evaluate(() => scrollTo(0, 0));
    await bar(page).waitFor();
    await done();
  }
});

it("is not there beside the terms, nor where no cell is chosen", async () => {
  const { page, done } = await open(browser);
  for (const [width, height] of [[1440, 900], [1024, 768], [1440, 450]]) {
    await page.setViewportSize({ width, height });
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForTimeout(150);
    expect(await bar(page).isVisible(), `${width} × ${height}`).toBe(false);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.evaluate(() => scrollTo(0, 0));
  await bar(page).waitFor();
  await page.locator(grid("x")).focus();
  await page.keyboard.press("Escape");
  await bar(page).waitFor({ state: "hidden" });
  await page.locator(grid("x")).hover({ position: { x: 12, y: 12 } });
  await page.locator(".cell-name").waitFor();
  expect(await bar(page).isVisible()).toBe(false);
  await done();
});

it("covers neither the cell that keys or a tap have come to, nor what takes the focus, and works by keys", async () => {
  const { page, done } = await open(browser, link({ op: "conv", cell: "none" }), { viewport: { width: 720, height: 400 }, hasTouch: true });
  /** How far the chosen cell of X reaches below the strip's upper edge. */
  const covered = () => page.evaluate(() => {
    const one = document.querySelector<HTMLElement>('[data-tensor="x"] .grid')!;
    const row = Number(document.querySelector<HTMLElement>(".cell-name")!.textContent!.match(/(\d+), \d+\]/)![1]);
    const foot = one.getBoundingClientRect().top + 3 + (row + 1) * Number(one.dataset.cell);
    return foot - document.querySelector(".strip")!.getBoundingClientRect().top;
  });
  const side = Number(await page.locator(grid("x")).getAttribute("data-cell"));
  const top = (await page.locator(grid("x")).boundingBox())!.y;
  // The row that the strip is about to lie over.
  const low = Math.floor((400 - 8 - top) / side) * side - side / 2;
  await page.locator(grid("x")).tap({ position: { x: 12, y: low } });
  await bar(page).waitFor();
  await expect.poll(covered).toBeLessThanOrEqual(0);
  await page.evaluate(() => scrollTo(0, 0));
  await page.keyboard.press("Control+End");
  await expect.poll(covered).toBeLessThanOrEqual(0);
  let reached = false;
  for (let i = 0; i < 60 && !reached; i += 1) {
    await page.keyboard.press("Tab");
    const [name, over] = await page.evaluate(() => {
      const one = document.activeElement as HTMLElement;
      const strip = document.querySelector(".strip")!;
      const taken = one === strip || (strip as HTMLElement).hidden ? 0 : one.getBoundingClientRect().bottom - strip.getBoundingClientRect().top;
      return [one.className, one.offsetHeight < 200 ? taken : 0] as const;
    });
    expect(over, name).toBeLessThanOrEqual(0);
    // Either it, or the terms, where what had the focus last has brought these into view.
    reached = ["strip", "terms-frame"].includes(name);
  }
  expect(reached).toBe(true);
  await page.evaluate(() => scrollTo(0, 0));
  // A strip that is hidden still takes no focus, and the key would go elsewhere.
  await bar(page).waitFor();
  await bar(page).focus();
  await page.keyboard.press("Enter");
  await bar(page).waitFor({ state: "hidden" });
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement!.className)).toBe("terms-frame");
  await done();
});

it("moves nothing where it is not on show, and does not undo a scroll", async () => {
  const { page, done } = await open(browser, "", { viewport: { width: 390, height: 844 }, hasTouch: true });
  const scrolled = () => page.evaluate(() => scrollY);
  await page.getByRole("button", { name: "Settings" }).click();
  await bar(page).waitFor({ state: "hidden" });
  await page.locator(grid("x")).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForTimeout(150);
  expect(await scrolled()).toBe(0);
  await page.getByRole("button", { name: "Settings" }).click();
  await bar(page).waitFor();
  await page.emulateMedia({ media: "print" });
  expect(await bar(page).isVisible()).toBe(false);
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize({ width: 720, height: 450 });
  await page.locator(".cell-name").scrollIntoViewIfNeeded();
  await bar(page).waitFor({ state: "hidden" });
  await page.locator(grid("dy")).focus();
  await page.keyboard.press("Control+End");
  await page.waitForTimeout(150);
  await page.evaluate(() => scrollTo(0, 0));
  await bar(page).waitFor();
  await page.waitForTimeout(150);
  expect(await scrolled()).toBe(0);
  await done();
});

it("has nothing that axe finds serious, in either colours, and makes no window wider", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, done } = await open(browser, "", { colorScheme, viewport: { width: 360, height: 740 }, hasTouch: true });
    await go(page, link({ op: "conv", dims: 3, n: 2, x: "random.1", weight: "random.2", cell: "y.1.0.1.1.1" }));
    await bar(page).waitFor();
    expect(await serious(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    await done();
  }
});

it("the sweep's slider can be used in windows of any width, and its bar has one line where there is room", async () => {
  const { page, done } = await open(browser);
  const width = () => page.getByRole("slider", { name: "Sweep position" }).evaluate((slider) => slider.clientWidth);
  for (const [wide, least] of [[1240, 120], [1024, 120], [900, 120], [761, 120], [390, 200]]) {
    await resize(page, wide, 900);
    expect(await width(), String(wide)).toBeGreaterThanOrEqual(least);
  }
  await resize(page, 1280, 900);
  const middles = await page.locator(".transport > *").evaluateAll((parts) => parts.map((part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return (top + bottom) / 2;
  }));
  expect(Math.max(...middles) - Math.min(...middles)).toBeLessThan(8);
  await done();
});
