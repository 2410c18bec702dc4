/** Numbers to and from spreadsheets and programs, by the clipboard and the keyboard alone. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asking, go, grid, launch, link, open, settled } from "./browser";
import { serious } from "./serious";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const LAYER = { op: "conv", c: 2, o: 1, size: "4.4", x: "zeros.1", config: {}, cell: "x.0.0.0.0.0" };
const permissions = ["clipboard-read", "clipboard-write"];
const value = (page: Page, role: "x" | "weight" | "dy" | "dx" | "indices") => page.evaluate((name) => window.convoke.value(name), role);
const notice = (page: Page) => page.locator(".notice");

async function paste(page: Page, role: string, text: string): Promise<void> {
  await page.locator(grid(role)).focus();
  await page.evaluate((given) => navigator.clipboard.writeText(given), text);
  await page.keyboard.press("Control+V");
}

it("a block is pasted from the chosen cell on, as one change that a link has", async () => {
  const { page, done } = await open(browser, link(LAYER), { permissions });
  await page.waitForLoadState("networkidle");
  const asked = asking(page);
  await page.locator(grid("x")).focus();
  for (const key of ["Control+Home", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  await paste(page, "x", "1\t2,5\r\n-3\t0,125\r\n");
  await page.waitForFunction(() => window.convoke.value("x")[5] === 1);
  expect((await value(page, "x")).slice(0, 16)).toEqual([0, 0, 0, 0, 0, 1, 2.5, 0, 0, -3, 0.125, 0, 0, 0, 0, 0]);
  expect(await notice(page).textContent()).toContain("4 numbers (2 × 2) pasted into X, from [0, 0, 1, 1] on.");
  expect(asked).toEqual(["/v1/conv/backward"]);
  await settled(page);
  expect(await page.locator(".cell-name").textContent()).toContain("X[0, 0, 1, 1]=1");
  await page.waitForFunction(() => location.hash.includes("0.125"));
  const after = await value(page, "dx");
  const again = await open(browser, new URL(page.url()).hash);
  expect(await value(again.page, "dx")).toEqual(after);
  await again.done();
  await done();
});

it("weights and dY take a list of Python's and NumPy's print, and the plane on show is the one that is filled", async () => {
  const { page, done } = await open(browser, link({ ...LAYER, pick: "0.1.0.0.0.0", cell: "weight.0.1.0.0.0" }), { permissions });
  await paste(page, "weight", "np.array([[1, 2, 3],\n          [4, 5, 6],\n          [7, 8, 9]])");
  await page.waitForFunction(() => window.convoke.value("weight")[17] === 9);
  expect((await value(page, "weight")).slice(9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await page.locator(grid("dy")).focus();
  await page.keyboard.press("Control+Home");
  await paste(page, "dy", "[[ 0.5 -1. ]\n [ 2.   3. ]]");
  await page.waitForFunction(() => window.convoke.value("dy")[3] === 3);
  expect(await value(page, "dy")).toEqual([0.5, -1, 2, 3]);
  await settled(page);
  await done();
});

it("what does not fit is left out, what is no number is named and changes nothing", async () => {
  const { page, done } = await open(browser, link({ ...LAYER, cell: "x.0.0.0.2.2" }), { permissions });
  await page.waitForLoadState("networkidle");
  await paste(page, "x", "1 2 3\n4 5 6\n7 8 9");
  await page.waitForFunction(() => window.convoke.value("x")[15] === 5);
  expect(await notice(page).textContent()).toContain("4 of 9 numbers (3 × 3) pasted into X, from [0, 0, 2, 2] on; 5 beyond its edge left out.");
  expect((await value(page, "x")).slice(0, 16)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 4, 5]);
  const before = await value(page, "x");
  const asked = asking(page);
  await paste(page, "x", "6 7\n8 nine");
  await notice(page).getByText("Nothing was pasted into X. Row 2, column 2: expected a finite number, got “nine”.").waitFor();
  await paste(page, "dx", "6");
  await notice(page).getByText("dX is worked out from the others").waitFor();
  expect(asked).toEqual([]);
  expect(await value(page, "x")).toEqual(before);
  await go(page, link({ op: "max_unpool", cell: "indices.0.0.0.0.0" }));
  await paste(page, "indices", "0 49");
  await notice(page).getByText("Row 1, column 2: expected a whole number from 0 to 48, got “49”.").waitFor();
  await paste(page, "indices", "48");
  await page.waitForFunction(() => window.convoke.value("indices")[0] === 48);
  await settled(page);
  await done();
});

it("what is pasted while another size is awaited stands where it was pasted; nothing is, while another layer is", async () => {
  const { page, done } = await open(browser, link({ ...LAYER, c: 1 }), { permissions });
  let release = () => undefined as void;
  let held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/v1/**", async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole("button", { name: "increase Input W" }).click();
  await page.locator('.page[data-stale="1"]').waitFor();
  await paste(page, "x", "1 2\n3 4");
  release();
  await page.waitForFunction(() => window.convoke.value("x").length === 20);
  await settled(page);
  const block = [1, 2, 0, 0, 0, 3, 4, ...Array<number>(13).fill(0)];
  expect(await value(page, "x")).toEqual(block);
  held = new Promise((resolve) => (release = resolve));
  await page.getByRole("combobox", { name: "Operation" }).selectOption("max_pool");
  await page.locator('.page[data-stale="1"]').waitFor();
  await paste(page, "x", "5 6");
  await notice(page).getByText("Nothing was pasted into X: the layer has changed, and its grids have yet to follow.").waitFor();
  release();
  await settled(page);
  expect((await value(page, "x")).includes(5)).toBe(false);
  await done();
});

it("a block goes from the field of a cell to the grid, one number into the field", async () => {
  const { page, done } = await open(browser, link(LAYER), { permissions });
  await page.locator(grid("x")).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Enter");
  const editor = page.locator(".grid-editor");
  await page.evaluate(() => navigator.clipboard.writeText("8\t9\n"));
  await page.keyboard.press("Control+V");
  await page.waitForFunction(() => window.convoke.value("x")[1] === 9);
  expect(await editor.count()).toBe(0);
  expect((await value(page, "x")).slice(0, 3)).toEqual([8, 9, 0]);
  await page.keyboard.press("Enter");
  await page.evaluate(() => navigator.clipboard.writeText("-7,5"));
  await page.keyboard.press("Control+V");
  expect(await editor.inputValue()).toBe("-7,5");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.convoke.value("x")[0] === -7.5);
  await done();
});

it("what is typed and no number is named below it, and stays to be mended or given up", async () => {
  const { page, done } = await open(browser, link({ ...LAYER, x: "ones.1~0:Infinity" }), { permissions });
  await page.waitForLoadState("networkidle");
  const before = await value(page, "x");
  const asked = asking(page);
  const editor = page.locator(".grid-editor");
  const refused = page.locator(".grid-refusal");
  const type = async (role: string, text: string, end: string) => {
    await page.locator(grid(role)).focus();
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Enter");
    await editor.fill(text);
    await page.keyboard.press(end);
  };
  const wrong = [["abc", "Enter"], ["1/2", "Tab"], ["1 000", "Enter"], ["-Infinity", "Enter"], ["0x10", "Tab"]] as const;
  const large = [["1e400", "Tab"], ["1e39", "Enter"]] as const;
  for (const [all, expected] of [[wrong, "a finite number"], [large, "a number within float32, up to 3.4e38"]] as const) {
    for (const [text, end] of all) {
      await type("x", text, end);
      expect(await refused.textContent()).toBe(`Expected ${expected}, got “${text}”.`);
      expect([await editor.inputValue(), await editor.getAttribute("aria-invalid")]).toEqual([text, "true"]);
      expect(await editor.evaluate((field) => document.getElementById(field.getAttribute("aria-describedby")!)!.className)).toContain("grid-refusal");
      expect(await editor.evaluate((field) => field === document.activeElement)).toBe(end === "Enter");
      await editor.press("Escape");
      expect([await editor.count(), await refused.count()]).toEqual([0, 0]);
    }
  }
  // What was there may stay, whatever it is, and nothing is nothing.
  for (const [text, end] of [["Infinity", "Enter"], ["", "Enter"], ["abc", "Escape"]]) {
    await type("x", text, end);
    expect(await editor.count()).toBe(0);
  }
  expect(asked).toEqual([]);
  expect(await value(page, "x")).toEqual(before);
  await type("x", "2,,5", "Enter");
  await refused.waitFor();
  expect(await serious(page)).toEqual([]);
  await editor.fill("2,5");
  await page.keyboard.press("Tab");
  await page.waitForFunction(() => window.convoke.value("x")[0] === 2.5);
  expect([await editor.count(), await refused.count(), await notice(page).count()]).toEqual([0, 0, 0]);
  await go(page, link({ op: "max_unpool", cell: "indices.0.0.0.0.0" }));
  for (const text of ["99", "-1", "2.7"]) {
    await type("indices", text, "Enter");
    expect(await refused.textContent()).toBe(`Expected a whole number from 0 to 48, got “${text}”.`);
    await page.keyboard.press("Escape");
  }
  await settled(page);
  await done();
});

it("a text that was refused and left is not laid over other cells", async () => {
  const { page, done } = await open(browser, link(LAYER), { viewport: { width: 360, height: 740 } });
  await page.locator(grid("x")).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.locator(".grid-editor").fill("abc");
  await page.keyboard.press("Tab");
  await page.locator(".grid-refusal").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await page.getByRole("button", { name: "X, channel 1", exact: true }).click();
  await page.locator(".grid-editor").waitFor({ state: "detached", timeout: 10_000 });
  expect(await page.locator(".grid-refusal").count()).toBe(0);
  await done();
});

it("a double tap opens the field, where there is no keyboard to paste by", async () => {
  const { page, done } = await open(browser, link(LAYER), { permissions, viewport: { width: 390, height: 844 }, hasTouch: true });
  const box = (await page.locator(grid("x")).boundingBox())!;
  for (let tap = 0; tap < 2; tap += 1) await page.touchscreen.tap(box.x + 12, box.y + 12);
  await page.locator(".grid-editor").waitFor();
  await page.evaluate(() => navigator.clipboard.writeText("5\t6\n7\t8"));
  await page.keyboard.press("Control+V");
  await page.waitForFunction(() => window.convoke.value("x")[5] === 8);
  expect((await value(page, "x")).slice(0, 6)).toEqual([5, 6, 0, 0, 7, 8]);
  await done();
});

it("a grid's plane is copied with tabs, as it is on show, and pastes back to the same bits", async () => {
  const { page, done } = await open(browser, link({ ...LAYER, x: "random.4", dims: 2, cell: "dx.0.1.0.0.0", pick: "0.1.0.0.0.0" }), { permissions });
  const copied = async (role: string) => {
    await page.locator(grid(role)).focus();
    await page.keyboard.press("Control+C");
    await notice(page).getByText("on the clipboard").waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const dx = (await copied("dx")).split("\n").map((line) => line.split("\t").map(Number));
  expect(await notice(page).textContent()).toContain("The 4 × 4 numbers of dX on show are on the clipboard");
  expect(dx.map((row) => row.length)).toEqual([4, 4, 4, 4]);
  expect(dx.flat().map(Math.fround)).toEqual((await value(page, "dx")).slice(16));
  const before = await value(page, "x");
  await copied("x");
  await page.locator('[data-tensor="x"] .menu summary').click();
  await page.getByRole("button", { name: "Zeros" }).click();
  await page.waitForFunction(() => window.convoke.value("x").every((one) => one === 0));
  await page.locator(grid("x")).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Control+V");
  await page.waitForFunction(() => window.convoke.value("x").some(Boolean));
  expect((await value(page, "x")).slice(16)).toEqual(before.slice(16));
  // What the sweep has not made yet is not on show.
  await go(page, link({ ...LAYER, x: "ones.1", weight: "ones.1", way: "forward", step: 1, cell: "none" }));
  expect(await copied("y")).toBe("18\t\n\t");
  // Beside grids the clipboard is the browser's own affair.
  await page.locator(".sentence, .inspector .hint").first().evaluate((el) => getSelection()!.selectAllChildren(el));
  await page.locator("#tab-trace").focus();
  await page.keyboard.press("Control+C");
  expect((await page.evaluate(() => navigator.clipboard.readText())).length).toBeGreaterThan(10);
  await done();
});

it("the keys for it are those of the system", async () => {
  for (const [platform, named] of [["MacIntel", /⌘ C.*⌘ V/], ["Win32", /Ctrl C.*Ctrl V/]] as const) {
    const { page, done } = await open(browser, "", {
      before: async (fresh) => {
        await fresh.addInitScript((name) => Object.defineProperty(navigator, "platform", { value: name }), platform);
      },
    });
    await page.locator(".key .menu summary").click();
    expect(await page.locator(".keys").textContent()).toMatch(named);
    await done();
  }
});

it("what was pasted and copied is said to screen readers, in any colour and a narrow window", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, done } = await open(browser, link(LAYER), { permissions, colorScheme, viewport: { width: 360, height: 740 } });
    await paste(page, "x", "1 2 3 4 5 6");
    const said = page.getByRole("status").filter({ hasText: "4 of 6 numbers (1 × 6) pasted into X" });
    await said.waitFor();
    expect(await serious(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    await page.locator(".key .menu summary").click();
    expect(await page.locator(".keys").textContent()).toMatch(/Ctrl C.*Ctrl V/);
    await done();
  }
});

it("what is typed or pasted while a change is under way outlives its refusal, which stands beside what was changed", async () => {
  const { page, done } = await open(browser, link({ ...LAYER, c: 1 }), { permissions, expected: /422/ });
  const before = await value(page, "x");
  let release = () => undefined as void;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/v1/**", async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole("spinbutton", { name: "Dilation", exact: true }).fill("60");
  await page.keyboard.press("Enter");
  await page.locator('.page[data-stale="1"]').waitFor();
  await paste(page, "x", "1 2\n3 4");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("7");
  await page.keyboard.press("Enter");
  release();
  await page.locator('[data-field="dilation"] .refusal', { hasText: "60 is not possible" }).waitFor();
  await settled(page);
  expect(await page.getByRole("spinbutton", { name: "Dilation", exact: true }).inputValue()).toBe("1");
  expect(await page.locator(".refusal:visible").allTextContents()).toEqual([expect.stringContaining("60 is not possible")]);
  const after = await value(page, "x");
  expect(after).toHaveLength(before.length);
  expect([0, 1, 4, 5, 15].map((at) => after[at])).toEqual([1, 2, 3, 4, 7]);
  await done();
});
