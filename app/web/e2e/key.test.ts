/** A service that answers only to those with a key. */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asking, go, launch, link, open, settled } from "./browser";
import { PYTHON, start, type Started } from "./service";
import { serious } from "./serious";

const run = promisify(execFile);
const KEY = "correct-horse-battery-staple";
const OTHER = "another-key-of-somebody";

let browser: Browser;
let service: Started;
beforeAll(async () => {
  [browser, service] = await Promise.all([launch(), start({ CONVOKE_API_KEYS: `${KEY},${OTHER}` })]);
});
afterAll(async () => {
  await Promise.all([browser.close(), service.end()]);
});

const bar = (page: Page) => page.locator('[data-trouble="key"]');
const field = (page: Page) => bar(page).getByLabel("Key");

/** The page without a key: it says so. */
async function locked(hash = "", how: object = {}) {
  const opened = await open(browser, hash, { base: service.url, expected: /401|403/, ready: false, ...how });
  await bar(opened.page).waitFor();
  return opened;
}

async function unlock(page: Page, key = KEY): Promise<void> {
  await field(page).fill(key);
  await page.keyboard.press("Enter");
  await settled(page);
}

/** What each view shows of an answer. */
const SIGNS = {
  trace: ".total", verify: '[data-state="done"]', checkerboard: '[data-picture="transposed"][data-side="13"]', request: ".stages tfoot", image: "[data-map=gradient-0]",
};

it("is asked for in plain words, is typed unseen, and opens every view", async () => {
  const { page, done } = await locked();
  expect(await bar(page).getByRole("status").first().textContent()).toBe("This service needs a key. Whoever runs it can give you one.");
  expect(await page.locator(".connection").textContent()).toBe("locked");
  expect(await field(page).getAttribute("type")).toBe("password");
  await unlock(page);
  expect(await bar(page).count()).toBe(0);
  // What had the focus is gone: it is at the view that was opened.
  expect(await page.evaluate(() => document.activeElement!.id)).toBe("tab-trace");
  await page.locator('[data-field="stride"]').waitFor();
  const refused: string[] = [];
  page.on("response", (response) => {
    if (!response.ok()) refused.push(`${response.status()} ${response.url()}`);
  });
  for (const [view, sign] of Object.entries(SIGNS)) {
    await go(page, link({ view }));
    await page.locator(sign).waitFor();
  }
  expect(refused).toEqual([]);
  await done();
});

it("opens a view that was waiting for it", async () => {
  for (const [view, sign] of Object.entries(SIGNS)) {
    const { page, done } = await locked(link({ view }));
    expect(await page.locator(sign).count()).toBe(0);
    await unlock(page);
    await page.locator(sign).waitFor();
    expect(await page.evaluate(() => document.activeElement!.id)).toBe(`tab-${view}`);
    await done();
  }
});

it("is asked for once, not again and again, until there is one", async () => {
  const { page, done } = await locked();
  await page.waitForLoadState("networkidle");
  const asked = asking(page);
  await page.waitForTimeout(2500);
  expect(asked).toEqual([]);
  await done();
});

it("that is wrong is told as that, and another may be typed over it", async () => {
  const { page, done } = await locked();
  await field(page).focus();
  await page.keyboard.type("a wrong one");
  await page.keyboard.press("Enter");
  expect(await bar(page).locator(".hint").textContent()).toContain("no spaces");
  expect(await field(page).getAttribute("aria-invalid")).toBe("true");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await bar(page).getByText("The service did not take this key.").waitFor();
  expect(await field(page).getAttribute("aria-invalid")).toBeNull();
  await page.keyboard.type(`Bearer ${KEY}`);
  await page.keyboard.press("Enter");
  await settled(page);
  await done();
});

it("stays for this tab alone, and can be changed and forgotten", async () => {
  const { page, done } = await locked();
  await unlock(page);
  await page.reload();
  await settled(page);
  const menu = page.locator(".bar .menu", { has: page.getByLabel("The key in use") });
  await menu.locator("summary").click();
  const sent = page.waitForRequest((request) => request.headers().authorization === `Bearer ${OTHER}`);
  await menu.getByLabel("Key", { exact: true }).fill(OTHER);
  await menu.getByRole("button", { name: "Use this key" }).click();
  await sent;
  await settled(page);
  expect(await page.evaluate(() => document.activeElement!.getAttribute("aria-label"))).toBe("The key in use");
  const beside = await page.context().newPage();
  await beside.goto(service.url);
  await bar(beside).waitFor();
  await beside.close();
  await menu.locator("summary").click();
  await menu.getByRole("button", { name: "Forget the key" }).click();
  await bar(page).waitFor();
  expect(await bar(page).textContent()).toContain("This service needs a key.");
  expect(await bar(page).textContent()).toContain("What you see is its last answer.");
  expect(await menu.count()).toBe(0);
  expect(await page.evaluate(() => [sessionStorage.length, document.activeElement!.id])).toEqual([0, "tab-trace"]);
  await done();
});

it("is in no link, file or program, and in no store but the tab's", async () => {
  const { page, done } = await locked("", { permissions: ["clipboard-read", "clipboard-write"] });
  await unlock(page);
  await page.waitForFunction(() => location.hash !== "");
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByText("is on the clipboard").waitFor();
  const texts = [page.url(), await page.evaluate(() => navigator.clipboard.readText())];
  await page.locator(".bar .menu summary", { hasText: "Export" }).click();
  const saved = async (button: string) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
    texts.push(readFileSync(await download.path(), "latin1"));
  };
  await saved("JSON the layer");
  await saved("SVG");
  await page.getByRole("tab", { name: "Request" }).click();
  await saved("Save the body as JSON");
  await saved("Save the body as msgpack");
  for (const name of ["curl", "Python", "JavaScript", "PyTorch"]) {
    await page.getByRole("radio", { name }).click();
    texts.push((await page.locator("pre.code").textContent())!);
  }
  texts.push(await page.content(), await page.evaluate(() => JSON.stringify([localStorage, document.cookie, history.state, window.name])));
  expect(texts.map((text) => text.length > 1 && !text.includes(KEY))).toEqual(texts.map(() => true));
  expect(await page.evaluate(() => Object.entries(sessionStorage))).toEqual([["convoke-key /", KEY]]);
  await done();
});

it("goes into the programs of Request by the environment", async () => {
  const folder = mkdtempSync(join(tmpdir(), "convoke-"));
  symlinkSync(join(import.meta.dirname, "../node_modules"), join(folder, "node_modules"));
  const { page, done } = await locked(link({ view: "request" }));
  await unlock(page);
  for (const [name, file, command] of [["curl", "program.sh", "sh"], ["Python", "program.py", PYTHON], ["JavaScript", "program.mjs", process.execPath]]) {
    await page.getByRole("radio", { name }).click();
    writeFileSync(join(folder, file), (await page.locator("pre.code").textContent())!);
    const { stdout } = await run(command, [file], { cwd: folder, env: { ...process.env, SERVICE_KEY: KEY } });
    expect(stdout, name).toMatch(/dweight/);
    expect(stdout, name).not.toContain("Key not valid");
  }
  await done();
  rmSync(folder, { recursive: true });
});

it("is asked for and used by the keyboard, in every window and colour, and axe finds nothing serious", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, done } = await locked("", { colorScheme, viewport: { width: 360, height: 740 } });
    expect(await serious(page)).toEqual([]);
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
    expect(await wide()).toBeLessThanOrEqual(360);
    while (!(await field(page).evaluate((el) => el === document.activeElement))) await page.keyboard.press("Tab");
    await page.keyboard.type(KEY);
    await page.keyboard.press("Enter");
    await settled(page);
    await page.locator(".bar .menu summary", { hasText: "Key" }).press("Enter");
    expect(await serious(page)).toEqual([]);
    expect(await wide()).toBeLessThanOrEqual(360);
    await done();
  }
});

it("is needed for what computes alone, and the reference takes one", async () => {
  const { page, done } = await locked();
  const status = async (path: string) => (await page.request.get(new URL(path, service.url).href)).status();
  for (const path of ["", "docs", "openapi.json", "livez", "readyz", "version", "icon.svg", "problems/unauthorized"]) expect(await status(path), path).toBe(200);
  for (const path of ["v1/operations", "v1/limits"]) expect(await status(path), path).toBe(401);
  await page.goto(new URL("docs#/service", service.url).href);
  await page.getByRole("button", { name: "Authorize" }).first().click();
  await page.locator(".auth-container input").fill(KEY);
  await page.locator(".auth-container").getByRole("button", { name: "Apply credentials" }).click();
  await page.locator(".auth-btn-wrapper").getByRole("button", { name: "Close" }).click();
  const limits = page.locator(".opblock", { hasText: "/v1/limits" });
  await limits.locator(".opblock-summary-control").click();
  await limits.getByRole("button", { name: "Try it out" }).click();
  await limits.getByRole("button", { name: "Execute" }).click();
  await limits.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
  await done();
});
