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

const RANDOM = { x: "random.5", weight: "random.6", dy: "random.7" };
const FUSED = { op: "conv", b: 1, config: { activation: "gelu" }, ...RANDOM };

/** What each line says: its factors as they are written, their product, and what there was no room for. */
const equations = (page: Page) => page.locator(".terms tbody tr").evaluateAll((rows) => rows.map((row) => {
  const numbers = [...row.querySelectorAll("td.num")].map((cell) => cell.textContent!);
  return { factors: numbers.slice(0, -1), product: numbers.at(-1)!, places: [...row.querySelectorAll("td.at")].map((cell) => cell.textContent!), title: (row as HTMLElement).title };
}));
const value = (text: string) => text.replaceAll("−", "-").split("/").map(Number).reduce((a, b) => a / b);

describe("a line", () => {
  it("is true as it is written, whichever cell was chosen, and whole in the window of a laptop", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 1024, height: 768 } });
    const layers = [
      { op: "conv_transpose", cell: "x.0.0.0.1.1" }, { op: "conv_transpose", cell: "dy.0.0.0.1.1" }, { op: "conv", cell: "weight.0.0.0.1.1" },
      { op: "avg_pool", cell: "dy.0.0.0.1.1" }, { op: "lp_pool", ...RANDOM, cell: "dy.0.0.0.1.1" },
      { op: "activation", ...RANDOM, cell: "dy.0.0.0.1.1" }, { op: "activation", ...RANDOM, cell: "dx.0.0.0.1.1" },
      { ...FUSED, cell: "dx.0.0.0.2.2" }, { ...FUSED, cell: "dy.0.0.0.1.1" }, { ...FUSED, cell: "dbias.0.0.0.0.1" }, { ...FUSED, n: 2, cell: "dweight.0.0.0.1.1" },
      { ...FUSED, dims: 3, n: 2, c: 12, o: 12, config: { activation: "tanh", padding: 1 }, cell: "dy.0.0.1.1.2" },
    ];
    for (const layer of layers) {
      await go(page, link(layer));
      const at = JSON.stringify(layer);
      const all = await equations(page);
      expect(all.length, at).toBeGreaterThan(0);
      for (const { factors, product } of all) {
        expect(factors.length, at).toBeGreaterThan(1);
        const own = factors.map(value).reduce((a, b) => a * b);
        expect(Math.abs(own - value(product)), `${at} ${factors.join(" · ")} = ${product}`).toBeLessThanOrEqual(0.06 * Math.abs(own));
      }
      const { wide, room } = await page.locator(".terms-frame").evaluate((el) => ({ wide: el.scrollWidth, room: el.clientWidth }));
      expect(wide, at).toBeLessThanOrEqual(room);
    }
    await done();
  });

  it("begins with the chosen cell's own number, where it is given", async () => {
    const { page, done } = await open(browser, link({ op: "conv_transpose", cell: "x.0.0.0.1.1" }));
    const own = await page.locator(".cell-name .chip").textContent();
    expect(own).toBe("3");
    for (const { factors } of await equations(page)) expect(factors[0]).toBe(own);
    await go(page, link({ op: "conv", cell: "weight.0.1.0.0.0" }));
    for (const { factors } of await equations(page)) expect(factors[1]).toBe(await page.locator(".cell-name .chip").textContent());
    await done();
  });

  it("has dY and the slope apart where there is an activation, and z beside it or in its row's title", async () => {
    const { page, done } = await open(browser, link({ ...FUSED, cell: "y.0.0.0.0.0" }));
    expect(await page.locator('[data-total="sum"]').textContent()).toBe("Sum of the terms, z7.0147");
    await go(page, link({ ...FUSED, cell: "dx.0.0.0.2.2" }));
    expect((await equations(page))[0]).toMatchObject({ factors: ["−0.43", "1", "−0.79"], title: "z = 7.015" });
    expect(await page.locator(".sentence").textContent()).toContain("φ′ is the slope of gelu at z, the output before it.");
    // A wider list has room for it.
    await page.setViewportSize({ width: 900, height: 844 });
    await expect.poll(async () => (await equations(page))[0]).toEqual({ factors: ["−0.43", "1", "−0.79"], product: "0.3397", places: ["0, 0, 0", "7.015", "0, 0, 2, 2"], title: "" });
    await go(page, link({ ...FUSED, cell: "dy.0.0.0.0.0" }));
    expect(await page.locator(".sentence").textContent()).toContain("at z = 7.0147, the output before it.");
    await done();
  });
});
