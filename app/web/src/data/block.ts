/**
 * A block of numbers as text. Read from what spreadsheets, NumPy and lists of Python, JSON or MATLAB look like: rows on
 * lines, between semicolons or in brackets; columns between tabs, commas or spaces, or semicolons on lines. Written with tabs.
 */

import { count } from "../core/format";
import { shortest } from "./text";

export interface Block {
  readonly rows: number;
  readonly cols: number;
  /** Row by row. */
  readonly values: readonly number[];
}

/** What a cell takes. */
export interface Wanted {
  readonly words: string;
  readonly test: (value: number) => boolean;
}

export const FINITE: Wanted = { words: "a finite number", test: (value) => Number.isFinite(Math.fround(value)) };

/** A text that is no block: where, what was expected there, and what was found. */
export class BlockError extends Error {
  constructor(readonly where: string, readonly expected: string, readonly got: string) {
    super(`${where}: expected ${expected}, got ${got}`);
  }
}

const UNBALANCED = new BlockError("Brackets", "as many closed as opened", "others");

/** Longer texts are not looked at: no plane of the page has as many numbers. */
export const MOST_CHARACTERS = 200_000;

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
/** Around the brackets of a printed array, `x = np.array(` and `, dtype=float32)`, and between its rows. */
const [BEFORE, AFTER, BETWEEN] = [/^\s*([\w.]+\s*=\s*)?([\w.]+\()?\s*$/, /^(,[\w\s.:=,"'<>]*)?\)?\s*[;,]?\s*$/, /^[\s,;]*$/];
const LONGEST_OUTSIDE = 200;

/** @throws BlockError where the text is none: then nothing of it is to be used. */
export function readBlock(text: string, wanted = FINITE): Block {
  if (text.length > MOST_CHARACTERS) throw new BlockError("The text", `at most ${count(MOST_CHARACTERS, "character")}`, count(text.length, "character"));
  const plain = text.replace(/\r\n?/g, "\n").replaceAll("−", "-");
  const rows = /[[\]]/.test(plain) ? bracketed(plain) : lines(plain);
  const cols = rows[0].length;
  if (cols === 0) throw new BlockError("The text", "numbers", "nothing");
  rows.forEach((row, r) => {
    if (row.length !== cols) throw new BlockError(`Row ${r + 1}`, `${count(cols, "number")}, as in row 1`, String(row.length));
  });
  const values = rows.flatMap((row, r) => row.map((cell, c) => {
    const value = NUMBER.test(cell) ? Number(cell) : NaN;
    if (!wanted.test(value)) throw new BlockError(`Row ${r + 1}, column ${c + 1}`, wordsFor(wanted, value), quoted(cell));
    return value;
  }));
  return { rows: rows.length, cols, values };
}

/** One number as it is typed, with a decimal comma or point; NaN where the text is none. */
export function numberIn(text: string): number {
  const plain = text.trim().replaceAll("−", "-").replace(",", ".");
  return NUMBER.test(plain) ? Number(plain) : NaN;
}

/** @throws BlockError where the text is no number that the cell takes. */
export function readNumber(text: string, wanted = FINITE): number {
  const value = numberIn(text);
  if (!wanted.test(value)) throw new BlockError("The cell", wordsFor(wanted, value), quoted(text.trim()));
  return value;
}

/** A number that is too large is finite to whoever typed it. */
function wordsFor(wanted: Wanted, value: number): string {
  return wanted === FINITE && !Number.isNaN(value) ? "a number within float32, up to 3.4e38" : wanted.words;
}

function quoted(text: string): string {
  return text === "" ? "nothing" : `“${text.length > 24 ? `${text.slice(0, 24)}…` : text}”`;
}

/** Not so the spaces between thousands, which no line is broken at. */
const BETWEEN_CELLS = /[^\S\u00a0\u2007\u2009\u202f]*,\s*|[^\S\u00a0\u2007\u2009\u202f]+/;
/** One number with a decimal comma, as the single column of a spreadsheet has, or two: nobody can tell. */
const EITHER = /^ *[+-]?\d+,\d+(e[+-]?\d+)? *$/i;

/** Cells of a row that has no tabs. */
function spaced(row: string): string[] {
  const text = row.trim();
  // Where spaces stand between cells, a comma inside of one as in `1,5 2,5` is left to be refused.
  return text === "" ? [] : text.split(/\S,\S/.test(text) && /[^\s,]\s+[^\s,]/.test(text) ? /\s+/ : BETWEEN_CELLS);
}

function lines(text: string): string[][] {
  const all = text.replace(/^( *\n)+/, "").trimEnd();
  if (text.includes("\t")) return separated(all.split("\n"), "\t");
  // Inside of several lines semicolons are between columns, as files have them; else they end rows.
  if (all.includes("\n") && /;[^\S\n]*[^\s;]/.test(all)) return separated(all.split("\n"), ";");
  const rows = all.replace(/;$/, "").split(/;[^\S\n]*\n|[\n;]/);
  if (rows.every((row) => EITHER.test(row))) throw new BlockError("Row 1", "a point, or a space after the comma", quoted(rows[0].trim()));
  return rows.map(spaced);
}

function separated(rows: readonly string[], by: string): string[][] {
  return pointed(rows.map((row) => row.split(by).map((cell) => cell.trim())));
}

/**
 * Beside tabs, which come from a spreadsheet, and a file's semicolons a comma is part of a number. It is the decimal one if
 * some number shows it; `1,234` alone could be either, and is left to be refused.
 */
function pointed(rows: string[][]): string[][] {
  const cells = rows.flat();
  const decimal = !cells.some((cell) => cell.includes(".")) && cells.some((cell) => /,(?!\d{3}(,|$))/.test(cell));
  return decimal ? rows.map((row) => row.map((cell) => cell.replace(",", "."))) : rows;
}

/** Innermost brackets are rows, however they are broken into lines; all rows have to be of one plane. */
function bracketed(text: string): string[][] {
  const [first, last] = [text.indexOf("["), text.lastIndexOf("]")];
  if (first < 0 || last < first) throw UNBALANCED;
  outside(text.slice(0, first), BEFORE);
  outside(text.slice(last + 1), AFTER);
  const rows: string[][] = [];
  const planes = new Set<number>();
  const open: number[] = [];
  /** What stands since the bracket that was opened last; null where one was closed since. */
  let row: string | null = null;
  for (const { 0: part, index } of text.slice(first, last + 1).matchAll(/[[\]]|[^[\]]+/g)) {
    if (part === "[") {
      outside(row ?? "", BETWEEN);
      open.push(index);
      row = "";
    } else if (part === "]") {
      if (open.pop() === undefined) throw UNBALANCED;
      if (row !== null) {
        rows.push(...row.split(";").map((one) => spaced(one.trim().replace(/,$/, ""))));
        planes.add(open.at(-1) ?? -1);
      }
      row = null;
    } else if (row === null) outside(part, BETWEEN);
    else row = part;
  }
  if (open.length > 0) throw UNBALANCED;
  if (planes.size > 1) throw new BlockError("Brackets", "one plane, a list of rows", `${planes.size} planes`);
  return rows;
}

function outside(text: string, form: RegExp): void {
  if (text.length > LONGEST_OUTSIDE || !form.test(text)) throw new BlockError("Outside the rows", "nothing", quoted(text.trim()));
}

/** With tabs between columns, which spreadsheets and `readBlock` take; cells that show nothing stay empty. */
export function writeBlock({ cols, values, hidden }: { cols: number; values: ArrayLike<number>; hidden?: Uint8Array | null }): string {
  const cells = Array.from(values, (value, at) => (hidden?.[at] ? "" : shortest(value)));
  return Array.from({ length: cells.length / cols }, (_, row) => cells.slice(row * cols, (row + 1) * cols).join("\t")).join("\n");
}

/**
 * Which cells of a plane a block fills that begins at one of them. What would be beyond the edge is left out. Where the plane
 * is a single row, a single column lies along it.
 */
export function laid(block: Block, plane: { readonly rows: number; readonly cols: number }, at: number): Map<number, number> {
  const cols = plane.rows === 1 && block.cols === 1 ? block.rows : block.cols;
  const [top, left] = [Math.floor(at / plane.cols), at % plane.cols];
  const filled = new Map<number, number>();
  block.values.forEach((value, i) => {
    const [r, c] = [top + Math.floor(i / cols), left + (i % cols)];
    if (r < plane.rows && c < plane.cols) filled.set(r * plane.cols + c, value);
  });
  return filled;
}
