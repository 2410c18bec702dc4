/** For every hand and eye: keyboard alone, screen readers, colour schemes, contrast, small windows. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { go, grid, launch, link, open, resize, settled } from "./browser";
import { serious } from "./serious";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const VIEWS = ["trace", "verify", "checkerboard", "request", "image"];

async function ready(page: Page, view: string): Promise<void> {
  if (view === "verify") await page.locator('[data-state="done"]').waitFor();
  if (view === "image") await page.locator("[data-map=gradient-0]").waitFor();
  if (view === "checkerboard") await page.locator('[data-picture="transposed"][data-side="13"]').waitFor();
  await page.waitForTimeout(150);
}

for (const colorScheme of ["light", "dark"] as const) {
  describe(`in ${colorScheme}`, () => {
    it("axe finds nothing serious in any view", async () => {
      for (const view of VIEWS) {
        const { page, done } = await open(browser, link({ view }), { colorScheme });
        await ready(page, view);
        expect(await serious(page), view).toEqual([]);
        await done();
      }
    });

    it("nothing is wider than a window of 360 pixels, nor than others on the way to a wide one", async () => {
      for (const view of VIEWS) {
        const { page, done } = await open(browser, link({ view }), { colorScheme, viewport: { width: 360, height: 740 }, hasTouch: true });
        await ready(page, view);
        for (const width of [360, 480, 620, 768, 900, 1024, 1240]) {
          await page.setViewportSize({ width, height: 740 });
          await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: `${view} ${width}` }).toBeLessThanOrEqual(width);
        }
        await done();
      }
    });
  });
}

/** Which of Trace's grids, their menus and the Inspector lie over one another. */
function overlaps(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const boxes = [...document.querySelectorAll("[data-tensor] canvas, .tensor-head .menu, .inspector")].map((one) => ({
      name: one.closest<HTMLElement>("[data-tensor]")?.dataset.tensor ?? "Inspector", box: one.getBoundingClientRect(),
    }));
    return boxes.flatMap(({ name, box: a }, at) => boxes.slice(at + 1)
      .filter(({ box: b }) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
      .map((other) => `${name} and ${other.name}`));
  });
}

describe("keyboard", () => {
  it("reaches every view and works in Trace without a mouse", async () => {
    const { page, done } = await open(browser);
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement!.id)).toBe("tab-trace");
    for (const view of [...VIEWS.slice(1), "trace"]) {
      await page.keyboard.press("ArrowRight");
      expect(await page.evaluate(() => document.activeElement!.id)).toBe(`tab-${view}`);
      await page.locator(`#view[aria-labelledby="tab-${view}"]`).waitFor();
    }
    const reached = new Set<string>();
    for (let i = 0; i < 90; i += 1) {
      await page.keyboard.press("Tab");
      const role = await page.evaluate(() => (document.activeElement as HTMLElement)?.dataset.role);
      if (role) reached.add(role);
      if (role === "dx") break;
    }
    expect([...reached]).toEqual(["x", "weight", "y", "dx"]);
    await page.keyboard.press("Control+Home");
    expect(await page.locator(".inspector [aria-live]").textContent()).toMatch(/^dX\[0, 0, 0, 0\] = .+, from \d+ outputs?$/);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    expect(await page.locator(".cell-name").textContent()).toContain("[0, 0, 1, 1]");
    const focus = await page.locator(grid("dx")).evaluate((el) => getComputedStyle(el).outlineStyle);
    expect(focus).toBe("solid");
    await page.keyboard.press("]");
    expect(await page.locator(".cell-name").textContent()).toContain("[0, 1, 1, 1]");
    await page.keyboard.press("End");
    expect(await page.locator(".cell-name").textContent()).toContain("[0, 1, 1, 6]");
    await page.keyboard.press("f");
    expect(await page.getByRole("radio", { name: "Forward" }).getAttribute("aria-checked")).toBe("true");
    await page.keyboard.press(".");
    expect(await page.locator(".steps").textContent()).toBe("1 / 9");
    await page.keyboard.press("Escape");
    expect(await page.locator(".cell-name").count()).toBe(0);
    await done();
  });

  it("goes on after a press on what takes no focus itself, as buttons do not in Safari", async () => {
    const { page, done } = await open(browser);
    const menu = page.locator('[data-tensor="x"] .menu');
    await menu.locator("summary").click();
    await menu.locator(".menu-panel").click({ position: { x: 4, y: 4 } });
    await page.keyboard.press("Escape");
    expect(await menu.getAttribute("open")).toBeNull();
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe("SUMMARY");
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByRole("button", { name: "Settings" }).click();
    await page.locator(".settings h2").first().click();
    await page.keyboard.press("Escape");
    expect(await page.locator(".settings").isVisible()).toBe(false);
    expect(await page.locator(".cell-name").count()).toBe(1);
    await done();
  });

  it("goes to the grid that was painted on", async () => {
    const { page, done } = await open(browser);
    await page.locator('[data-tensor="x"] .menu summary').click();
    await page.getByRole("button", { name: "Paint with" }).click();
    await page.locator(".wordmark").click();
    await page.locator(grid("x")).click({ position: { x: 12, y: 12 } });
    await page.keyboard.press("ArrowRight");
    expect(await page.locator(".cell-name").textContent()).toContain("[0, 0, 0, 1]");
    await settled(page);
    await done();
  });

  it("names grids and their cells for a screen reader", async () => {
    const { page, done } = await open(browser);
    const tree = await page.locator(grid("dx")).ariaSnapshot();
    expect(tree).toContain('grid "dX, input gradient"');
    expect(tree).toMatch(/gridcell "dX\[0, 0, 2, 4\] = 29, from 8 terms"/);
    const counts = await page.locator(grid("dx")).evaluate((el) => [el.getAttribute("aria-rowcount"), el.getAttribute("aria-colcount")]);
    expect(counts).toEqual(["7", "7"]);
    await done();
  });
});

it("a sweep that plays says nothing, and where it was ended its cell", async () => {
  const { page, done } = await open(browser, link({ op: "conv", x: "random.1" }));
  const spoken = page.locator(".inspector [aria-live]");
  expect(await spoken.textContent()).not.toBe("");
  await page.evaluate(() => {
    const said: string[] = [];
    const live = document.querySelector(".inspector [aria-live]")!;
    new MutationObserver(() => said.push(live.textContent!)).observe(live, { childList: true, characterData: true, subtree: true });
    Object.assign(window, { said });
  });
  await page.locator("select[aria-label=Speed]").selectOption("8");
  await page.getByRole("button", { name: "Play the sweep" }).click();
  await page.waitForFunction(() => document.querySelector(".steps")!.textContent === "9 / 9" && document.querySelector(".play")!.getAttribute("aria-label") === "Play the sweep");
  await expect.poll(() => spoken.textContent()).toMatch(/^dY\[0, 0, 2, 2\] = /);
  const said = await page.evaluate(() => (window as unknown as { said: string[] }).said.filter(Boolean));
  expect(new Set(said).size).toBe(1);
  await done();
});

describe("wishes of the system", () => {
  it("forced colours leave the data's colours alone, reduced motion moves nothing", async () => {
    const { page, done } = await open(browser, "", { forcedColors: "active", reducedMotion: "reduce" });
    const kept = await page.locator(`${grid("dx")} canvas`).evaluate((el) => getComputedStyle(el).getPropertyValue("forced-color-adjust"));
    expect(kept).toBe("none");
    expect(await page.locator(".stage canvas").first().evaluate((el) => getComputedStyle(el).transitionDuration)).toMatch(/^0s/);
    expect(await page.locator(".steps").textContent()).toBe("9 windows");
    await done();
  });

  it("forced colours show which view, plane and filters are chosen, and where the focus is", async () => {
    const { page, done } = await open(browser, "", { forcedColors: "active" });
    const looks = (selector: string) => page.locator(selector).first().evaluate((el) => {
      const { borderBottomColor, outlineStyle } = getComputedStyle(el);
      return [borderBottomColor, outlineStyle];
    });
    expect((await looks('[role="tab"][aria-selected="true"]'))[0]).not.toBe((await looks('[role="tab"][aria-selected="false"]'))[0]);
    expect((await looks('.thumbnails [aria-pressed="true"]'))[1]).toBe("solid");
    expect((await looks('.thumbnails [aria-pressed="false"]'))[1]).toBe("none");
    await page.keyboard.press("Tab");
    expect((await looks('[role="tab"][aria-selected="true"]'))[1]).toBe("double");
    await go(page, link({ view: "image" }));
    expect((await looks('.filter > [aria-pressed="true"]'))[1]).toBe("solid");
    expect((await looks('.filter > [aria-pressed="false"]'))[1]).toBe("none");
    await done();
  });

  it("a narrow window has the settings over its foot, with the grids in view", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 360, height: 740 }, hasTouch: true });
    const stride = page.getByRole("spinbutton", { name: "Stride", exact: true });
    expect(await stride.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Settings" }).tap();
    await page.getByRole("button", { name: "increase Stride" }).tap();
    await page.waitForFunction(() => window.convoke.value("y").length === 8);
    const foot = (await page.locator(".settings").boundingBox())!.y;
    const shown = (await page.locator(grid("dx")).boundingBox())!;
    expect(shown.y).toBeGreaterThan(0);
    expect(shown.y + shown.height / 2).toBeLessThan(foot);
    await stride.focus();
    await page.keyboard.press("Escape");
    expect(await stride.isVisible()).toBe(false);
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Settings");
    await done();
  });

  it("a window of a laptop has the terms beside the grids", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 1024, height: 768 } });
    const terms = (await page.locator(".terms").boundingBox())!;
    expect(terms.y + terms.height).toBeLessThan(768);
    expect(terms.x).toBeGreaterThan((await page.locator(grid("dy")).boundingBox())!.x);
    await done();
  });

  it("a window of a laptop has the terms whole, products included, whatever their places and digits", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 1024, height: 768 } });
    const numbers = { x: "random.3", weight: "random.4", dy: "random.5" };
    const layers = [
      { op: "conv", n: 2, config: { padding: 1, activation: "tanh" }, ...numbers, cell: "dx.0.0.0.1.2" },
      { op: "conv", n: 2, c: 12, o: 12, size: "40.40", config: { padding: 1 }, ...numbers, cell: "dweight.0.10.0.1.2" },
      { op: "conv", dims: 3, n: 2, c: 12, o: 12, config: { padding: 1, activation: "tanh" }, ...numbers, cell: "dx.0.0.1.1.2" },
      { op: "conv", n: 2, x: "ones.1~0:1e-20,1:1e-21,2:1.234e-22", weight: "ones.1~0:1.23e-12", cell: "y.0.0.0.0.0" },
    ];
    for (const layer of layers) {
      await go(page, link(layer));
      await page.locator(`.cell-name[data-role="${layer.cell.split(".")[0]}"]`).waitFor();
      const { wide, room } = await page.locator(".terms-frame").evaluate((el) => ({ wide: el.scrollWidth, room: el.clientWidth }));
      expect(wide, JSON.stringify(layer)).toBeLessThanOrEqual(room);
    }
    await done();
  });

  it("a low window, as of a laptop or at 200 %, has numbers in all cells, and no grid wider than its room", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 1366, height: 650 } });
    for (const [width, height] of [[1366, 650], [1366, 690], [960, 470], [720, 450], [1536, 730], [1920, 1080]]) {
      await page.setViewportSize({ width, height });
      const least = () => page.locator(".grid[data-cell]").evaluateAll((all) => Math.min(...all.map((one) => Number((one as HTMLElement).dataset.cell))));
      await expect.poll(least, { message: `${width} × ${height}` }).toBeGreaterThanOrEqual(24);
      await expect.poll(() => page.locator(grid("x")).evaluate((one: HTMLElement) => Number(one.dataset.cell))).toBeGreaterThanOrEqual(28);
      expect(await page.locator(".stage").evaluate((one) => one.scrollWidth - one.clientWidth), `${width} × ${height}`).toBeLessThanOrEqual(0);
    }
    await done();
  });

  it("grids and what is above them stay in their columns, however much there is, and however wide the window", async () => {
    const { page, done } = await open(browser);
    const layers = [
      { op: "conv" }, { op: "conv_transpose" }, { dims: 1, size: "64", kernel: "11", config: { padding: 5 } },
      { size: "64.64", kernel: "11.11", config: { padding: 5 } }, { dims: 3, size: "4.12.12", n: 4, kernel: "3.3.3" },
    ];
    for (const layer of layers) {
      await go(page, link({ c: 1, o: 16, b: 1, ...layer }));
      for (const width of [360, 375, 720, 1024, 1200, 1440]) {
        const at = `${JSON.stringify(layer)} ${width}`;
        await resize(page, width, 800);
        expect(await overlaps(page), at).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth), at).toBeLessThanOrEqual(width);
      }
    }
    await done();
  });

  it("a window that is too narrow for any grid for a moment does no harm", async () => {
    const { page, done } = await open(browser, link({ b: 1 }));
    await resize(page, 50, 800);
    await resize(page, 1440, 800);
    expect(Number(await page.locator(grid("weight")).getAttribute("data-cell"))).toBeGreaterThan(20);
    await done();
  });

  it("a narrow window has its headings in order, none left out", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 360, height: 740 } });
    const levels = await page.locator("h1:visible, h2:visible, h3:visible").evaluateAll((all) => all.map((one) => Number(one.tagName[1])));
    expect(levels.length).toBeGreaterThan(3);
    levels.forEach((level, at) => expect(level - (levels[at - 1] ?? 0), levels.join()).toBeLessThanOrEqual(1));
    await done();
  });

  it("a tap chooses a cell", async () => {
    const { page, done } = await open(browser, "", { viewport: { width: 360, height: 740 }, hasTouch: true });
    await page.locator(grid("x")).tap({ position: { x: 12, y: 12 } });
    expect(await page.locator(".cell-name").getAttribute("data-role")).toBe("x");
    await done();
  });

  it("remembers the theme that the user chose", async () => {
    const { page, done } = await open(browser, "", { colorScheme: "light" });
    await page.getByRole("button", { name: "Use dark colours" }).click();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.reload();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await done();
  });
});
