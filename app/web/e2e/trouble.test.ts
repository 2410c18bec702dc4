/** A service that is slow, busy, gone, or refuses. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { go, grid, launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

describe("a service in trouble", () => {
  const problem = (status: number, more: Record<string, string> = {}) => ({
    status, headers: { "content-type": "application/problem+json", ...more },
    body: JSON.stringify({ title: "Busy", status, detail: "the queue is full", errors: [] }),
  });

  it("keeps the last picture, says what is wrong, and recovers by itself", async () => {
    for (const trouble of ["offline", "busy"] as const) {
      const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1 }), { expected: /503|Failed to load|ERR_/ });
      const first = await page.evaluate(() => window.convoke.value("dx"));
      await page.route("**/v1/conv/*", (route) => (trouble === "offline" ? route.abort() : route.fulfill(problem(503, { "retry-after": "1" }))));
      await page.getByRole("button", { name: "increase Stride" }).click();
      await page.locator(`[data-trouble="${trouble}"]`).waitFor();
      expect(await page.evaluate(() => window.convoke.value("dx"))).toEqual(first);
      expect(await page.locator(grid("dx")).isVisible()).toBe(true);
      await page.unroute("**/v1/conv/*");
      await page.locator(".trouble").waitFor({ state: "detached", timeout: 60_000 });
      await page.waitForFunction(() => window.convoke.value("y").length === 4);
      await done();
    }
  });

  it("costs no change: the address has what is asked for at once, and a reload keeps it", async () => {
    const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1 }), { expected: /Failed to load|ERR_/ });
    await page.route("**/v1/**", (route) => route.abort());
    await page.getByRole("button", { name: "increase Stride" }).click();
    await page.locator('[data-trouble="offline"]').waitFor();
    await page.waitForFunction(() => decodeURIComponent(location.hash).includes('"stride":3'));
    await page.reload();
    await page.locator('[data-trouble="offline"]').waitFor();
    await page.unroute("**/v1/**");
    await page.waitForFunction(() => window.convoke?.value("y").length === 4);
    await settled(page);
    await done();
  });

  it("is told from a proxy that cannot reach it, and from somebody else's page, and asked again", async () => {
    const answers = {
      gateway: [{ status: 502, contentType: "text/html", body: "<h1>502</h1>" }, "The service cannot be reached. A server on the way to it says 502 Bad Gateway. What you see is its last answer. The page asks again by itself"],
      foreign: [{ status: 200, contentType: "text/html", body: "<h1>Log in</h1>" }, "Something else than the service answered. The answer is text/html, as of a proxy or a login page. What you see is its last answer. The page asks again by itself"],
    } as const;
    for (const [kind, [answer, words]] of Object.entries(answers)) {
      const { page, done } = await open(browser, link({ op: "conv", c: 1, o: 1 }), { expected: /502/ });
      await page.route("**/v1/conv/*", (route) => route.fulfill(answer));
      await page.getByRole("button", { name: "increase Stride" }).click();
      await page.locator(`[data-trouble="${kind}"]`).waitFor();
      expect(await page.locator(".trouble").getByRole("status").textContent()).toBe(words);
      expect(await page.getByRole("button", { name: "Try now" }).count()).toBe(1);
      expect(await page.locator(".connection").textContent()).toBe("no answer");
      await page.unroute("**/v1/conv/*");
      await page.locator(".trouble").waitFor({ state: "detached", timeout: 60_000 });
      await page.waitForFunction(() => window.convoke.value("y").length === 4);
      await done();
    }
  });

  it("is asked again by whichever view is on show, and by Trace for one that is left", async () => {
    const views = {
      verify: (page: Page) => page.getByRole("button", { name: "Check again" }).click(),
      checkerboard: (page: Page) => page.getByRole("button", { name: "increase Kernel" }).click(),
      request: (page: Page) => page.getByRole("radio", { name: "Forward" }).click(),
      image: (page: Page) => page.getByRole("radiogroup", { name: "Stride" }).getByRole("radio", { name: "2" }).click(),
    };
    for (const [view, act] of Object.entries(views)) {
      for (const leave of [false, true]) {
        const { page, done } = await open(browser, link({ view }), { expected: /Failed to load|ERR_/ });
        await page.waitForLoadState("networkidle");
        await page.route("**/v1/**", (route) => route.abort());
        await act(page);
        await page.locator('[data-trouble="offline"]').waitFor();
        if (leave) await page.getByRole("tab", { name: "Trace" }).click();
        await page.unroute("**/v1/**");
        await page.locator(".trouble").waitFor({ state: "detached", timeout: 60_000 });
        if (view === "image" && !leave) await page.getByText("4 × 16 × 16").waitFor();
        if (view === "verify" && !leave) await page.locator('[data-state="done"]').waitFor();
        await done();
      }
    }
  });

  it("shows a problem that time does not heal, and does not ask again by itself", async () => {
    const { page, done } = await open(browser, "", { expected: /500/ });
    let asked = 0;
    await page.route("**/v1/conv/*", (route) => {
      asked += 1;
      return route.fulfill(problem(500));
    });
    await page.getByRole("button", { name: "increase Stride" }).click();
    await page.locator('[data-trouble="problem"]').waitFor();
    expect(await page.locator(".trouble").textContent()).toContain("The queue is full.");
    await page.waitForTimeout(1200);
    expect(asked).toBe(1);
    await done();
  });

  it("says that it refused, or how long it has been waited for", async () => {
    const { page, done } = await open(browser, "", { expected: /500/ });
    const said = page.locator(".connection");
    await page.route("**/v1/conv/*", (route) => route.fulfill(problem(500)));
    await page.getByRole("button", { name: "increase Stride" }).click();
    await page.locator('[data-trouble="problem"]').waitFor();
    expect(await said.textContent()).toBe("refused");
    await page.unroute("**/v1/conv/*");
    await page.getByRole("button", { name: "Try now" }).click();
    await page.locator(".trouble").waitFor({ state: "detached" });
    let goOn = () => {};
    const told = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await page.route("**/v1/conv/*", async (route) => {
      await told;
      await route.continue();
    });
    await page.getByRole("button", { name: "decrease Stride" }).click();
    await expect.poll(() => said.textContent()).toMatch(/^waiting [1-9]\d* s$/);
    goOn();
    await expect.poll(() => said.textContent()).toMatch(/ ms$/);
    await done();
  });

  it("is told once, and leaves the way to ask again under the finger and the focus", async () => {
    const { page, done } = await open(browser, "", { expected: /503/ });
    const now = page.getByRole("button", { name: "Try now" });
    let asked = 0;
    let wait = "1";
    await page.route("**/v1/conv/*", (route) => {
      asked += 1;
      return route.fulfill(problem(503, { "retry-after": wait }));
    });
    await page.getByRole("button", { name: "increase Stride" }).click();
    await now.focus();
    const status = page.getByRole("status").filter({ hasText: "The service is busy." });
    const told = await status.evaluateHandle((element) => {
      const seen = { changes: 0 };
      new MutationObserver((records) => {
        seen.changes += records.length;
      }).observe(element, { childList: true, characterData: true, subtree: true });
      return seen;
    });
    const first = asked;
    await expect.poll(() => asked).toBeGreaterThan(first + 1);
    expect(await now.evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await told.evaluate(({ changes }) => changes)).toBe(0);
    expect(await status.textContent()).toMatch(/is busy\..*asks again by itself$/);
    wait = "30";
    await expect.poll(() => page.locator(".trouble").textContent()).toMatch(/, in \d\d s\. Try now$/);
    await now.hover();
    await page.mouse.down();
    await page.waitForTimeout(1300);
    const held = asked;
    await page.mouse.up();
    await expect.poll(() => asked).toBe(held + 1);
    await page.unroute("**/v1/conv/*");
    await now.press("Enter");
    await page.locator(".trouble").waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Trace");
    await settled(page);
    await done();
  });

  it("says why where no control stands for what it refuses", async () => {
    const { page, done } = await open(browser, "", { expected: /422/ });
    const body = JSON.stringify({ title: "Empty output", status: 422, detail: "x", errors: [{ loc: ["x", "shape", 2], msg: "no window fits", expected: "at least 9" }] });
    await page.route("**/v1/lp_pool/*", (route) => route.fulfill({ ...problem(422), body }));
    await page.getByRole("combobox", { name: "Operation" }).selectOption("lp_pool");
    await page.locator(".panel .refusal").waitFor();
    expect(await page.locator(".panel .refusal").textContent()).toBe("That is not possible: x, axis h: no window fits (at least 9).");
    expect(await page.getByRole("combobox", { name: "Operation" }).inputValue()).toBe("conv");
    await done();
  });

  it("says why a link or a file is refused, on every view and in narrow windows", async () => {
    const { page, done } = await open(browser, "", { expected: /422/, viewport: { width: 375, height: 700 } });
    const said = page.locator(".notice");
    const before = await page.evaluate(() => window.convoke.value("y"));
    const wrong = { op: "conv", size: "5.5", config: { dilation: 9 } };
    for (const view of ["trace", "verify"]) {
      // One of a layer that is possible: what is said of the last one goes with it.
      await go(page, link({ view }));
      await said.waitFor({ state: "detached" });
      await go(page, link({ ...wrong, view }));
      await said.waitFor();
      expect((await said.textContent())!.match(/is not possible/g), view).toHaveLength(1);
      expect(await said.textContent()).toMatch(/: x, axis h: the output would be empty.*\(at least \d+\)\..*The one before it is kept\./);
      expect(await page.evaluate(() => window.convoke.value("y"))).toEqual(before);
    }
    expect(await page.locator(".refusal").count()).toBe(0);
    await go(page, link({ view: "verify" }));
    await said.waitFor({ state: "detached" });
    await page.locator(".bar .menu summary").click();
    const buffer = Buffer.from(JSON.stringify({ state: link({ ...wrong, view: "verify" }), tensors: {} }));
    await page.locator('input[aria-label="A saved layer"]').setInputFiles({ name: "layer.json", mimeType: "application/json", buffer });
    await said.getByText("is not possible").waitFor();
    await done();
  });

  it("says why in narrow windows too, once and in view, whether the settings are open or not", async () => {
    const { page, done } = await open(browser, link({ op: "activation", config: { name: "gelu" } }), { expected: /422/, viewport: { width: 375, height: 700 } });
    const said = page.locator(".refusal:visible");
    const operation = page.getByRole("combobox", { name: "Operation" });
    const groups = page.getByRole("spinbutton", { name: "Groups", exact: true });
    const body = JSON.stringify({ title: "Empty output", status: 422, detail: "x", errors: [{ loc: ["x", "shape", 2], msg: "no window fits", expected: "at least 9" }] });
    await page.route("**/v1/lp_pool/*", (route) => route.fulfill({ ...problem(422), body }));
    await operation.selectOption("lp_pool");
    await said.waitFor();
    expect(await said.allTextContents()).toEqual(["That is not possible: x, axis h: no window fits (at least 9)."]);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    expect((await said.boundingBox())!.y).toBeGreaterThanOrEqual(0);
    await operation.selectOption("avg_pool");
    await said.waitFor({ state: "detached" });
    await settled(page);
    await go(page, link({ op: "conv", c: 4, o: 4 }));
    await page.getByRole("button", { name: "Settings" }).click();
    await groups.fill("3");
    // The press leaves the field, which asks only then, and takes the sheet away before the answer.
    await page.getByRole("button", { name: "Done" }).click();
    await said.waitFor();
    expect(await said.allTextContents()).toEqual([expect.stringMatching(/^That is not possible: x, channels: channels do not divide into groups/)]);
    await page.getByRole("button", { name: "Settings" }).click();
    await said.getByRole("button", { name: "Use 2" }).waitFor();
    expect(await said.count()).toBe(1);
    await page.getByRole("button", { name: "Done" }).click();
    await page.setViewportSize({ width: 1440, height: 900 });
    expect(await said.allTextContents()).toEqual([expect.stringMatching(/^3 is not possible/)]);
    await said.getByRole("button", { name: "Use 2" }).click();
    await said.waitFor({ state: "detached" });
    expect(await page.locator(".refusal").count()).toBe(0);
    await settled(page);
    await done();
  });

  it("names the field of a link that there is not, and of one that has no such value", async () => {
    const { page, done } = await open(browser, "", { expected: /422/ });
    const said = page.locator(".notice");
    for (const [config, words] of [[{ strid: 2 }, ": strid: no such field; did you mean stride? (one of stride, "], [{ stride: [1, 0.5] }, ": stride, axis w: not an integer (an integer from 1"]] as const) {
      await go(page, link({ op: "conv", config }));
      await expect.poll(() => said.textContent()).toContain(`The layer of this link or file is not possible${words}`);
    }
    await done();
  });

  it("opens before the service does", async () => {
    let up = false;
    const { page, done } = await open(browser, "", {
      expected: /Failed to load|ERR_/,
      before: async (fresh) => {
        await fresh.route("**/v1/**", (route) => (up ? route.continue() : route.abort()));
        setTimeout(() => {
          up = true;
        }, 700);
      },
    });
    await settled(page);
    await page.locator('[data-field="stride"]').waitFor();
    await done();
  });
});
