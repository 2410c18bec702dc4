/** The browser's way back: through views and layers, and not through every number. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { random } from "../tests/random";
import { launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const address = (page: Page, part: string) => page.waitForFunction((text) => location.hash.includes(text), part);
const operation = (page: Page) => page.getByLabel("Operation");
const saved = (state: string, tensors: object = {}) => ({
  name: "layer.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({ state, tensors })),
});
const openFile = async (page: Page, file: ReturnType<typeof saved>) => {
  await page.locator(".bar .menu summary").click();
  await page.locator('input[aria-label="A saved layer"]').setInputFiles(file);
};

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
  await address(page, "view=trace");
  await page.getByRole("button", { name: "increase Stride" }).click();
  await address(page, "stride");
  await settled(page);
  const [first, y] = await page.evaluate(() => [location.hash, Array.from(window.convoke.value("y"))] as const);
  await operation(page).selectOption("max_pool");
  await address(page, "op=max_pool");
  await page.getByRole("radio", { name: "3-D" }).click();
  await address(page, "dims=3");
  await page.getByLabel("Example").selectOption({ label: "Dilated" });
  await address(page, "dilation");
  for (const [op, part] of [["max_pool", "dims=3"], ["max_pool", "op=max_pool"], ["conv", first]]) {
    await page.goBack();
    await address(page, part);
    await expect.poll(() => operation(page).inputValue()).toBe(op);
  }
  await settled(page);
  expect(await page.evaluate(() => location.hash)).toBe(first);
  expect(await page.evaluate(() => Array.from(window.convoke.value("y")))).toEqual(y);
  await page.goBack();
  expect(page.url()).toBe("about:blank");
  await done();
});

it("the browser's way back has the last number that was changed, however soon another layer or view follows", async () => {
  const { page, done } = await open(browser);
  await address(page, "view=trace");
  await page.evaluate(() => {
    document.querySelector<HTMLElement>('[aria-label="increase Stride"]')!.click();
    const select = document.querySelector<HTMLSelectElement>('[aria-label="Operation"]')!;
    select.value = "max_pool";
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await address(page, "op=max_pool");
  await page.goBack();
  await address(page, "stride");
  await expect.poll(() => operation(page).inputValue()).toBe("conv");
  await page.evaluate(() => {
    document.querySelector<HTMLElement>('[aria-label="increase Dilation"]')!.click();
    [...document.querySelectorAll<HTMLElement>('[role="tab"]')].find((tab) => tab.textContent === "Verify")!.click();
  });
  await address(page, "view=verify");
  await page.goBack();
  await address(page, "dilation");
  await done();
});

it("the browser's way back leads to the layer before where its step could not be made at once", async () => {
  const { page, done } = await open(browser);
  await address(page, "view=trace");
  const first = await page.evaluate(() => location.hash);
  await page.evaluate(() => {
    const push = history.pushState.bind(history);
    let refused = 1;
    history.pushState = (...state) => {
      refused -= 1;
      if (refused >= 0) throw new DOMException("too many", "SecurityError");
      push(...state);
    };
  });
  await operation(page).selectOption("max_pool");
  await address(page, "op=max_pool");
  await page.goBack();
  await address(page, first);
  // Too long a link is not put there until it is shorter.
  const rng = random(3);
  const data = Array.from({ length: 16 * 32 * 32 }, () => Math.fround(Math.tan(rng() * 3)));
  await openFile(page, saved(link({ op: "avg_pool", c: 16, size: "32.32", config: { kernel: 2 } }), { x: { data } }));
  await page.getByRole("button", { name: "Copy it anyway" }).waitFor();
  await page.locator('[data-tensor="x"] .menu summary').click();
  await page.getByRole("button", { name: "Ramp" }).click();
  await address(page, "op=avg_pool");
  await page.goBack();
  await address(page, first);
  await done();
});

it("a layer that is refused is no step on the browser's way back", async () => {
  const { page, done } = await open(browser, "", {
    expected: /422/,
    before: async (page) => {
      // So long that the layer is in the address before it is refused.
      await page.route("**/v1/**", async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        await route.continue();
      });
    },
  });
  await address(page, "view=trace");
  const first = await page.evaluate(() => location.hash);
  await openFile(page, saved(link({ op: "conv", size: "2.2", kernel: "5.5", config: {} })));
  await address(page, "kernel=5.5");
  await page.locator(".notice").getByText("is not possible").waitFor();
  await expect.poll(() => page.evaluate(() => location.hash)).toBe(first);
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
