/** The page as a page: its files, its links and other roots. */

import { createServer, request as forward, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { fill } from "../src/data/fill";
import { MOST_BYTES, packNumbers } from "../src/data/pack";
import { packFill } from "../src/data/text";
import { random } from "../tests/random";
import { go, grid, launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const VIEWS = ["trace", "verify", "checkerboard", "request", "image"];

/** A proxy that serves the service under a path of its own. */
async function under(root: string): Promise<{ server: Server; url: string }> {
  const target = new URL(inject("url"));
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url!.startsWith(root)) {
      outgoing.writeHead(404).end();
      return;
    }
    const path = incoming.url!.slice(root.length - 1);
    const onward = forward({ host: target.hostname, port: target.port, path, method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${root}` };
}

describe("files", () => {
  it("are all there, from this origin only, under a strict policy", async () => {
    const answers: [string, number][] = [];
    const { page, done } = await open(browser, "", {
      before: async (fresh) => {
        fresh.on("response", (response) => answers.push([response.url(), response.status()]));
      },
    });
    for (const view of VIEWS) {
      await go(page, link({ view }));
      await page.waitForTimeout(200);
    }
    expect(answers.filter(([, status]) => status !== 200)).toEqual([]);
    const policy = (await page.request.get(inject("url"))).headers()["content-security-policy"];
    expect(policy).toContain("default-src 'self'");
    expect(policy).not.toContain("unsafe");
    await done();
  });

  it("weigh less than 100 kB compressed", async () => {
    const { gzipSync } = await import("node:zlib");
    const files = new Set<string>();
    const { page, done } = await open(browser, "", {
      before: async (fresh) => {
        fresh.on("request", (request) => {
          if (request.method() === "GET" && !request.url().includes("/v1/")) files.add(request.url());
        });
      },
    });
    let sum = 0;
    for (const file of files) sum += gzipSync(await (await page.request.get(file)).body()).length;
    await done();
    expect(files.size).toBeGreaterThan(2);
    expect(sum).toBeLessThan(100_000);
  });

  it("work under another root path", async () => {
    const { server, url } = await under("/deep/base/");
    const { page, done } = await open(browser, "", { base: url });
    expect(await page.locator(".total").getAttribute("data-agrees")).toBe("true");
    await done();
    server.close();
  });
});

describe("links", () => {
  it("bring the same numbers and the same view into a fresh browser", async () => {
    const { page, done } = await open(browser, link({ op: "conv", c: 3, o: 2, config: { padding: [[1, 0], [2, 1]], activation: "tanh" }, x: "random.9", cell: "dweight.1.2.0.1.1" }));
    await page.locator(grid("x")).focus();
    await page.keyboard.type("7.25");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => window.convoke.value("x").includes(7.25));
    await page.waitForFunction(() => location.hash.includes("7.25"));
    const read = () => page.evaluate(() => (["x", "weight", "dy", "y", "dx", "dweight"] as const).map((role) => window.convoke.value(role)));
    const [before, url] = [await read(), page.url()];
    const cell = await page.locator(".cell-name").textContent();
    await done();
    const again = await open(browser, new URL(url).hash);
    const after = await again.page.evaluate(() => (["x", "weight", "dy", "y", "dx", "dweight"] as const).map((role) => window.convoke.value(role)));
    expect(after).toEqual(before);
    expect(await again.page.locator(".cell-name").textContent()).toBe(cell);
    await again.done();
  });

  it("of many painted cells are packed, in the address bar and bit by bit", async () => {
    const edits = Array.from({ length: 2500 }, (_, at) => `${at * 3}:${at % 7}.25`).join(",");
    const layer = { op: "conv", c: 8, o: 2, size: "32.32", config: {} };
    const { page, done } = await open(browser, link({ ...layer, x: `ramp.1~${edits}` }));
    await page.waitForFunction(() => location.hash.includes("~z:"));
    const hash = new URL(page.url()).hash;
    expect(hash.length).toBeLessThan(2500);
    const x = () => window.convoke.value("x");
    const before = await page.evaluate(x);
    await done();
    const again = await open(browser, hash);
    expect(await again.page.evaluate(x)).toEqual(before);
    await go(again.page, link({ ...layer, x: "ones.1" }));
    await again.page.evaluate((hash) => {
      location.hash = hash;
    }, hash);
    await again.page.waitForFunction(() => window.convoke.value("x")[3] === 1.25);
    expect(await again.page.evaluate(x)).toEqual(before);
    await again.done();
  });

  it("of many numbers are opened over a change that is not in the address bar yet", async () => {
    const { page, done } = await open(browser, link({ op: "conv", c: 16, o: 1, size: "16.16", config: {} }));
    await settled(page);
    const x = await packFill({ ...fill("zeros"), data: Float32Array.from({ length: 16 * 16 * 16 }, (_, at) => at % 5) });
    const hash = link({ op: "conv", c: 16, o: 1, size: "16.16", config: {}, x });
    expect(hash).toContain("z%3A");
    await page.evaluate((hash) => {
      // As long as on a slow machine: the change is due in the address bar before.
      const whole = Blob.prototype.arrayBuffer;
      Blob.prototype.arrayBuffer = async function () {
        await new Promise((over) => setTimeout(over, 1000));
        return whole.call(this);
      };
      document.querySelector<HTMLElement>('[aria-label="increase Stride"]')?.click();
      location.hash = hash;
    }, hash);
    await page.waitForFunction(() => window.convoke.value("x")[4] === 4);
    expect(await page.evaluate(() => location.hash)).toContain("z%3A");
    await done();
  });

  it("that are too long for browsers are not put in the address bar, and the page says so and copies them", async () => {
    const rng = random(3);
    const data = Float32Array.from({ length: 16 * 32 * 32 }, () => Math.tan(rng() * 3));
    const x = await packFill({ ...fill("zeros"), data });
    const permissions = ["clipboard-read", "clipboard-write"];
    const { page, done } = await open(browser, link({ op: "conv", c: 16, o: 1, size: "32.32", config: {}, x }), { permissions });
    await page.locator(grid("x")).focus();
    await page.keyboard.type("7.25");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Copy it anyway" }).click();
    await page.getByText("is on the clipboard").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied.length).toBeGreaterThan(64_000);
    expect(page.url()).not.toBe(copied);
    const again = await open(browser, new URL(copied).hash);
    expect(await again.page.evaluate(() => window.convoke.value("x"))).toEqual(await page.evaluate(() => window.convoke.value("x")));
    await again.done();
    await page.locator('[data-tensor="x"] .menu summary').click();
    await page.getByRole("button", { name: "Ramp" }).click();
    await page.getByRole("button", { name: "Copy it anyway" }).waitFor({ state: "detached" });
    expect(await page.evaluate(() => location.hash)).toContain("x=ramp");
    await done();
  });

  it("come into the address bar later where the browser takes no more changes of it for now", async () => {
    const { page, done } = await open(browser, link({ op: "conv" }), {
      before: async (fresh) => {
        await fresh.addInitScript(() => {
          const put = history.replaceState;
          let refused = 0;
          history.replaceState = (...given) => {
            refused += 1;
            if (refused <= 2) throw new DOMException("Attempt to use history.replaceState() more than 100 times per 30 seconds", "SecurityError");
            put.apply(history, given);
          };
        });
      },
    });
    await page.getByRole("button", { name: "increase Stride" }).click();
    await page.waitForFunction(() => location.hash.includes("stride"));
    await page.getByRole("button", { name: "decrease Stride" }).click();
    await page.waitForFunction(() => !location.hash.includes("stride"));
    await done();
  });

  it("that are hostile do no harm and say what was ignored", async () => {
    // A few hundred characters that unpack to many megabytes.
    const bomb = `z:${await packNumbers(new Float32Array(MOST_BYTES * 2))}`;
    const evil = "<img src=x onerror=window.hit=1>";
    const hash = link({ op: "constructor", n: "99999999999", size: "1.1.1.1e9", config: `{"__proto__":{"a":1},"stride":"${evil}"}`, x: evil, weight: "z:AAAA", dy: bomb, cell: "dx.9.9.9.9.99999999", view: evil, image: evil, board: "0.0.0.x" });
    const { page, done } = await open(browser, hash, { expected: /422/ });
    expect(await page.locator(".notice").first().textContent()).toMatch(/not valid: .*weight, dy/);
    expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
    expect(await page.locator("img").count()).toBe(0);
    await go(page, link({ op: "conv", config: { stride: evil } })).catch(() => undefined);
    expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
    await done();
  });

  it("to a cell that its layer does not have say so, and the address is put right", async () => {
    const notice = (page: Page) => page.locator(".notice").allTextContents();
    const told = (what: string) => [expect.stringContaining(`settings that are not valid: ${what}. The usual ones are used instead.`)];
    const { page, done } = await open(browser, link({ op: "conv", cell: "dx.0.9.9.9.9" }));
    await expect.poll(() => notice(page)).toEqual(told("cell"));
    expect(await page.locator(".cell-name").textContent()).toContain("[0, 0, 2, 4]");
    await page.waitForFunction(() => location.hash.includes("view=trace") && !location.hash.includes("cell="));
    await go(page, link({ op: "max_pool", step: "x", cell: "weight.0.0.0.1.1" }));
    await expect.poll(() => notice(page)).toEqual(told("step, cell"));
    await go(page, link({ op: "conv", cell: "dx.0.1.0.6.6" }));
    await page.locator(".cell-name").getByText("[0, 1, 6, 6]").waitFor();
    expect(await notice(page)).toEqual([]);
    // What a change of sizes makes of the chosen cell is on show, and so in the link.
    const height = page.getByRole("button", { name: "decrease Input H" });
    await height.click();
    await page.waitForFunction(() => location.hash.includes("cell=dx.0.1.0.5.6"));
    await page.reload();
    await settled(page);
    expect(await page.locator(".cell-name").textContent()).toContain("[0, 1, 5, 6]");
    expect(await notice(page)).toEqual([]);
    await done();
  });

  it("with a layer that is impossible show another, and the reason", async () => {
    const { page, done } = await open(browser, link({ op: "conv", size: "2.2", kernel: "5.5", config: {} }), { expected: /422/ });
    expect(await page.locator(".notice").textContent()).toContain("is not possible");
    expect(await page.locator(grid("dx")).count()).toBe(1);
    await done();
  });
});

it("pages that name no icon have one, at the address where browsers look for it", async () => {
  const { page, done } = await open(browser);
  const icon = await page.request.get(new URL("favicon.ico", inject("url")).href);
  expect(icon.status()).toBe(200);
  // An icon file of one picture.
  expect([...(await icon.body()).subarray(0, 6)]).toEqual([0, 0, 1, 0, 1, 0]);
  await done();
});

it("the reference can be read in the system's colours", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, done } = await open(browser, "", { colorScheme });
    await page.goto(new URL("docs", inject("url")).href);
    const title = page.locator(".opblock-tag").first();
    await title.waitFor();
    const letters = await title.evaluate((el) => getComputedStyle(el).color.match(/\d+/g)!.slice(0, 3).map(Number));
    const [least, most] = colorScheme === "dark" ? [180, 255] : [0, 110];
    for (const part of letters) expect(part).toBeGreaterThanOrEqual(least);
    for (const part of letters) expect(part).toBeLessThanOrEqual(most);
    await done();
  }
});

it("views that are left leave nothing behind", async () => {
  const { page, done } = await open(browser);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const nodes = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "Nodes")!.value;
  };
  const round = async () => {
    for (const view of [...VIEWS.slice(1), "trace"]) {
      for (const op of ["max_pool", "conv"]) {
        await go(page, link({ view, op }));
        await page.waitForTimeout(60);
      }
    }
    await page.waitForLoadState("networkidle");
  };
  await round();
  const before = await nodes();
  for (let i = 0; i < 3; i += 1) await round();
  expect(await nodes() - before).toBeLessThan(200);
  await done();
});
