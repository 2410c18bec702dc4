/** Verify where the service goes away: what stands there is of the last answer. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, link, open } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it("leaves Verify's checks of the last answer as that, and none green", async () => {
  const { page, done } = await open(browser, link({ view: "verify" }), { expected: /Failed to load|ERR_/ });
  await page.locator('[data-state="done"]').waitFor();
  const green = await page.locator('[data-check="own-y"] .mark').evaluate((mark) => getComputedStyle(mark).color);
  const left = page.locator(".verify .left");
  expect(await left.count()).toBe(0);
  await page.route("**/v1/**", (route) => route.abort());
  await page.getByRole("button", { name: "Check again" }).click();
  await left.waitFor();
  expect(await left.textContent()).toBe("The 3 checks below are of the last answer that came.");
  await page.getByRole("tab", { name: "Trace" }).click();
  await page.getByRole("button", { name: "increase Stride" }).click();
  await page.locator('[data-trouble="offline"]').waitFor();
  await page.getByRole("tab", { name: "Verify" }).click();
  await left.waitFor();
  expect(await left.textContent()).toBe("The 3 checks below are of the last answer that came. The layer that is asked for now has not been checked.");
  const marks = await page.locator(".check .mark").evaluateAll((all) => all.map((mark) => getComputedStyle(mark).color));
  expect(marks).toHaveLength(3);
  expect(marks).not.toContain(green);
  expect(await page.locator('[data-check="own-y"] .check-verdict').textContent()).toContain("passes, for the last answer");
  await page.unroute("**/v1/**");
  await page.locator('[data-state="done"]').waitFor();
  expect(await left.count()).toBe(0);
  expect(await page.locator('[data-check="own-y"] .mark').evaluate((mark) => getComputedStyle(mark).color)).toBe(green);
  // All have passed when it goes away, and another layer is asked for by a link.
  await page.route("**/v1/**", (route) => route.abort());
  await page.evaluate((hash) => {
    location.hash = hash;
  }, link({ view: "verify", op: "conv", size: "9.9" }));
  await left.waitFor();
  expect(await left.textContent()).toContain("The layer that is asked for now has not been checked.");
  expect(await page.getByRole("heading", { name: "Not finished" }).count()).toBe(1);
  expect(await page.locator('[data-check="own-y"] .mark').evaluate((mark) => getComputedStyle(mark).color)).not.toBe(green);
  await done();
});
