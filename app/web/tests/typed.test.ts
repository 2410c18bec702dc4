import { expect, it } from "vitest";
import { readTyped } from "../src/form/typed";

const STRIDE = { minimum: 1, maximum: 64, whole: true };

it("what is typed into a field of numbers is taken, or answered", () => {
  const read = (text: string, range = STRIDE) => readTyped(text, range, "2");
  for (const [text, value] of [["3", 3], [" 64 ", 64], ["1e1", 10], ["+7", 7], ["4,0", 4]] as const) {
    expect(read(text), text).toEqual({ value, said: null });
  }
  expect(read("1e3")).toEqual({ value: 64, said: "64 is the page’s limit: set in place of “1e3”." });
  expect(read("-1")).toEqual({ value: 1, said: "1 is the least: set in place of “-1”." });
  for (const text of ["abc", "1.5", "1e400", "0x10", "2 3"]) {
    expect(read(text)).toEqual({ value: null, said: `Expected a whole number from 1 to 64, got “${text}”: still 2.` });
  }
  expect(read("0,3", { minimum: -Infinity, maximum: Infinity, whole: false })).toEqual({ value: 0.3, said: null });
  expect(read("x".repeat(50), { minimum: -Infinity, maximum: Infinity, whole: false }).said).toBe(`Expected a number, got “${"x".repeat(24)}…”: still 2.`);
});
