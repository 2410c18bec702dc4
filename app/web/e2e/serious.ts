/** What axe finds that keeps somebody from using the page. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function serious(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(): Promise<{ violations: { impact: string; id: string; nodes: { html: string }[] }[] }> } }).axe;
    const { violations } = await axe.run();
    return violations.filter(({ impact, id }) => ["serious", "critical"].includes(impact) || id.startsWith("landmark")).map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
}
