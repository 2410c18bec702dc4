/** The list of terms: all of them to be seen or counted, and each line true as it is written. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { go, launch, link, open } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

describe("rows out of view", () => {
  /** Rows of which all is in view. */
  const whole = (page: Page) => page.locator(".terms-frame").evaluate((frame) => {
    const end = frame.getBoundingClientRect().top + frame.clientHeight;
    return [...frame.querySelectorAll("tbody tr")].filter((row) => row.getBoundingClientRect().bottom <= end + 1).length;
  });
  const words = (page: Page) => page.locator(".terms-below").textContent();

  it("are none where there is room for them", async () => {
    const { page, done } = await open(browser, link({ op: "conv", cell: "y.0.0.0.2.2" }));
    expect(await whole(page)).toBe(18);
    expect(await words(page)).toBe("");
    for (const [width, height] of [[390, 844], [700, 800], [720, 450]]) {
      await page.setViewportSize({ width, height });
      await expect.poll(() => whole(page), { message: `${width} × ${height}` }).toBe(18);
      expect(await words(page)).toBe("");
    }
    await done();
  });

  it("are counted, with those that are asked for and while the list is scrolled", async () => {
    const { page, done } = await open(browser, link({ op: "conv", size: "18.18", cell: "dweight.0.0.0.2.2" }));
    const told = async () => Number(/\d+/.exec((await words(page)) ?? "")?.[0] ?? 0);
    await expect.poll(told).toBeGreaterThan(0);
    expect((await whole(page)) + (await told())).toBe(24);
    await page.getByRole("button", { name: "Show 40 more terms" }).click();
    await expect.poll(async () => (await whole(page)) + (await told())).toBe(64);
    const frame = page.locator(".terms-frame");
    await frame.evaluate((one) => (one.scrollTop = 23 * 10));
    await expect.poll(async () => (await whole(page)) + (await told())).toBe(64);
    await frame.evaluate((one) => (one.scrollTop = one.scrollHeight - one.clientHeight - 23));
    await expect.poll(() => words(page)).toBe("↓ 1 more row below");
    await frame.focus();
    await page.keyboard.press("End");
    await expect.poll(() => words(page)).toBe("");
    await go(page, link({ op: "conv", size: "18.18", cell: "y.0.0.0.2.2" }));
    await expect.poll(() => whole(page)).toBe(18);
    expect(await words(page)).toBe("");
    await done();
  });
});
