import { describe, expect, it } from "vitest";
import { BlockError, laid, MOST_CHARACTERS, readBlock, readNumber, writeBlock } from "../src/data/block";

const rows = (text: string) => {
  const { rows, cols, values } = readBlock(text);
  return Array.from({ length: rows }, (_, r) => values.slice(r * cols, (r + 1) * cols));
};

const told = (text: string): string => {
  try {
    readBlock(text);
  } catch (error) {
    if (error instanceof BlockError) return error.message;
    throw error;
  }
  throw new Error(`${text} was read`);
};

describe("a block of numbers", () => {
  const SQUARE = [[1, 2.5], [-3, 0.5]];

  it.each([
    ["a spreadsheet", "1\t2.5\n-3\t.5\n"],
    ["a spreadsheet of Windows", "1\t2.5\r\n-3\t.5\r\n"],
    ["a spreadsheet with decimal commas", "1\t2,5\n-3\t0,5"],
    ["lines with commas", "1,2.5\n-3, 5e-1"],
    ["lines with spaces and a real minus", "\n  1 2.5\n −3  0.5  \n\n"],
    ["semicolons", "1 2.5; -3 .5;"],
    ["semicolons at the ends of lines", "1 2.5; \n-3 .5;\n"],
    ["a file of columns between semicolons", "1;2,5\r\n-3;0,5\r\n"],
    ["such a file with points", "1;2.5\n-3;.5"],
    ["lines with spaces that are not broken at", "\u00a01,\u00a02.5\n\u00a0-3, 0.5"],
    ["a list of lists", "[[1, 2.5], [-3, 0.5]]"],
    ["a list over many lines, with last commas", "[\n    [\n        1,\n        2.5,\n    ],\n    [-3, 0.5,],\n]\n"],
    ["NumPy's print", "[[ 1.   2.5]\n [-3.   0.5]]"],
    ["NumPy's repr", "array([[ 1. ,  2.5],\n       [-3. ,  0.5]], dtype=float32)"],
    ["a program", "x = np.array([[1, 2.5], [-3, 0.5]]);"],
    ["PyTorch's print, with axes of 1", "tensor([[[[ 1.0000,  2.5000],\n          [-3.0000,  0.5000]]]], device='cuda:0')"],
    ["PyTorch's print of a gradient", "tensor([[1., 2.5], [-3., 0.5]], grad_fn=<AddBackward0>)"],
    ["MATLAB", "[1 2.5; -3 .5]"],
    ["a list a line", "[1, 2.5],\n[-3, 0.5],"],
  ])("is read from %s", (_, text) => {
    expect(rows(text)).toEqual(SQUARE);
  });

  it("of NumPy's has the rows of its brackets, however its lines are broken", () => {
    expect(rows("[[1 2 3\n  4 5]\n [6 7 8\n  9 0]]")).toEqual([[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]]);
    expect(rows("[1, 2,\n 3, 4]")).toEqual([[1, 2, 3, 4]]);
    expect([rows("7"), rows("1\n2\n3"), rows("1 2 3")]).toEqual([[[7]], [[1], [2], [3]], [[1, 2, 3]]]);
  });

  it.each([
    ["1 2\n3 x", "Row 2, column 2: expected a finite number, got “x”"],
    ["1\t\n2\t3", "Row 1, column 2: expected a finite number, got nothing"],
    ["1,,2", "Row 1, column 2: expected a finite number, got nothing"],
    ["1 2\n3", "Row 2: expected 2 numbers, as in row 1, got 1"],
    ["1\n\n3", "Row 2: expected 1 number, as in row 1, got 0"],
    ["[[1, 2], [3]]", "Row 2: expected 2 numbers, as in row 1, got 1"],
    ["[[1, NaN]]", "Row 1, column 2: expected a finite number, got “NaN”"],
    ["1 1e39", "Row 1, column 2: expected a number within float32, up to 3.4e38, got “1e39”"],
    ["0x10", "Row 1, column 1: expected a finite number, got “0x10”"],
    ["[[0 1 ... 8 9]]", "Row 1, column 3: expected a finite number, got “...”"],
    ["[[1 2]\n ...\n [3 4]]", "Outside the rows: expected nothing, got “...”"],
    ["[[[1, 2]], [[3, 4]]]", "Brackets: expected one plane, a list of rows, got 2 planes"],
    ["[[1], [[2]]]", "Brackets: expected one plane, a list of rows, got 2 planes"],
    ["[1, [2, 3]]", "Outside the rows: expected nothing, got “1,”"],
    ["[[1, 2]", "Brackets: expected as many closed as opened, got others"],
    ["[1]] [[2]", "Brackets: expected as many closed as opened, got others"],
    ["[1, 2", "Brackets: expected as many closed as opened, got others"],
    ["] 1 [", "Brackets: expected as many closed as opened, got others"],
    ["see [1, 2]", "Outside the rows: expected nothing, got “see”"],
    ["[1, 2] and more", "Outside the rows: expected nothing, got “and more”"],
    // A comma between tabs may be the decimal one, or stand between thousands: nobody can tell from these.
    ["1,234\t5", "Row 1, column 1: expected a finite number, got “1,234”"],
    ["1,234.5\t0,5", "Row 1, column 1: expected a finite number, got “1,234.5”"],
    ["1.234,5\t2", "Row 1, column 1: expected a finite number, got “1.234,5”"],
    // Without tabs too, in a single column; and beside spaces it is no column's.
    ["2,5", "Row 1: expected a point, or a space after the comma, got “2,5”"],
    ["-2,5\r\n3,25\r\n", "Row 1: expected a point, or a space after the comma, got “-2,5”"],
    ["1,5;2,5", "Row 1: expected a point, or a space after the comma, got “1,5”"],
    ["1,5 2,5", "Row 1, column 1: expected a finite number, got “1,5”"],
    ["1\u00a0234", "Row 1, column 1: expected a finite number, got “1\u00a0234”"],
    ["1\u202f234.5 2", "Row 1, column 1: expected a finite number, got “1\u202f234.5”"],
    ["1 2; 3 4\n5 6; 7 8", "Row 1, column 1: expected a finite number, got “1 2”"],
    ["", "The text: expected numbers, got nothing"],
    [" \n\n", "The text: expected numbers, got nothing"],
    ["[]", "The text: expected numbers, got nothing"],
    [`a${"b".repeat(40)}`, `Row 1, column 1: expected a finite number, got “a${"b".repeat(23)}…”`],
  ])("%j is told apart: %s", (text, words) => {
    expect(told(text)).toBe(words);
  });

  it("is not looked for in a text that is too long, and in hostile ones not for long", () => {
    expect(told("1 ".repeat(MOST_CHARACTERS))).toBe("The text: expected at most 200,000 characters, got 400,000 characters");
    const half = MOST_CHARACTERS / 2;
    const started = performance.now();
    for (const text of [" ".repeat(half) + "x", `1${" ".repeat(half)},2${" ".repeat(half - 9)}x`, "[".repeat(half), "[]".repeat(half), `[1]${",".repeat(half)}`, `${"a".repeat(half)}[1]`, "\n".repeat(half) + "\tx", "1,".repeat(half), ";".repeat(half), `${"1".repeat(half)}x`]) told(text);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  it("may be wanted as something else than finite numbers", () => {
    const wanted = { words: "a whole number from 0 to 8", test: (value: number) => Number.isInteger(value) && value >= 0 && value <= 8 };
    expect(readBlock("0 8", wanted).values).toEqual([0, 8]);
    expect(() => readBlock("0 9", wanted)).toThrow("Row 1, column 2: expected a whole number from 0 to 8, got “9”");
  });

  it("of one cell is typed as a number, with a point or a comma, and else is named", () => {
    expect([" 2,5", "−3", "+1e3", ".5", "-0", "1e38"].map((text) => readNumber(text))).toEqual([2.5, -3, 1000, 0.5, -0, 1e38]);
    for (const text of ["abc", "1/2", "1 000", "1,000.5", "Infinity", "0x10", "-", "1 2"]) {
      expect(() => readNumber(text), text).toThrow(`The cell: expected a finite number, got “${text}”`);
    }
    for (const text of ["1e39", "-1e400"]) expect(() => readNumber(text)).toThrow(`expected a number within float32, up to 3.4e38, got “${text}”`);
    const even = { words: "an even number", test: (value: number) => value % 2 === 0 };
    expect(readNumber("4", even)).toBe(4);
    for (const text of ["3", "1e400"]) expect(() => readNumber(text, even)).toThrow(`expected an even number, got “${text}”`);
  });

  it("is written with tabs, and read back to the same bits", () => {
    const values = Float32Array.of(0.1, -0, 1 / 3, 16777217, 3e-45, -3.4e38);
    const text = writeBlock({ cols: 3, values });
    expect(text).toBe("0.1\t-0\t0.33333334\n16777216\t3e-45\t-3.4e+38");
    const back = Float32Array.from(readBlock(text).values);
    values.forEach((value, at) => expect(Object.is(back[at], value), String(value)).toBe(true));
    expect(writeBlock({ cols: 2, values: [1, 2, 3, NaN], hidden: Uint8Array.of(0, 1, 0, 0) })).toBe("1\t\n3\tNaN");
  });

  it("fills what fits from a cell on", () => {
    const block = readBlock("1 2 3; 4 5 6");
    expect([...laid(block, { rows: 4, cols: 4 }, 5)]).toEqual([[5, 1], [6, 2], [7, 3], [9, 4], [10, 5], [11, 6]]);
    expect([...laid(block, { rows: 2, cols: 2 }, 1)]).toEqual([[1, 1], [3, 4]]);
    expect([...laid(readBlock("1\n2\n3"), { rows: 1, cols: 4 }, 2)]).toEqual([[2, 1], [3, 2]]);
    expect([...laid(readBlock("1\n2\n3"), { rows: 2, cols: 4 }, 2)]).toEqual([[2, 1], [6, 2]]);
  });
});
