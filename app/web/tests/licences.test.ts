/** What the built page has of others comes with their notices. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import manifest from "../package.json";

const ROOT = join(import.meta.dirname, "..");
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), "utf8").trim();

it("has the licence of every package that is bundled, word by word", () => {
  const all = read("dist/licences.md");
  for (const name of Object.keys(manifest.dependencies)) {
    const licence = readdirSync(join(ROOT, "node_modules", name)).find((file) => /^licen[cs]e/i.test(file))!;
    expect(all).toContain(`## ${name} - `);
    expect(all).toContain(read("node_modules", name, licence));
  }
});

it("has Swagger UI's licence, its notice, and the notices that its bundle names", () => {
  const [, named] = /see (\S+\.LICENSE\.txt)/.exec(read("dist/swagger/swagger-ui-bundle.js"))!;
  for (const file of ["LICENSE", "NOTICE", named]) {
    expect(read("dist/swagger", file)).toBe(read("node_modules/swagger-ui-dist", file));
  }
});
