/** Where the page and the service differ by rounding alone: Trace and Verify say so, and blame nobody. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { go, launch, link, open } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const SMALL = { op: "conv", c: 1, o: 1, size: "5.5", config: {} };
const KINK = {
  op: "conv_transpose", n: 3, c: 2, o: 2, size: "8.6", kernel: "3.2", b: 1, x: "random.5", weight: "integers.3", dy: "integers.9",
  config: { stride: [1, 2], activation: "relu", padding: "same" }, cell: "dx.0.0.0.0.5",
};

/** What each check that does not pass says, by its id. */
async function told(page: Page): Promise<Record<string, string>> {
  await page.locator('[data-state="done"]').waitFor();
  expect(await page.locator('[data-passed="false"]').count()).toBe(0);
  const silent = await page.locator('[data-passed="null"]').evaluateAll((all) => all.map((one) => [(one as HTMLElement).dataset.check!, one.querySelector(".check-note")!.textContent] as const));
  return Object.fromEntries(silent);
}

it("an output that is 0 within rounding has either slope of its activation", async () => {
  const { page, done } = await open(browser, link(KINK));
  expect(await page.locator(".total").getAttribute("data-agrees")).toBe("true");
  // Which of both it has is up to the order in which the service adds.
  expect(await page.locator(".verdict").textContent()).toMatch(/They agree|where either slope is right/);
  await go(page, link({ ...KINK, view: "verify" }));
  expect(await told(page)).toEqual({});
  expect(await page.locator('[data-check="own-dx"] .check-note').textContent()).toMatch(/\d+ cells/);
  await done();
});

it("numbers of any size are nobody's fault, and what shows nothing says why", async () => {
  const { page, done } = await open(browser, link({ ...SMALL, view: "verify", x: "integers.66~6:1e6" }));
  expect(await told(page)).toEqual({});
  const at = async (parts: object) => {
    await go(page, link({ ...SMALL, ...parts, view: "trace" }));
    await go(page, link({ ...SMALL, ...parts, view: "verify" }));
    return told(page);
  };
  expect(await at({ x: "integers.66~6:1e20" })).toEqual({ "differences-x": expect.stringContaining("lost in rounding") });
  const infinite = await at({ x: "integers.66~6:Infinity" });
  expect(Object.keys(infinite)).toHaveLength(6);
  expect(new Set(Object.values(infinite).map((note) => note.trim()))).toEqual(new Set(["The tensors hold numbers that are not finite."]));
  const beyond = await at({ x: "integers.66~6:3e38", weight: "ones.1~4:10" });
  expect(beyond["adjoint-x-float32"]).toContain("leave the range of float32");
  expect(beyond["adjoint-weight-float32"]).toContain("leave the range of float32");
  expect(Object.keys(beyond)).not.toContain("adjoint-x-float64");
  const norm = await at({ op: "lp_pool", c: undefined, o: undefined, size: undefined, config: undefined, x: "integers.66~8:1e20" });
  expect(Object.keys(norm).sort()).toEqual(["adjoint-x-float32", "differences-x"]);
  await go(page, link({ op: "lp_pool", x: "integers.66~8:1e20", cell: "y.0.0.0.0.0" }));
  expect(await page.locator(".verdict").textContent()).toContain("They differ, and may: a sum on the way leaves float32");
  await done();
});
