/** What is typed stays in its place; what is refused is said where it was typed, and no longer than it is so. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { go, grid, launch, link, open, settled } from "./browser";
import { serious } from "./serious";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const number = (page: Page, name: string) => page.getByRole("spinbutton", { name, exact: true });

async function type(page: Page, name: string, text: string, end = "Enter"): Promise<void> {
  await number(page, name).fill(text);
  await number(page, name).press(end);
}

it("a number that is not set as it was typed is answered beside its field, until the next one that is", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1, config: {} }));
  /** What describes the field, to whoever cannot see where it stands. */
  const said = (name: string) => number(page, name).evaluate((field) =>
    [field.getAttribute("aria-invalid"), document.getElementById(field.getAttribute("aria-describedby") ?? "")?.textContent]);
  const wrong: [name: string, text: string, value: string, words: string][] = [
    ["Channels in", "1000", "16", "16 is the page’s limit: set in place of “1000”."],
    ["Samples", "5", "4", "4 is the page’s limit: set in place of “5”."],
    ["Dilation", "1.5", "1", "Expected a whole number from 1 to 64, got “1.5”: still 1."],
    ["Dilation", "abc", "1", "Expected a whole number from 1 to 64, got “abc”: still 1."],
    ["Dilation", "-1", "1", "1 is the least: set in place of “-1”."],
    ["Input H", "1000", "64", "64 is the page’s limit: set in place of “1000”."],
  ];
  for (const [name, text, value, words] of wrong) {
    await type(page, name, text, text === "5" ? "Tab" : "Enter");
    expect(await said(name)).toEqual(["true", words]);
    expect(await number(page, name).inputValue()).toBe(value);
    await settled(page);
    expect(await said(name)).toEqual(["true", words]);
  }
  expect(await serious(page)).toEqual([]);
  await type(page, "Input H", "9");
  expect(await page.locator("[aria-invalid], .refusal").count()).toBe(0);
  const range = (name: string) => number(page, name).evaluate((field) => ["min", "max", "now"].map((part) => field.getAttribute(`aria-value${part}`)));
  expect(await range("Input H")).toEqual(["1", "64", "9"]);
  await settled(page);
  await done();
});

it("where the service refuses what was set in place of what was typed, both are said", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1, config: {} }), { expected: /422/ });
  await type(page, "Dilation", "100");
  const field = page.locator('[data-field="dilation"]');
  await field.getByText("64 is not possible").waitFor();
  expect(await field.getByRole("alert").allTextContents()).toEqual([
    "64 is the page’s limit: set in place of “100”.", expect.stringMatching(/^64 is not possible/),
  ]);
  await page.getByRole("button", { name: "increase Samples" }).click();
  await settled(page);
  expect(await page.locator(".refusal").count()).toBe(0);
  await done();
});

it("what is said of one act is over with the next: an edit, another size, another operation", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1, config: {} }), { permissions: ["clipboard-read", "clipboard-write"] });
  const next: [string, () => Promise<unknown>][] = [
    ["edit", async () => {
      await page.locator(grid("x")).focus();
      await page.keyboard.type("5");
      await page.keyboard.press("Enter");
    }],
    ["size", () => page.getByRole("button", { name: "increase Input W" }).click()],
    ["operation", () => page.getByRole("combobox", { name: "Operation" }).selectOption("max_pool")],
    ["example", () => page.getByRole("combobox", { name: "Example" }).selectOption("1")],
  ];
  for (const [name, act] of next) {
    await page.evaluate(() => navigator.clipboard.writeText("8 nine"));
    await page.locator(grid("x")).focus();
    await page.keyboard.press("Control+V");
    await page.locator(".notice", { hasText: "Nothing was pasted" }).waitFor();
    await act();
    expect(await page.locator(".notice").count(), name).toBe(0);
    await settled(page);
  }
  await done();
});

it("what the service refused is settled by the old value, typed again", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 4, o: 4 }), { expected: /422/ });
  await type(page, "Groups", "3");
  const refusal = page.locator('[data-field="groups"] .refusal');
  await refusal.getByRole("button").waitFor();
  await type(page, "Groups", "1");
  await refusal.waitFor({ state: "detached" });
  await settled(page);
  await done();
});

it("buttons say what they do, and fields \"auto\" only where the service settles their value", async () => {
  const { page, done } = await open(browser, link({ op: "conv" }));
  for (const name of ["decrease Samples", "increase Stride"]) expect(await page.getByRole("button", { name, exact: true }).count(), name).toBe(1);
  const empty = (name: string) => number(page, name).evaluate((field) => ["placeholder", "aria-valuetext"].map((word) => field.getAttribute(word)));
  expect(await empty("Stride")).toEqual(["", null]);
  expect(await empty("Input W")).toEqual(["", null]);
  await go(page, link({ op: "max_pool", config: { kernel: 3 } }));
  expect([await empty("Stride"), await empty("Kernel")]).toEqual([["auto", "auto"], ["", null]]);
  await go(page, link({ op: "adaptive_avg_pool", config: { output_size: null } }));
  expect(await empty("Output size")).toEqual(["same", "same"]);
  await done();
});

it("a diagonal stays one in every size, and all of it comes back; a link has what is on show", async () => {
  const how = { permissions: ["clipboard-read", "clipboard-write"] };
  const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1, size: "5.5", x: "zeros.1", config: {} }), how);
  await page.locator(grid("x")).focus();
  await page.keyboard.press("Control+Home");
  for (let at = 0; at < 5; at += 1) {
    await page.keyboard.type(String(at + 1));
    await page.keyboard.press("Enter");
    for (const key of ["ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  }
  const x = (of: Page) => of.evaluate(() => Array.from(window.convoke.value("x")));
  const diagonal = (side: number) => Array.from({ length: side * side }, (_, at) => (at % (side + 1) === 0 && at < 5 * side ? at / (side + 1) + 1 : 0));
  await expect.poll(() => x(page)).toEqual(diagonal(5));
  const size = async (side: number) => {
    for (const name of ["Input H", "Input W"]) await type(page, name, String(side));
    await settled(page);
    expect(await x(page), String(side)).toEqual(diagonal(side));
  };
  const shared = async () => {
    await page.getByRole("button", { name: "Share" }).click();
    await page.getByText("is on the clipboard").waitFor();
    const again = await open(browser, new URL(await page.evaluate(() => navigator.clipboard.readText())).hash);
    expect(await x(again.page)).toEqual(await x(page));
    await again.done();
  };
  await size(6);
  await shared();
  await size(3);
  await shared();
  await size(5);
  await size(7);
  await done();
});

it("the layer that is kept where a link's is refused keeps its numbers, and takes none meanwhile", async () => {
  const layer = { op: "conv", c: 1, o: 1, size: "4.4", x: "zeros.1" };
  const { page, done } = await open(browser, link({ ...layer, config: {} }), { expected: /422/ });
  let release = () => undefined as void;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/v1/**", async (route) => {
    await held;
    await route.continue();
  });
  await page.evaluate((hash) => {
    location.hash = hash;
  }, link({ ...layer, x: "ones.1", config: { dilation: 60 } }));
  await page.locator('.page[data-stale="1"]').waitFor();
  await page.locator(grid("x")).focus();
  await page.keyboard.type("7");
  await page.keyboard.press("Enter");
  await page.locator(".notice", { hasText: "Nothing was changed" }).waitFor();
  release();
  await page.locator(".notice", { hasText: "The one before it is kept" }).waitFor();
  await settled(page);
  expect(await page.evaluate(() => Array.from(window.convoke.value("x")))).toEqual(Array(16).fill(0));
  await done();
});
