/** Request: its programs, run as they stand, print what the page shows. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { go, launch, link, open } from "./browser";
import { PYTHON } from "./service";

const run = promisify(execFile);
/** Node prints a hundred numbers of an array, unless told otherwise. */
const ALL_NUMBERS = 'data:text/javascript,import { inspect } from "node:util"; inspect.defaultOptions.maxArrayLength = null;';

type Numbers = Record<string, number[]>;

interface Language {
  readonly name: string;
  readonly file: string;
  readonly command: string;
  readonly before: readonly string[];
  readonly read: (output: string) => Numbers;
}

const flat = (nested: unknown) => ((nested as unknown[]).flat(9) as (number | string)[]).map(Number);

/** `name [[…]]`, line by line, as Python writes lists. */
const lists = (output: string): Numbers => Object.fromEntries(output.trim().split("\n").map((line) => {
  const [, name, values] = /^(\w+) (.*)$/.exec(line)!;
  return [name, flat(JSON.parse(values.replaceAll("inf", "Infinity").replace(/-?Infinity|nan/g, '"$&"')))];
}));

/** `name [shape] Float32Array(n) […]`, as Node's console writes them. */
const consoled = (output: string): Numbers => Object.fromEntries(
  [...output.matchAll(/^(\w+) \[[^\]]*\] Float32Array\(\d+\) \[([^\]]*)\]/gm)].map(([, name, values]) => [name, values.split(",").map(Number)]));

/** The contract's JSON. */
const answered = (output: string): Numbers => Object.fromEntries(
  Object.entries(JSON.parse(output) as Record<string, { data: unknown }>).filter(([name]) => name !== "info").map(([name, { data }]) => [name, flat(data)]));

const LANGUAGES: readonly Language[] = [
  { name: "curl", file: "program.sh", command: "sh", before: [], read: answered },
  { name: "Python", file: "program.py", command: PYTHON, before: [], read: lists },
  { name: "JavaScript", file: "program.mjs", command: process.execPath, before: ["--no-warnings", "--import", ALL_NUMBERS], read: consoled },
  { name: "PyTorch", file: "program_torch.py", command: PYTHON, before: [], read: lists },
];

const SMALL = [
  { op: "conv", b: 1, x: "random.2", config: { stride: 2, padding: [[1, 0], [2, 1]], activation: "gelu", flip_kernel: true } },
  { op: "conv", dims: 1, x: "zeros.1~3:Infinity", config: { padding: "causal", dilation: 2 } },
  { op: "conv_transpose", b: 1, config: { stride: 2, padding: 1, output_padding: 1 } },
  { op: "max_pool", x: "random.5", config: { kernel: 3, stride: 2, padding: 1 } },
  { op: "max_pool", size: "6.6", config: { kernel: 3, stride: 2, padding: [[1, 0], [0, 1]], ceil_mode: true, pad_value: "zero" } },
  { op: "avg_pool", x: "random.4", config: { kernel: [3, 2], stride: 2, dilation: [2, 1], padding: [[1, 0], [0, 1]], ceil_mode: true } },
  { op: "avg_pool", dims: 1, config: { kernel: 3, dilation: 2, padding: 1, count_include_pad: false } },
  { op: "lp_pool", x: "random.8", config: { kernel: 2, stride: 3, dilation: 2, ceil_mode: true, p: 3 } },
  { op: "max_unpool" },
];
/** Too many numbers to write out: the programs read the files that the buttons save. */
const LARGE = { op: "conv", c: 3, o: 4, size: "14.13", b: 1, x: "random.7", config: { padding: "same" } };

let browser: Browser;
let folder: string;
let languages: readonly Language[];
beforeAll(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "convoke-"));
  symlinkSync(join(import.meta.dirname, "../node_modules"), join(folder, "node_modules"));
  // The default install has no PyTorch; where it is, its programs are run too.
  const torch = await run(PYTHON, ["-c", "import torch"]).then(() => true, () => false);
  languages = LANGUAGES.filter(({ name }) => torch || name !== "PyTorch");
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

async function shown(page: Page): Promise<Numbers> {
  const text = await page.evaluate(() => (["y", "dx", "dweight", "dbias"] as const).map((role) => [role, window.convoke.value(role).map(String)] as const));
  return Object.fromEntries(text.map(([role, values]) => [role, values.map(Number)]));
}

function expectClose(found: Numbers, expected: Numbers, what: string): void {
  for (const [name, values] of Object.entries(found)) {
    expect(values.length, `${what} ${name}`).toBe(expected[name].length);
    const wrong = values.filter((value, at) => {
      const other = expected[name][at];
      return !(Object.is(value, other) || Math.abs(value - other) < 2e-5 * (1 + Math.abs(value)));
    });
    expect(wrong, `${what} ${name}`).toEqual([]);
  }
}

/** Runs the program of every language for the layer on show, and holds what it prints to what the page has. */
async function check(page: Page, layer: object, action: "Forward" | "Backward"): Promise<void> {
  await go(page, link({ ...layer, view: "trace" }));
  const expected = await shown(page);
  await go(page, link({ ...layer, view: "request" }));
  await page.getByRole("radio", { name: action }).click();
  for (const { name, file, command, before, read } of languages) {
    await page.getByRole("radio", { name }).click();
    writeFileSync(join(folder, file), (await page.locator("pre.code").textContent())!);
    const { stdout } = await run(command, [...before, file], { cwd: folder });
    const found = read(stdout);
    const what = `${JSON.stringify(layer)} ${action} ${name}`;
    expect(Object.keys(found), what).toContain(action === "Forward" ? "y" : "dx");
    expectClose(found, expected, what);
  }
}

describe("programs print what the page shows", () => {
  it("with their numbers written out", async () => {
    const { page, done } = await open(browser);
    for (const layer of SMALL) await check(page, layer, "Backward");
    await check(page, SMALL[0], "Forward");
    await done();
  }, 120_000);

  it("with their numbers in the files that the page saves", async () => {
    const { page, done } = await open(browser, link({ ...LARGE, view: "request" }));
    for (const [button, name] of [["msgpack", "convoke.msgpack"], ["JSON", "convoke.json"]]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Save the body as ${button}` }).click()]);
      expect(download.suggestedFilename()).toBe(name);
      await download.saveAs(join(folder, name));
    }
    await check(page, LARGE, "Backward");
    await done();
  }, 120_000);
});
