/** The other views, and what can be taken away from the page. */

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decode, encode } from "@msgpack/msgpack";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { go, launch, link, open } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const verified = (page: Page) => page.locator('[data-state="done"]').waitFor();
const checks = (page: Page) => page.locator("[data-check]").evaluateAll((all) => all.map((one) => ({ ...(one as HTMLElement).dataset })));

describe("Verify", () => {
  it("passes for every operation, with gradients among the samples that are not zero", async () => {
    const { page, done } = await open(browser);
    const layers = [
      { op: "conv", b: 1, n: 2, config: { activation: "silu", grad_reduction: "mean", padding: 1 } }, { op: "conv", dims: 3 },
      { op: "conv_transpose", config: { stride: 2, padding: 1, activation: "relu" } }, { op: "max_pool", x: "random.4" }, { op: "avg_pool" },
      { op: "lp_pool", x: "random.4" }, { op: "adaptive_max_pool", x: "random.4" }, { op: "adaptive_avg_pool" }, { op: "max_unpool" },
      { op: "activation", x: "random.3" },
      { op: "max_pool", config: { kernel: 3, stride: 2, padding: 1, pad_value: "zero" } },
      { op: "max_pool", x: "random.3", config: { kernel: 2, stride: 3, padding: [[2, 2], [2, 2]], ceil_mode: true } },
      { op: "avg_pool", size: "8.8", config: { kernel: 3, stride: 2, padding: 1, ceil_mode: true, dilation: 2, divisor_override: -3 } },
      { op: "conv", config: { layout: "NHWC", weight_layout: "IOHW", algorithm: "fastest", padding: "full" } },
      { op: "conv_transpose", dims: 3, size: "4.4.4", config: { stride: 2, layout: "NDHWC", output_size: [9, 10, 9] } },
    ];
    for (const layer of layers) {
      await go(page, link({ ...layer, view: "trace" }));
      await go(page, link({ ...layer, view: "verify" }));
      await verified(page);
      const all = await checks(page);
      const bad = all.filter((one) => one.passed === "false" || (one.passed === "null" && layer.op !== "activation"));
      expect(bad, JSON.stringify(layer)).toEqual([]);
      for (const one of all.filter(({ check }) => check!.startsWith("differences"))) expect(Number(one.nonzero)).toBeGreaterThan(0);
    }
    await done();
  });

  it("does not hold tied maxima, each of which gets the whole gradient, to the adjoint law", async () => {
    const { page, done } = await open(browser, link({ op: "max_pool", view: "verify", x: "zeros.1", config: { kernel: 2, ties: "all" } }));
    await verified(page);
    const all = await checks(page);
    expect(all.filter(({ passed }) => passed === "false")).toEqual([]);
    expect(all.filter(({ check }) => check!.startsWith("adjoint")).map(({ passed }) => passed)).toEqual(["null", "null"]);
    expect(await page.locator('[data-check="adjoint-x-float64"]').textContent()).toContain("Some maxima tie");
    await done();
  });

  it("turns red for a wrong gradient, and names the worst coordinate", async () => {
    const { page, done } = await open(browser, link({ op: "conv", view: "trace" }));
    await page.route("**/v1/conv/backward", async (route) => {
      const response = await route.fetch();
      const answer = decode(await response.body()) as Record<string, { dtype: string; data: Uint8Array }>;
      const data = Uint8Array.from(answer.dx.data);
      const numbers = answer.dx.dtype === "float32" ? new Float32Array(data.buffer) : new Float64Array(data.buffer);
      numbers[18] += 0.5;
      answer.dx.data = data;
      await route.fulfill({ response, body: Buffer.from(encode(answer)) });
    });
    await go(page, link({ op: "conv", view: "verify", x: "integers.67" }));
    await verified(page);
    const all = await checks(page);
    const of = (id: string) => all.find((one) => one.check === id)!.passed;
    expect(of("own-dx")).toBe("false");
    expect(of("adjoint-x-float64")).toBe("false");
    expect(of("own-dweight")).toBe("true");
    expect(await page.locator(".check-group").last().textContent()).toContain("at least half of them where the gradient is not zero");
    expect(await page.locator('[data-check="own-dx"]').textContent()).toContain("worst at dX[0, 0, 2, 4]");
    await page.locator('[data-check="own-dx"]').getByRole("button").click();
    expect(await page.locator(".total").getAttribute("data-agrees")).toBe("false");
    await done();
  });

  it("refuses to pass where there is nothing to see", async () => {
    const { page, done } = await open(browser, link({ op: "conv", view: "verify", dy: "zeros.1" }));
    await verified(page);
    const silent = (await checks(page)).filter(({ check }) => !check!.startsWith("own"));
    expect(silent.every(({ passed }) => passed === "null")).toBe(true);
    expect(await page.locator(".page-head h2").textContent()).toContain("show nothing");
    await done();
  });
});

/** 8×8 grey, white on the right: PNG as a browser writes it. */
async function halves(page: Page): Promise<Buffer> {
  const url = await page.evaluate(() => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [8, 8];
    const context = canvas.getContext("2d")!;
    context.fillStyle = "#808080";
    context.fillRect(0, 0, 8, 8);
    context.fillStyle = "#fff";
    context.fillRect(4, 0, 4, 8);
    return canvas.toDataURL();
  });
  return Buffer.from(url.split(",")[1], "base64");
}

/** The numbers of the picture on show, at the middle of its left and right halves. */
async function sides(page: Page): Promise<string[]> {
  return page.locator('[data-map="picture-0"]').evaluate((grid) => {
    const canvas = grid.querySelector("canvas")!;
    const at = (part: number) => [...canvas.getContext("2d")!.getImageData(canvas.width * part, canvas.height / 2, 1, 1).data].join(" ");
    return [at(0.25), at(0.75)];
  });
}

describe("Image", () => {
  it("takes a picture that is dropped on it, and one that is pasted", async () => {
    const { page, done } = await open(browser, link({ view: "image" }), { permissions: ["clipboard-read", "clipboard-write"] });
    await page.locator("[data-map=feature-0]").waitFor();
    const sample = await sides(page);
    const file = join(mkdtempSync(join(tmpdir(), "convoke-")), "halves.png");
    writeFileSync(file, await halves(page));
    const devtools = await page.context().newCDPSession(page);
    const data = { items: [], files: [file], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"] as const) await devtools.send("Input.dispatchDragEvent", { type, x: 5, y: 400, data });
    await page.getByRole("button", { name: "Use the sample" }).waitFor();
    await expect.poll(() => sides(page)).toEqual(["120 120 120 255", "251 250 248 255"]);
    await page.getByRole("button", { name: "Use the sample" }).click();
    await expect.poll(() => sides(page)).toEqual(sample);
    await page.evaluate(async (base64) => {
      const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      await navigator.clipboard.write([new ClipboardItem({ "image/png": new Blob([bytes], { type: "image/png" }) })]);
    }, readFileSync(file).toString("base64"));
    await page.keyboard.press("Control+V");
    await page.getByRole("button", { name: "Use the sample" }).waitFor();
    await expect.poll(() => sides(page)).toEqual(["120 120 120 255", "251 250 248 255"]);
    await done();
  });

  it("takes the mean of a large picture's fine detail, in browsers too that shrink pictures without care", async () => {
    const { page, done } = await open(browser, link({ view: "image" }), {
      before: async (fresh) => {
        await fresh.addInitScript(() => {
          Object.defineProperty(CanvasRenderingContext2D.prototype, "imageSmoothingQuality", { set: () => undefined });
        });
      },
    });
    await page.locator("[data-map=feature-0]").waitFor();
    const url = await page.evaluate(() => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [1600, 1200];
      const context = canvas.getContext("2d")!;
      for (let x = 0; x < 1600; x += 6) context.fillRect(x, 0, 3, 1200);
      return canvas.toDataURL();
    });
    const buffer = Buffer.from(url.split(",")[1], "base64");
    await page.locator('input[aria-label="A picture of your own"]').setInputFiles({ name: "stripes.png", mimeType: "image/png", buffer });
    await page.getByRole("button", { name: "Use the sample" }).waitFor();
    const row = () => page.locator('[data-map="picture-0"] canvas').evaluate((canvas: HTMLCanvasElement) =>
      [...canvas.getContext("2d")!.getImageData(0, canvas.height / 2, canvas.width, 1).data].filter((_, at) => at % 4 === 0).slice(8, -8));
    await expect.poll(async () => Math.max(...await row())).toBeLessThan(150);
    expect(Math.min(...await row())).toBeGreaterThan(90);
    await done();
  });

  it("takes a picture of the user's own, and traces any unit to the input", async () => {
    const { page, done } = await open(browser, link({ view: "image" }));
    await page.locator("[data-map=feature-0]").waitFor();
    await page.locator("[data-map=feature-1]").click({ position: { x: 80, y: 60 } });
    await page.locator(".closeup strong", { hasText: "Feature map Sobel ↓" }).waitFor();
    const gif = Buffer.from("R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==", "base64");
    await page.locator('input[aria-label="A picture of your own"]').setInputFiles({ name: "dot.gif", mimeType: "image/gif", buffer: gif });
    await page.getByRole("button", { name: "Use the sample" }).waitFor();
    await page.locator(".closeup", { hasText: "is 0." }).waitFor();
    await page.getByRole("button", { name: "Drawn" }).click();
    await page.locator("[data-map=feature-4]").waitFor();
    await done();
  });
});

it("nothing is made of a canvas that the browser gives noise for, and the page says so", async () => {
  const { page, done } = await open(browser, link({ view: "image" }), {
    before: async (fresh) => {
      await fresh.addInitScript(() => {
        const read = CanvasRenderingContext2D.prototype.getImageData;
        CanvasRenderingContext2D.prototype.getImageData = function (this: CanvasRenderingContext2D, x: number, y: number, width: number, height: number) {
          const image = read.call(this, x, y, width, height);
          crypto.getRandomValues(image.data.subarray(0, 4));
          return image;
        };
      });
    },
  });
  const saved: string[] = [];
  page.on("download", (download) => saved.push(download.suggestedFilename()));
  const notice = page.locator(".notice");
  const gif = Buffer.from("R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==", "base64");
  await page.locator('input[aria-label="A picture of your own"]').setInputFiles({ name: "dot.gif", mimeType: "image/gif", buffer: gif });
  await notice.getByText("Your picture could not be used: this browser gives noise to pages that read pictures").waitFor();
  expect(await page.getByRole("button", { name: "Use the sample" }).count()).toBe(0);
  await page.getByRole("tab", { name: "Trace" }).click();
  await page.locator(".bar .menu summary").click();
  for (const name of ["PNG", "GIF"]) {
    await notice.getByRole("button", { name: "Dismiss" }).click();
    await page.locator(".bar .menu").evaluate((el) => el.setAttribute("open", ""));
    await page.locator(".bar .menu-panel button", { hasText: name }).click();
    await notice.getByText("That could not be saved: this browser gives noise").waitFor();
  }
  expect(saved).toEqual([]);
  await done();
});

it("what is drawn is drawn anew for the pixels of a zoom", async () => {
  const { page, done } = await open(browser, link({ view: "image" }));
  await page.locator("[data-map=gradient-0]").waitFor();
  const devtools = await page.context().newCDPSession(page);
  const sharp = () => page.locator(".grid canvas").evaluateAll((all) =>
    all.map((canvas) => Math.round(((canvas as HTMLCanvasElement).width / canvas.clientWidth) * 4) / 4).filter((ratio, at, every) => every.indexOf(ratio) === at));
  await expect.poll(sharp).toEqual([1]);
  for (const deviceScaleFactor of [2, 1.5]) {
    await devtools.send("Emulation.setDeviceMetricsOverride", { width: 1440 / deviceScaleFactor, height: 900 / deviceScaleFactor, deviceScaleFactor, mobile: false });
    await expect.poll(sharp).toEqual([deviceScaleFactor]);
  }
  await done();
});

describe("Request", () => {
  it("leads to the service's interface", async () => {
    const { page, done } = await open(browser, link({ view: "request" }));
    await page.getByRole("link", { name: "interface" }).click();
    await page.getByRole("heading", { name: "Convoke" }).first().waitFor();
    expect(new URL(page.url()).pathname).toBe("/docs");
    await done();
  });

  it("annotates every byte of the body", async () => {
    const { page, done } = await open(browser, link({ view: "request" }));
    const rows = await page.locator(".byte-table tbody tr").allTextContents();
    expect(rows[0]).toContain("map of 5");
    expect(rows.join(" ")).toContain("392 bytes of data: −2, −3, −2, 2, …");
    await page.locator(".stages tfoot", { hasText: "ms" }).waitFor();
    expect(await page.locator(".answer-facts").textContent()).toContain("1 sample");
    await done();
  });
});

it("exports pictures, an animation with a frame for each step, and a file that opens again", async () => {
  const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1, size: "5.5", config: {} }));
  const taken = async (name: string) => {
    if (!(await page.locator(".bar .menu").getAttribute("open").then((open) => open !== null))) await page.locator(".bar .menu summary").click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".bar .menu-panel button", { hasText: name }).click()]);
    return readFileSync(await download.path());
  };
  const png = await taken("PNG");
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  expect(png.readUInt32BE(16)).toBeGreaterThan(300);
  const svg = (await taken("SVG")).toString();
  expect(svg).toMatch(/^<svg xmlns/);
  expect((svg.match(/<text/g) ?? []).length).toBeGreaterThan(25 + 9 + 9);
  // What it is of, and each grid's shape and range.
  for (const words of ["Convolution · dX[0, 0, 2, 4] = ", "1 × 1 × 5 × 5", ">−3<"]) expect(svg).toContain(words);
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("SVG");
  const gif = await taken("GIF");
  expect(gif.subarray(0, 6).toString()).toBe("GIF89a");
  // One graphic control extension comes before each frame.
  const frames = gif.toString("latin1").split("\x21\xf9\x04").length - 1;
  expect(frames).toBe(9);
  const json = await taken("JSON");
  const before = await page.evaluate(() => window.convoke.value("dx"));
  await go(page, link({ op: "max_pool" }));
  await page.locator('input[aria-label="A saved layer"]').setInputFiles({ name: "layer.json", mimeType: "application/json", buffer: json });
  await page.waitForFunction((count) => window.convoke.value("dx").length === count, before.length);
  expect(await page.evaluate(() => window.convoke.value("dx"))).toEqual(before);
  await go(page, link({ op: "max_pool", cell: "dx.0.0.0.2.2" }));
  const routed = (await taken("SVG")).toString();
  expect(routed.match(/<path d="M[^"]*C/g)).toHaveLength(4);
  await done();
});
