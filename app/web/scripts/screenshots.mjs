/** Pictures of every view for the documentation: node scripts/screenshots.mjs http://127.0.0.1:8000 ../../docs */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [base = "http://127.0.0.1:8000", out = "../../docs"] = process.argv.slice(2);
const installed = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const executablePath = process.env.CHROMIUM ?? installed;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

const shots = [
  { name: "trace", hash: "#v=1" },
  { name: "trace-pool", hash: "#v=1&op=max_pool&cell=dx.0.0.0.2.2", scheme: "dark" },
  { name: "verify", hash: "#v=1&view=verify", wait: '[data-state="done"]' },
  { name: "checkerboard", hash: "#v=1&view=checkerboard", wait: '[data-picture="transposed"][data-side="13"]', height: 1140 },
  { name: "request", hash: "#v=1&view=request", wait: ".stages tfoot" },
  { name: "image", hash: "#v=1&view=image", wait: "[data-map=pooled-0]", height: 1160 },
];

for (const { name, hash, wait = ".total", scheme = "light", height = 900 } of shots) {
  const page = await browser.newPage({ viewport: { width: 1440, height }, colorScheme: scheme });
  // The first answer's time is that of a fresh connection; the second is what a user sees.
  for (let visit = 0; visit < 2; visit += 1) {
    await page.goto("about:blank");
    await page.goto(`${base.replace(/\/?$/, "/")}${hash}`);
    await page.locator(wait).first().waitFor();
    await page.waitForTimeout(700);
  }
  await page.screenshot({ path: join(out, `page-${name}.png`) });
  await page.close();
}
await browser.close();
