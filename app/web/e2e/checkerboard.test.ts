/** Checkerboard: the pattern, and pictures that are late. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, link, open } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it("has 3 by 2 as uneven and 4 by 2 as even, and the gradient as the same picture", async () => {
  const { page, done } = await open(browser, link({ view: "checkerboard", board: "3.2.0.ones" }));
  const picture = (id: string) => page.locator(`[data-picture="${id}"]`).evaluate((el: HTMLElement) => ({ side: el.dataset.side, values: el.dataset.values }));
  await page.locator('[data-picture="transposed"][data-side="13"]').waitFor();
  expect(await picture("transposed")).toEqual({ side: "13", values: "1 2 4" });
  expect(await picture("gradient")).toEqual(await picture("transposed"));
  expect((await picture("resized")).values).toBe("9");
  await page.getByRole("button", { name: "kernel 4, stride 2, even" }).click();
  await page.getByRole("button", { name: "increase Padding" }).click();
  await page.locator('[data-picture="transposed"][data-side="12"]').waitFor();
  expect(await picture("transposed")).toEqual({ side: "12", values: "4" });
  expect(await page.locator(".board-verdict").textContent()).toContain("4 / 2 = 2");
  await done();
});

it("shows pictures of another kernel than the one that is spoken of as old", async () => {
  const { page, done } = await open(browser, link({ view: "checkerboard", board: "3.2.0.ones" }));
  await page.locator('[data-picture="transposed"][data-side="13"]').waitFor();
  const opacity = () => page.locator('[data-picture="transposed"] canvas').evaluate((canvas) => getComputedStyle(canvas).opacity);
  expect(await opacity()).toBe("1");
  const held: (() => void)[] = [];
  await page.route("**/v1/conv/backward", async (route) => {
    await new Promise<void>((resolve) => held.push(resolve));
    await route.continue();
  });
  await page.getByRole("button", { name: "kernel 4, stride 2, even" }).click();
  await page.locator(".board-verdict", { hasText: "4 / 2 = 2" }).waitFor();
  await expect.poll(opacity).toBe("0.6");
  for (const release of held) release();
  await page.locator('[data-picture="transposed"][data-side="14"]').waitFor();
  expect(await opacity()).toBe("1");
  await done();
});
