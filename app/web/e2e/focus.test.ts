/** Where the keyboard is after what it did: on the control that it pressed, or on what that was about. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch, link, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** The name of what has the focus. */
const focused = (page: Page) => page.evaluate(() => {
  const at = document.activeElement!;
  return at === document.body ? "nothing" : at.getAttribute("aria-label") ?? at.textContent;
});

async function press(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).focus();
  await page.keyboard.press("Enter");
}

describe("a control that its own press changes or takes away", () => {
  it("keeps the focus, or gives it to its field", async () => {
    const { page, done } = await open(browser, link({ op: "max_pool", config: { kernel: 3 } }));
    await press(page, "Dilation: per axis");
    expect(await focused(page)).toBe("Dilation: joined");
    await page.keyboard.press("Enter");
    expect(await focused(page)).toBe("Dilation: per axis");
    await page.getByRole("spinbutton", { name: "Stride", exact: true }).focus();
    await page.keyboard.press("ArrowUp");
    await press(page, "Stride: per axis");
    await press(page, "Stride: auto");
    expect(await focused(page)).toBe("Stride");
    await settled(page);
    await done();
  });

  it("gives the focus to the field that was refused, where keys took the offer", async () => {
    const { page, done } = await open(browser, link({ op: "conv", c: 4, o: 4 }), { expected: /422/ });
    const groups = page.getByRole("spinbutton", { name: "Groups", exact: true });
    const refuse = async () => {
      await groups.fill("3");
      await groups.press("Enter");
      await page.locator('[data-field="groups"] .refusal').getByRole("button").waitFor();
    };
    await refuse();
    await press(page, "Use 2");
    expect(await focused(page)).toBe("Groups");
    await page.waitForFunction(() => window.convoke.value("weight").length === 4 * 2 * 9);
    await refuse();
    // A finger that took it would have a telephone's keyboard come up.
    await page.getByRole("button", { name: "Use 4" }).click();
    expect(await focused(page)).not.toBe("Groups");
    await done();
  });

  it("keeps the focus at both ends of the sweep, and where all is shown", async () => {
    const { page, done } = await open(browser, link({ op: "conv", size: "4.4", config: {} }));
    const steps = () => page.locator(".steps").textContent();
    await press(page, "Step back");
    expect([await steps(), await focused(page)]).toEqual(["4 windows", "Step back"]);
    for (const [name, said] of [["Step on", "4 / 4"], ["Step back", "0 / 4"]]) {
      await page.getByRole("button", { name }).focus();
      for (let i = 0; i < 5; i += 1) await page.keyboard.press("Enter");
      expect([await steps(), await focused(page)]).toEqual([said, name]);
      expect(await page.getByRole("button", { name }).getAttribute("aria-disabled")).toBe("true");
    }
    await press(page, "Show all");
    expect([await steps(), await focused(page)]).toEqual(["4 windows", "Show all"]);
    await done();
  });

  it("gives the focus to the view where a notice is dismissed", async () => {
    const { page, done } = await open(browser, link({ op: "conv", cell: "evil" }));
    await press(page, "Dismiss");
    expect([await focused(page), await page.locator(".notice").count()]).toEqual(["Trace", 0]);
    await done();
  });
});

it("the word beside a field changes nothing where it is pressed", async () => {
  const { page, done } = await open(browser, link({ view: "checkerboard" }));
  const click = async (name: string, line: string, kept: string) => {
    const field = page.getByRole("spinbutton", { name, exact: true });
    // At the left end, where the word is.
    await page.locator(line, { has: field }).click({ position: { x: 6, y: 10 } });
    expect(await field.inputValue(), name).toBe(kept);
  };
  await click("Kernel", ".inline", "3");
  await click("Stride", ".inline", "2");
  await page.getByRole("tab", { name: "Verify" }).click();
  await page.getByRole("button", { name: "increase Seed of the samples" }).click();
  await click("Seed of the samples", ".inline", "2");
  await page.getByRole("tab", { name: "Trace" }).click();
  await page.getByRole("radio", { name: "3-D" }).click();
  await page.getByRole("button", { name: "increase X depth" }).click();
  await click("X depth", ".depth", "1");
  await settled(page);
  await done();
});
