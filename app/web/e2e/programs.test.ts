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
  readonly ending: string;
  /** Runs files of `folder`, and gives what each has printed. */
  readonly run: (files: readonly string[], folder: string) => Promise<string[]>;
  readonly read: (output: string) => Numbers;
}

const each = (command: string, ...before: string[]): Language["run"] => (files, folder) =>
  Promise.all(files.map(async (file) => (await run(command, [...before, file], { cwd: folder })).stdout));

/** PyTorch takes seconds to import, so one process runs all its programs. */
const TOGETHER = String.raw`
import runpy, sys
for file in sys.argv[1:]:
    runpy.run_path(file, run_name="__main__")
    print(end="\f")
`;
const together: Language["run"] = async (files, folder) =>
  (await run(PYTHON, ["-c", TOGETHER, ...files], { cwd: folder })).stdout.split("\f").slice(0, -1);

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
  { name: "curl", ending: "sh", run: each("sh"), read: answered },
  { name: "Python", ending: "py", run: each(PYTHON), read: lists },
  { name: "JavaScript", ending: "mjs", run: each(process.execPath, "--no-warnings", "--import", ALL_NUMBERS), read: consoled },
  { name: "PyTorch", ending: "torch.py", run: together, read: lists },
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

interface Program {
  readonly what: string;
  readonly file: string;
  /** What it must print at least. */
  readonly role: "y" | "dx";
  readonly expected: Numbers;
}

/** Writes the program of every language for the layer on show, and keeps what the page has for it. */
async function write(page: Page, layer: object, action: "Forward" | "Backward", programs: Map<Language, Program[]>): Promise<void> {
  await go(page, link({ ...layer, view: "trace" }));
  const expected = await shown(page);
  await go(page, link({ ...layer, view: "request" }));
  await page.getByRole("radio", { name: action }).click();
  for (const language of languages) {
    await page.getByRole("radio", { name: language.name }).click();
    const of = programs.get(language) ?? [];
    const file = `program${of.length}.${language.ending}`;
    writeFileSync(join(folder, file), (await page.locator("pre.code").textContent())!);
    const what = `${JSON.stringify(layer)} ${action} ${language.name}`;
    programs.set(language, [...of, { what, file, role: action === "Forward" ? "y" : "dx", expected }]);
  }
}

/** Runs the programs, and holds what they print to what the page has. */
async function check(programs: Map<Language, Program[]>): Promise<void> {
  for (const [{ run, read }, of] of programs) {
    const printed = await run(of.map(({ file }) => file), folder);
    expect(printed).toHaveLength(of.length);
    for (const [at, { what, role, expected }] of of.entries()) {
      const found = read(printed[at]);
      expect(Object.keys(found), what).toContain(role);
      expectClose(found, expected, what);
    }
  }
}

describe("programs print what the page shows", () => {
  it("with their numbers written out", async () => {
    const { page, done } = await open(browser);
    const programs = new Map<Language, Program[]>();
    for (const layer of SMALL) await write(page, layer, "Backward", programs);
    await write(page, SMALL[0], "Forward", programs);
    await check(programs);
    await done();
  }, 120_000);

  it("with their numbers in the files that the page saves", async () => {
    const { page, done } = await open(browser, link({ ...LARGE, view: "request" }));
    for (const [button, name] of [["msgpack", "convoke.msgpack"], ["JSON", "convoke.json"]]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: `Save the body as ${button}` }).click()]);
      expect(download.suggestedFilename()).toBe(name);
      await download.saveAs(join(folder, name));
    }
    const programs = new Map<Language, Program[]>();
    await write(page, LARGE, "Backward", programs);
    await check(programs);
    await done();
  }, 120_000);
});
