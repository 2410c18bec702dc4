/** Image by keys, and as answers and pictures come in. */

import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asking, launch, link, open } from "./browser";

declare global {
  interface Window {
    /** How often a picture was. */
    decoded?: number;
  }
}

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const OWN = 'input[aria-label="A picture of your own"]';
const DOT = {
  name: "dot.gif", mimeType: "image/gif", buffer: Buffer.from("R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==", "base64"),
};

it("has maps that are walked by keys, each step asking for its unit's gradient alone", async () => {
  const { page, done } = await open(browser, link({ view: "image" }), {
    before: async (fresh) => {
      await fresh.addInitScript(() => {
        const decode = window.createImageBitmap;
        window.createImageBitmap = ((blob: Blob) => {
          window.decoded = (window.decoded ?? 0) + 1;
          return decode(blob);
        }) as typeof decode;
      });
    },
  });
  await page.locator(OWN).setInputFiles(DOT);
  await page.locator(".closeup", { hasText: "is 0." }).waitFor();
  const at = (words: string) => page.locator(".closeup strong", { hasText: words }).waitFor();
  const focused = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset.map);
  await page.locator("[data-map=feature-1]").focus();
  await page.keyboard.press("Control+Home");
  await at("Feature map Sobel ↓, row 0, column 0");
  await page.waitForLoadState("networkidle");
  const asked = asking(page);
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
  await at("Feature map Sobel ↓, row 1, column 2");
  expect(await focused()).toBe("feature-1");
  await page.locator("[data-map=pooled-2]").focus();
  await page.keyboard.press("Control+End");
  await at("Pooled map Laplace, row 31, column 31");
  expect(await focused()).toBe("pooled-2");
  expect([...new Set(asked)].sort()).toEqual(["/v1/conv/backward", "/v1/max_pool/backward"]);
  expect(await page.evaluate(() => window.decoded)).toBe(1);
  await done();
});

it("shows a picture in the size that is asked for, though another size of it came later", async () => {
  const { page, done } = await open(browser, link({ view: "image" }), {
    before: async (fresh) => {
      await fresh.addInitScript(() => {
        const decode = window.createImageBitmap;
        window.createImageBitmap = (async (blob: Blob) => {
          window.decoded = (window.decoded ?? 0) + 1;
          // The second, of those below.
          if (window.decoded === 2) await new Promise((resolve) => setTimeout(resolve, 600));
          return decode(blob);
        }) as typeof decode;
      });
    },
  });
  await page.locator(OWN).setInputFiles(DOT);
  await page.locator(".closeup", { hasText: "is 0." }).waitFor();
  const pixels = page.getByRole("radiogroup", { name: "Pixels" });
  await pixels.getByRole("radio", { name: "48" }).click();
  await pixels.getByRole("radio", { name: "96" }).click();
  await page.getByText("4 × 96 × 96").waitFor();
  await page.waitForTimeout(900);
  await page.getByRole("radiogroup", { name: "Stride" }).getByRole("radio", { name: "2" }).click();
  await page.getByText("4 × 24 × 24").waitFor();
  await done();
});

it("shows and exports no gradient but that of the maps on show, which comes after them or never", async () => {
  const { page, done } = await open(browser, link({ view: "image", image: "64~3~1~1~2~laplace.blur.sharpen~f.2.46.52~" }), {
    viewport: { width: 360, height: 800 }, expected: /Failed to load|ERR_/,
  });
  const unit = page.locator(".closeup");
  const shown = async (name: string) => {
    await unit.getByText(`Feature map ${name}, row 46, column 52`).waitFor();
    expect(await unit.getByRole("grid", { name: "Gradient" }).textContent()).toContain("row 45, column 51: ");
    expect(await page.locator("[data-map=gradient-0]").isVisible()).toBe(true);
    expect(await exported()).toContain(">Gradient<");
  };
  const missing = async (maps: string) => {
    await page.getByText(maps).first().waitFor();
    expect(await page.locator(".closeup:visible, [data-map=gradient-0]:visible").count()).toBe(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    expect(await exported()).not.toContain(">Gradient<");
  };
  const exported = async () => {
    const menu = page.locator(".bar .menu");
    if (await menu.getAttribute("open") === null) await menu.locator("summary").click();
    const [download] = await Promise.all([page.waitForEvent("download"), menu.getByRole("button", { name: "SVG" }).click()]);
    await page.keyboard.press("Escape");
    return readFileSync(await download.path(), "latin1");
  };
  await shown("Sharpen");
  const acts = { "2 × 64 × 64": page.getByRole("button", { name: "Sharpen" }), "2 × 96 × 96": page.getByRole("radio", { name: "96" }) };
  for (const [maps, control] of Object.entries(acts)) {
    const held: (() => void)[] = [];
    await page.route("**/backward", async (route) => {
      await new Promise<void>((resolve) => held.push(resolve));
      // It may have been given up by then.
      await route.continue().catch(() => undefined);
    });
    await control.click();
    await missing(maps);
    await page.unroute("**/backward");
    for (const release of held) release();
    await shown("Blur");
  }
  await page.route("**/backward", (route) => route.abort());
  await page.getByRole("radio", { name: "128" }).click();
  await page.locator('[data-trouble="offline"]').waitFor();
  await missing("2 × 128 × 128");
  await done();
});

it("keeps its maps where another answer comes, and gives them the names of other filters", async () => {
  const { page, done } = await open(browser, link({ view: "image" }));
  const map = page.locator("[data-map=feature-0]");
  const first = await map.elementHandle();
  await page.getByRole("radiogroup", { name: "Stride" }).getByRole("radio", { name: "2" }).click();
  await page.getByText("4 × 32 × 32").waitFor();
  expect(await first!.evaluate((element) => element.isConnected)).toBe(true);
  await page.getByRole("button", { name: "Sobel →" }).click();
  await page.getByText("3 × 32 × 32").waitFor();
  expect(await map.getAttribute("aria-label")).toBe("Feature maps: Sobel ↓");
  await done();
});

it("has a filter of one's own that keys cross without a change, and that a press changes", async () => {
  const { page, done } = await open(browser, link({ view: "image" }));
  await page.locator("[data-map=feature-3]").waitFor();
  const drawn = page.locator('[data-filter="drawn"]');
  const cell = () => drawn.getByRole("gridcell").textContent();
  const filters = page.getByRole("group", { name: "Filters" });
  await drawn.focus();
  for (const [key, words] of [["ArrowRight", "row 0, column 1: 0"], ["ArrowDown", "row 1, column 1: 0"], ["ArrowLeft", "row 1, column 0: 0"]]) {
    await page.keyboard.press(key);
    expect(await cell()).toBe(words);
  }
  expect(await drawn.getByRole("gridcell").getAttribute("aria-selected")).toBe("true");
  expect(await filters.getByRole("button", { name: "Drawn" }).getAttribute("aria-pressed")).toBe("false");
  await page.keyboard.press("Enter");
  expect(await drawn.getByRole("textbox").inputValue()).toBe("0");
  await page.keyboard.type("-2");
  await page.keyboard.press("Enter");
  expect([await cell(), await page.evaluate(() => (document.activeElement as HTMLElement).dataset.filter)]).toEqual(["row 1, column 0: -2", "drawn"]);
  expect(await filters.getByRole("button", { name: "Drawn" }).getAttribute("aria-pressed")).toBe("true");
  await drawn.click({ position: { x: 37, y: 37 } });
  expect(await cell()).toBe("row 2, column 2: 0.5");
  // Fewer cells than there were, and none of them chosen.
  await drawn.click({ position: { x: 70, y: 70 } });
  await page.getByRole("radiogroup", { name: "Kernel" }).getByRole("radio", { name: "3" }).click();
  expect(await drawn.getByRole("gridcell").getAttribute("aria-selected")).toBe("false");
  await done();
});

it("says why a number typed into the drawn filter is not taken", async () => {
  const { page, done } = await open(browser, link({ view: "image" }));
  await page.locator("[data-filter=drawn]").focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Enter");
  await page.locator(".grid-editor").fill("1/2");
  await page.keyboard.press("Enter");
  await page.locator("[data-filter=drawn]").getByText("Expected a finite number, got “1/2”.").waitFor();
  expect(await page.locator(".grid-editor").inputValue()).toBe("1/2");
  await done();
});

it("says that a picture of one's own is not in the link, to who shares it and to who opens it", async () => {
  const { page, done } = await open(browser, link({ view: "image" }), { permissions: ["clipboard-read", "clipboard-write"] });
  const said = page.locator(".notice");
  await page.getByRole("button", { name: "Share" }).click();
  await said.getByText("The link to exactly this view is on the clipboard.").waitFor();
  await page.locator(OWN).setInputFiles(DOT);
  await page.waitForFunction(() => location.hash.includes("own=1"));
  await page.getByRole("button", { name: "Share" }).click();
  await said.getByText("The link to this view is on the clipboard. Your picture is not part of it.").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  for (const reopened of [() => page.reload(), () => page.goto("about:blank").then(() => page.goto(copied))]) {
    await reopened();
    await said.getByText("This view was of a picture of one’s own, which no link has: the sample is shown instead.").waitFor();
  }
  // From here on it is of the sample.
  await page.waitForFunction(() => !location.hash.includes("own=1"));
  await page.reload();
  await page.locator("[data-map=feature-0]").waitFor();
  expect(await said.count()).toBe(0);
  await done();
});

it("says that a file is no picture no longer than to the next one", async () => {
  const { page, done } = await open(browser, link({ view: "image" }));
  const refused = page.locator(".notice", { hasText: "not a picture that the browser can read" });
  for (const next of [() => page.locator(OWN).setInputFiles(DOT), () => page.getByRole("radio", { name: "48" }).click()]) {
    await page.locator(OWN).setInputFiles({ name: "no.png", mimeType: "image/png", buffer: Buffer.from("no") });
    await refused.waitFor();
    await next();
    await refused.waitFor({ state: "detached" });
  }
  await done();
});
