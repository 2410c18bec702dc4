/** Trace: the right cells light up, and the terms that are shown make the value that was served. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { integer, random } from "../tests/random";
import { go, grid, launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const small = { op: "conv", c: 1, o: 1 };
const total = (page: Page) => page.locator(".total").evaluate((el: HTMLElement) => ({ ...el.dataset }));

describe("selection", () => {
  it("lights 9, 3 and 1 outputs for three inputs of a 5×5 under kernel 3", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "5.5", config: {} }));
    for (const [row, col, count] of [[2, 2, 9], [0, 2, 3], [0, 0, 1]]) {
      await go(page, link({ ...small, size: "5.5", config: {}, cell: `dx.0.0.0.${row}.${col}` }));
      expect(await page.locator(grid("dy")).getAttribute("data-shown")).toBe(String(count));
      expect(await page.locator(grid("y")).getAttribute("data-lit")).toBe(String(count));
      expect(await page.locator(".terms tbody tr").count()).toBe(count);
    }
    await done();
  });

  it("marks the 11 inputs of a 6×6 that stride 2 leaves unread, where the served gradient is zero", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "6.6", cell: "dx.0.0.0.5.5" }));
    expect(await page.locator(grid("x")).getAttribute("data-unread")).toBe("11");
    const dx = await page.evaluate(() => window.convoke.value("dx"));
    const edge = dx.filter((_, i) => i % 6 === 5 || i >= 30);
    expect(edge).toEqual(Array(11).fill(0));
    expect(await page.locator(".sentence").textContent()).toContain("No output reads this input");
    await done();
  });

  it("routes a max pool's gradients by arrows to the peak, and ties to the first", async () => {
    const x = "zeros.1~16:9";
    const { page, done } = await open(browser, link({ op: "max_pool", x, dy: "ones.1", cell: "dx.0.0.0.2.2" }));
    const dx = await page.evaluate(() => window.convoke.value("dx"));
    expect(dx[16]).toBe(4);
    expect(dx.reduce((a, b) => a + b)).toBe(9);
    await page.waitForFunction(() => document.querySelectorAll(".arrows g path").length === 4);
    const tied = { op: "max_pool", size: "4.4", config: { kernel: 2 }, x: "zeros.1", dy: "ones.1", cell: "dy.0.0.0.0.0" };
    await go(page, link(tied));
    const first = await page.evaluate(() => window.convoke.value("dx"));
    expect(first.flatMap((value, i) => (value ? [i] : []))).toEqual([0, 2, 8, 10]);
    await page.waitForFunction(() => document.querySelectorAll(".arrows g path").length === 1);
    await go(page, link({ ...tied, config: { kernel: 2, ties: "all" } }));
    await page.waitForFunction(() => document.querySelectorAll(".arrows g path").length === 4);
    await done();
  });

  it("paints the neutral colour where a gradient is zero", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "6.6", cell: "none" }));
    const pixel = () => page.locator(`${grid("dx")} canvas`).evaluate((canvas: HTMLCanvasElement) => {
      const cell = Number((canvas.parentElement as HTMLElement).dataset.cell);
      const ratio = canvas.width / canvas.clientWidth;
      const at = (3 + 5.12 * cell) * ratio;
      return [...canvas.getContext("2d")!.getImageData(at, (3 + 0.2 * cell) * ratio, 1, 1).data];
    });
    await expect.poll(pixel).toEqual([247, 246, 243, 255]);
    await done();
  });
});

it("every example shows the cell that it is about", async () => {
  const { page, done } = await open(browser);
  const examples = page.getByRole("combobox", { name: "Example" });
  for (let at = 0; at < (await examples.locator("option").count()) - 1; at += 1) {
    await examples.selectOption(String(at));
    await settled(page);
    const { role } = (await page.locator(".cell-name").evaluate((el: HTMLElement) => ({ ...el.dataset })));
    expect(Number(await page.locator(grid(role!)).getAttribute("data-shown")), `example ${at}`).toBeGreaterThan(0);
  }
  await done();
});

it("shows in the padding the inputs that it copies", async () => {
  const { page, done } = await open(browser, link({ ...small, size: "5.5", cell: "none", config: { padding: 2, padding_mode: "reflect" }, x: "zeros.1~7:9" }));
  // Cell (1, 2) holds 9; behind the upper border row −1 mirrors row 1.
  const pixel = (row: number) => page.locator(`${grid("x")} canvas`).evaluate((canvas: HTMLCanvasElement, r) => {
    const cell = Number((canvas.parentElement as HTMLElement).dataset.cell);
    const ratio = canvas.width / canvas.clientWidth;
    return [...canvas.getContext("2d")!.getImageData((3 + 4.2 * cell) * ratio, (3 + (r + 2.2) * cell) * ratio, 1, 1).data.slice(0, 3)];
  }, row);
  const far = async () => Math.max(...(await pixel(-2)).map((v, i) => Math.abs(v - [253, 253, 252][i])));
  await expect.poll(far).toBeLessThan(6);
  const [mirrored, blank, own] = [await pixel(-1), await pixel(-2), await pixel(1)];
  expect(mirrored).not.toEqual(blank);
  expect(mirrored).not.toEqual(own);
  await done();
});

describe("terms", () => {
  it("of 60 random cells sum to the served value, in every operation", async () => {
    const { page, done } = await open(browser);
    const rng = random(20);
    const layers = [
      { op: "conv", c: 4, o: 6, n: 2, size: "9.8", b: 1, config: { groups: 2, dilation: [2, 1], padding: [[1, 0], [2, 1]], activation: "gelu" } },
      { op: "conv", size: "8.8", config: { padding: 2, padding_mode: "reflect", flip_kernel: true, grad_reduction: "mean" }, n: 2 },
      { op: "conv_transpose", c: 4, o: 4, config: { stride: 3, output_padding: 1, groups: 2, activation: "tanh" } },
      { op: "conv", dims: 1, config: { padding: "causal", dilation: 2 } },
      { op: "conv", dims: 3, config: { padding: "same" } },
      { op: "max_pool", config: { kernel: 3, stride: 2, padding: 1, ceil_mode: true } },
      { op: "avg_pool", config: { kernel: 3, stride: 2, padding: 1, ceil_mode: true, count_include_pad: false } },
      { op: "lp_pool", config: { kernel: 3, stride: 2, p: 3 } },
      { op: "adaptive_avg_pool", config: { output_size: [3, 4] } },
      { op: "adaptive_max_pool", config: { output_size: 4 } },
      { op: "max_unpool" }, { op: "activation", config: { name: "silu" } },
    ];
    for (const layer of layers) {
      await go(page, link({ ...layer, x: "random.5", weight: "random.6", dy: "random.7" }));
      const roles = await page.evaluate(() => (["y", "dx", "dweight", "dbias"] as const).map((role) => [role, window.convoke.value(role).length] as const));
      for (let i = 0; i < 5; i += 1) {
        const [role, size] = roles.filter(([, n]) => n > 0)[integer(rng, 0, roles.filter(([, n]) => n > 0).length - 1)];
        const index = integer(rng, 0, size - 1);
        const { sum, scale, served } = await page.evaluate(([r, at]) => {
          const of = window.convoke.explain(r as "y", at as number)!;
          return { sum: of.value, scale: of.scale, served: window.convoke.value(r as "y")[at as number] };
        }, [role, index] as const);
        expect(Math.abs(sum - served), `${layer.op} ${role}[${index}]`).toBeLessThanOrEqual(1e-5 * Math.max(scale, Math.abs(sum), 1e-6));
      }
      expect((await total(page)).agrees).toBe("true");
    }
    await done();
  });

  it("shows products that add up to the sum below them", async () => {
    const { page, done } = await open(browser);
    const products = await page.locator(".terms .product").allTextContents();
    const sum = products.reduce((a, text) => a + Number(text.replace("−", "-")), 0);
    expect(products).toHaveLength(8);
    expect(String(sum)).toBe((await total(page)).own);
    expect((await total(page)).own).toBe((await total(page)).served);
    await done();
  });

  it("are the support of the served gradient, for fifty random layers", async () => {
    const { page, done } = await open(browser);
    const rng = random(77);
    const pair = (low: number, high: number) => [integer(rng, low, high), integer(rng, low, high)];
    for (let i = 0; i < 50; i += 1) {
      const op = i % 2 ? "conv" : "conv_transpose";
      const groups = integer(rng, 1, 2);
      const config: Record<string, unknown> = { stride: pair(1, 3), dilation: pair(1, 2), groups };
      if (op === "conv") config.padding = [pair(0, 2), pair(0, 2)];
      else config.padding = pair(0, 1);
      const layer = {
        op, n: integer(rng, 1, 2), c: groups * integer(rng, 1, 2), o: groups * integer(rng, 1, 2),
        size: pair(6, 9).join("."), kernel: pair(2, 3).join("."), config, weight: "ones.1", dy: "zeros.1", cell: "none",
      };
      await go(page, link(layer));
      const outputs = await page.evaluate(() => window.convoke.value("dy").length);
      const hot = integer(rng, 0, outputs - 1);
      await go(page, link({ ...layer, dy: `zeros.1~${hot}:1` }));
      const { support, lit } = await page.evaluate((at) => ({
        support: window.convoke.value("dx").flatMap((value, index) => (value ? [index] : [])),
        lit: [...window.convoke.explain("dy", at)!.lit.x].sort((a, b) => a - b),
      }), hot);
      expect(lit, JSON.stringify(layer)).toEqual(support);
    }
    await done();
  }, 180_000);
});

describe("editing and sweeping", () => {
  it("sets cells by typing and by painting, and fills by presets", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "5.5" }));
    const x = page.locator(grid("x"));
    await x.focus();
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("-2.5");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => window.convoke.value("x")[0] === -2.5);
    const box = (await x.boundingBox())!;
    const menu = page.locator('[data-tensor="x"] .menu');
    await menu.locator("summary").click();
    await menu.getByRole("button", { name: "Paint with" }).click();
    await page.keyboard.press("Escape");
    await page.mouse.move(box.x + 60, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + 140, box.y + 10, { steps: 6 });
    await page.mouse.up();
    await page.waitForFunction(() => window.convoke.value("x")[2] === 1);
    await menu.locator("summary").click();
    await menu.getByRole("button", { name: "Ramp" }).click();
    await page.waitForFunction(() => window.convoke.value("x")[24] === 24);
    await done();
  });

  it("paints by touch, every cell under the stroke, and scrolls by touch while there is no brush", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "8.8", x: "zeros.1" }), { viewport: { width: 360, height: 740 }, hasTouch: true });
    const x = page.locator(grid("x"));
    const cdp = await page.context().newCDPSession(page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", at: [number, number][]) =>
      cdp.send("Input.dispatchTouchEvent", { type, touchPoints: at.map(([x, y]) => ({ x, y })) });
    /** From the middle of one cell to that of another, in a few moves. */
    const drag = async (from: [number, number], to: [number, number], moves: number) => {
      const box = (await x.boundingBox())!;
      const side = (box.width - 6) / 8;
      const middle = ([r, c]: [number, number]): [number, number] => [box.x + 3 + (c + 0.5) * side, box.y + 3 + (r + 0.5) * side];
      const [a, b] = [middle(from), middle(to)];
      await touch("touchStart", [a]);
      for (let i = 1; i <= moves; i += 1) await touch("touchMove", [[a[0] + ((b[0] - a[0]) * i) / moves, a[1] + ((b[1] - a[1]) * i) / moves]]);
      await touch("touchEnd", []);
    };
    const scrolled = () => page.evaluate(() => scrollY);
    await drag([7, 4], [0, 4], 12);
    await page.waitForFunction(() => scrollY > 0);
    expect(await page.evaluate(() => window.convoke.value("x").some(Boolean))).toBe(false);
    await page.evaluate(() => scrollTo(0, 0));
    await page.locator('[data-tensor="x"] .menu summary').tap();
    await page.getByRole("button", { name: "Paint with" }).tap();
    await page.locator(".wordmark").tap();
    await x.scrollIntoViewIfNeeded();
    const before = await scrolled();
    await drag([7, 0], [0, 7], 1);
    await page.waitForFunction(() => window.convoke.value("x").filter((value) => value === 1).length === 8);
    expect(await page.evaluate(() => window.convoke.value("x").flatMap((value, at) => (value ? [at] : [])))).toEqual([7, 14, 21, 28, 35, 42, 49, 56]);
    expect(await scrolled()).toBe(before);
    await done();
  });

  it("opens a cell's value with no more digits than it has", async () => {
    const { page, done } = await open(browser, link({ ...small, x: "zeros.1~0:0.1,1:-2.5e-9" }));
    await page.locator(grid("x")).focus();
    for (const value of ["0.1", "-2.5e-9"]) {
      await page.keyboard.press("Enter");
      expect(await page.locator(".grid-editor").inputValue()).toBe(value);
      await page.keyboard.press("Escape");
      await page.keyboard.press("ArrowRight");
    }
    await done();
  });

  it("takes the chosen cell along to another sample", async () => {
    const { page, done } = await open(browser, link({ ...small, n: 2, cell: "dx.0.0.0.2.2" }));
    await page.getByRole("button", { name: "increase Sample", exact: true }).click();
    await page.waitForFunction(() => document.querySelector(".cell-name")!.textContent!.includes("[1, 0, 2, 2]"));
    for (const role of ["x", "dx", "y", "dy"]) expect(Number(await page.locator(grid(role)).getAttribute("data-shown")), role).toBeGreaterThan(0);
    await done();
  });

  it("counts the windows of a sweep as people do", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "3.3" }));
    expect(await page.locator(".steps").textContent()).toBe("1 window");
    await done();
  });

  it("steps, scrubs and plays, and the last step is the whole", async () => {
    const { page, done } = await open(browser, link({ ...small, size: "5.5", cell: "none" }));
    await page.getByRole("button", { name: "Step on" }).click();
    expect(await page.locator(".cell-name").getAttribute("data-role")).toBe("dy");
    await page.getByRole("slider", { name: "Sweep position" }).fill("4");
    await page.waitForFunction(() => document.querySelector(".steps")!.textContent === "4 / 4");
    await page.keyboard.press("f");
    expect(await page.locator(".cell-name").getAttribute("data-role")).toBe("y");
    await page.locator("select[aria-label=Speed]").selectOption("8");
    await page.getByRole("button", { name: "Play the sweep" }).click();
    await page.waitForFunction(() => document.querySelector(".play")!.getAttribute("aria-label") === "Play the sweep" && document.querySelector(".steps")!.textContent === "4 / 4");
    await page.getByRole("button", { name: "Show all" }).click();
    expect(await page.locator(".steps").textContent()).toBe("4 windows");
    await done();
  });

  it("explains what the plan refuses, and offers the nearest value that it takes", async () => {
    const { page, done } = await open(browser, link({ op: "conv", c: 4, o: 4 }), { expected: /422/ });
    const groups = page.getByRole("spinbutton", { name: "Groups", exact: true });
    await groups.fill("3");
    await groups.press("Enter");
    const refusal = page.locator('[data-field="groups"] .refusal');
    await refusal.getByRole("button").waitFor();
    expect(await refusal.textContent()).toContain("channels do not divide into groups");
    expect(await groups.inputValue()).toBe("1");
    await refusal.getByRole("button", { name: "Use 2" }).click();
    await page.waitForFunction(() => window.convoke.value("weight").length === 4 * 2 * 9);
    expect(await groups.inputValue()).toBe("2");
    await done();
  });

  it("has a control for every config field that the catalogue names", async () => {
    const { page, done } = await open(browser);
    const catalogue = (await (await page.request.get("v1/operations", { headers: { accept: "application/json" } }).catch(() => page.request.get(new URL("v1/operations", page.url()).href))).json()) as Record<string, { config: { properties?: object } }>;
    for (const [op, { config }] of Object.entries(catalogue)) {
      await go(page, link({ op }));
      const shown = await page.locator("[data-field]").evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.field));
      const fields = Object.keys(config.properties ?? { config: 1 }).filter((name) => !["input_shape", "return_indices"].includes(name));
      expect(shown.sort(), op).toEqual(fields.sort());
      const kinds = await page.locator("[data-kind]").evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.kind));
      expect(kinds).not.toContain("other");
    }
    await done();
  });
});
