/** The browser's way back: through views and layers, and not through every number. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it("the browser's way back leads through the views that were open", async () => {
  const { page, done } = await open(browser);
  const shown = () => page.locator('[role="tab"][aria-selected="true"]').textContent();
  await page.waitForFunction(() => location.hash.includes("view=trace"));
  for (const view of ["Verify", "Request"]) {
    await page.getByRole("tab", { name: view }).click();
    await page.waitForFunction((name) => location.hash.includes(`view=${name}`), view.toLowerCase());
  }
  await page.goBack();
  await expect.poll(shown).toBe("Verify");
  await page.goBack();
  await expect.poll(shown).toBe("Trace");
  await settled(page);
  await page.getByRole("button", { name: "increase Stride" }).click();
  await page.waitForFunction(() => location.hash.includes("stride"));
  await page.goBack();
  expect(page.url()).toBe("about:blank");
  await page.goForward();
  await settled(page);
  await expect.poll(shown).toBe("Trace");
  expect(await page.evaluate(() => window.convoke.value("y").length)).toBe(8);
  await done();
});

it("the browser's way back leads to the layer before another operation, dimension or example, as it was set", async () => {
  const { page, done } = await open(browser);
  const operation = () => page.getByLabel("Operation").inputValue();
  const hash = async (text: string) => page.waitForFunction((part) => location.hash.includes(part), text);
  await hash("view=trace");
  await page.getByRole("button", { name: "increase Stride" }).click();
  await hash("stride");
  await settled(page);
  const [first, y] = await page.evaluate(() => [location.hash, Array.from(window.convoke.value("y"))] as const);
  await page.getByLabel("Operation").selectOption("max_pool");
  await hash("op=max_pool");
  await page.getByRole("radio", { name: "3-D" }).click();
  await hash("dims=3");
  await page.getByLabel("Example").selectOption({ label: "Dilated" });
  await hash("dilation");
  for (const [op, part] of [["max_pool", "dims=3"], ["max_pool", "op=max_pool"], ["conv", first]]) {
    await page.goBack();
    await hash(part);
    await expect.poll(operation).toBe(op);
  }
  await settled(page);
  expect(await page.evaluate(() => location.hash)).toBe(first);
  expect(await page.evaluate(() => Array.from(window.convoke.value("y")))).toEqual(y);
  await page.goBack();
  expect(page.url()).toBe("about:blank");
  await done();
});

it("a link to no view is no step on the browser's way back", async () => {
  const { page, done } = await open(browser, link({ view: "nothing" }));
  await page.waitForFunction(() => location.hash.includes("view=trace"));
  await page.goBack();
  expect(page.url()).toBe("about:blank");
  await done();
});
