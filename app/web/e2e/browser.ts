/** A Chromium and pages in it that notice every error and every request elsewhere. */

import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect, inject } from "vitest";

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--no-first-run",
];

export function launch(): Promise<Browser> {
  const path = process.env.CHROMIUM ?? INSTALLED.find(existsSync);
  return chromium.launch({ executablePath: path, args: FLAGS });
}

export interface Opened {
  readonly page: Page;
  /** Asserts that nothing went wrong, and closes. */
  done(): Promise<void>;
}

export interface How extends BrowserContextOptions {
  /** Console errors that the test provokes itself. */
  expected?: RegExp;
  base?: string;
  before?: (page: Page) => Promise<void>;
  /** false: the page will not get so far as to show a layer. */
  ready?: boolean;
}

/** The paths that are asked for from here on, as they are. When the browser looks after its icon is its own affair. */
export function asking(page: Page): string[] {
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname !== "/icon.svg") asked.push(pathname);
  });
  return asked;
}

export async function open(browser: Browser, hash = "", how: How = {}): Promise<Opened> {
  const { expected, base = inject("url"), before, ready = true, ...options } = how;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(90_000);
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !expected?.test(message.text())) wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error.stack)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(base).origin && !["blob:", "data:"].includes(protocol)) wrong.push(`request to ${request.url()}`);
  });
  await before?.(page);
  await page.goto(base + hash);
  if (ready) await settled(page);
  return {
    page,
    done: async () => {
      expect(wrong).toEqual([]);
      await context.close();
    },
  };
}

/** What is asked for is what is shown. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const tidy = document.querySelector<HTMLElement>(".page")?.dataset.stale === "0";
    return tidy && document.querySelector("[data-state='ok'] .light") !== null && window.convoke.explain("y", 0) !== null;
  });
}

export interface Layer {
  [key: string]: string | number | object | undefined;
}

/** The layer that the page's speed is told of: 8 channels of 32×32. */
export const LARGE: Layer = { op: "conv", c: 8, o: 8, size: "32.32", config: { padding: 1 }, x: "random.1", weight: "random.2", dy: "random.3" };

/** A link's hash from its parts. */
export function link(parts: Layer): string {
  const out = new URLSearchParams({ v: "1" });
  for (const [key, value] of Object.entries(parts)) {
    if (value !== undefined) out.set(key, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  return `#${out}`;
}

/** Goes to another state without loading the page anew. */
export async function go(page: Page, hash: string): Promise<void> {
  await page.evaluate((next) => new Promise<void>((resolve) => {
    if (location.hash === next) {
      resolve();
      return;
    }
    addEventListener("hashchange", () => resolve(), { once: true });
    location.hash = next;
  }), hash);
  await settled(page);
}

/** Until the grids are drawn in a window of another size: a frame measures it, the next draws. */
export async function resize(page: Page, width: number, height: number): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.waitForFunction(([wide, high]) => innerWidth === wide && innerHeight === high, [width, height]);
  await page.evaluate(async () => {
    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  });
}

export const grid = (role: string) => `[data-tensor="${role}"] .grid`;
