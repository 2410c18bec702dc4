/** What stands in the list of terms: its columns, their titles, and the entries of each line. */

import { medium } from "../../core/format";
import { level, table } from "../../grid/colour";
import { breadth } from "../../grid/draw";
import type { Explanation, Part, Role, Term } from "../../math/layer";
import { position } from "../../math/shape";
import type { Served } from "../../state/served";
import { theme } from "../../state/theme";
import { SYMBOL } from "./names";
import { scaleFor } from "./planes";
import type { Colours, Entry, Line } from "./rows";

/** What one line of the table is made of, alike for all terms of a cell. */
interface Columns {
  readonly heads: readonly Part[];
  readonly product: string | null;
  readonly target: Role | null;
  readonly notes: boolean;
  /** What is left out, since a line would be too long with it: 1 blanks between places, 2 what factors are functions of, 3 the last factor's place too, which follows from the others. */
  readonly less: 0 | 1 | 2 | 3;
}

export interface Title {
  readonly kind: string;
  readonly name: string;
  readonly letters: string;
  /** Columns under it: a factor has its place and its value. */
  readonly span?: number;
}

export interface List {
  readonly titles: readonly Title[];
  readonly lines: readonly Line[];
  readonly dense: boolean;
}

export function coloursOf(served: Served, role: Role, value: number): Colours {
  const scale = scaleFor(served, role);
  const colours = table(theme().name, scale.map);
  const at = level(scale, value);
  return { background: colours.css[at], ink: colours.ink(at) };
}

/** The chosen cell, where it is given: its place is in the heading, and not in every line. */
const isOwn = (of: Explanation, part: Part) => of.kind === "given" && part.role === of.role && part.index === of.index;

/** The parts to list: where nothing is multiplied, a given cell itself goes without saying. */
function partsOf(of: Explanation, { parts }: Term): readonly Part[] {
  return parts.length === 1 && isOwn(of, parts[0]) ? [] : parts;
}

function columnsOf(of: Explanation, less: Columns["less"]): Columns {
  const all = of.terms.map((term) => partsOf(of, term));
  const named = (parts: readonly Part[]) => parts.filter((part) => nameOf(part) !== "").length;
  const heads = all.reduce((most, parts) => (parts.length > most.length || named(parts) > named(most) ? parts : most), []);
  const multiplied = of.terms.some((term) => term.parts.length > 1);
  return {
    heads,
    product: multiplied ? "product" : of.kind === "norm" ? "|x|ᵖ" : null,
    target: (of.terms[0]?.into?.role as Role | undefined) ?? null,
    notes: of.terms.some((term) => term.note),
    less,
  };
}

/** Factors such as 1/9 say all there is to say; others have a name, for their column, and a value. */
const isPlain = (part: Part) => /^−?[\d/]+$/.test(part.label ?? "");

function nameOf(part: Part): string {
  if (part.role !== "factor") return SYMBOL[part.role];
  return isPlain(part) ? "" : (part.label ?? "");
}

/** Four or five places of each factor, and three numbers, have to stand in one line. */
function placed({ spec }: Served, places: readonly (string | number)[], { less }: Columns): string {
  return places.join(spec.dims === 3 || spec.samples > 1 || less > 0 ? "," : ", ");
}

function letters(served: Served, role: Role, columns: Columns): string {
  const spatial = [..."dhw"].slice(3 - served.spec.dims);
  if (role === "weight" || role === "dweight") return placed(served, [...(served.spec.op === "conv_transpose" ? "io" : "oi"), ...spatial], columns);
  if (role === "bias" || role === "dbias") return "o";
  return placed(served, [...(served.spec.samples > 1 ? "nc" : "c"), ...spatial], columns);
}

function place(served: Served, { role, index }: Part, columns: Columns): string {
  if (role === "factor") return "";
  if (role === "bias" || role === "dbias") return String(index);
  const at = position(served.layer.shapes[role]!, index, served.spec.dims);
  const sample = role !== "weight" && role !== "dweight";
  return placed(served, sample && served.spec.samples === 1 ? at.slice(1) : at, columns);
}

/** Whether the place of a factor, or what it is the function of, has no room in the line. */
function isLeft(of: Explanation, part: Part, at: number, { heads, less }: Columns): boolean {
  if (part.role === "factor") return part.of !== undefined && less >= 2;
  return less === 3 && at > 0 && at === heads.length - 1 && !isOwn(of, part);
}

function titlesOf(served: Served, of: Explanation, columns: Columns): Title[] {
  const found: Title[] = [];
  const { heads, product, target, notes, less } = columns;
  heads.forEach((part, at) => {
    if (at > 0) found.push({ kind: "sign", name: "", letters: "" });
    const named = isLeft(of, part, at, columns) ? "" : part.role === "factor" ? (part.of?.name ?? "") : letters(served, part.role, columns);
    found.push(isOwn(of, part) ? { kind: "own", name: nameOf(part), letters: "" } : { kind: "at", name: nameOf(part), letters: named, span: 2 });
  });
  if (product !== null) found.push({ kind: "sign", name: "", letters: "" }, { kind: "num", name: product, letters: "" });
  if (target) found.push({ kind: "at into", name: SYMBOL[target], letters: less > 0 ? "" : letters(served, target, columns) });
  if (notes) found.push({ kind: "note", name: "", letters: "" });
  return found;
}

/** What stands before a factor: its place, or what it is the function of. */
const before = (served: Served, part: Part, columns: Columns) => (part.of ? medium(part.of.value) : place(served, part, columns));

function lineOf(served: Served, of: Explanation, term: Term, columns: Columns): Line {
  const parts = partsOf(of, term);
  const entries: Entry[] = [];
  const left: string[] = [];
  columns.heads.forEach((head, at) => {
    const part: Part | undefined = parts[at];
    if (at > 0) entries.push({ kind: "sign", text: part ? "·" : "" });
    if (!isOwn(of, head)) {
      const text = part ? before(served, part, columns) : "";
      const out = part !== undefined && isLeft(of, part, at, columns);
      if (out) left.push(part.of ? `${part.of.name} = ${text}` : `${nameOf(part)}[${text}]`);
      entries.push({ kind: "at", text: out ? "" : text });
    }
    if (!part) entries.push({ kind: "num", text: "" });
    else if (part.role === "factor") entries.push({ kind: "num", text: isPlain(part) ? part.label! : medium(part.value) });
    else entries.push({ kind: "num", text: medium(part.value), colours: coloursOf(served, part.role, part.value) });
  });
  const { product, target, notes } = columns;
  if (product !== null) entries.push({ kind: "sign", text: "=" }, { kind: "num product", text: medium(term.value) });
  if (target) entries.push({ kind: "at into", text: term.into ? place(served, term.into, columns) : "" });
  if (notes) entries.push({ kind: "note", text: term.note ?? "" });
  return { entries, idle: term.idle === true, title: left.join(", ") };
}

/** In pixels: the fonts of the list, and what stands around an entry in each. */
const USUAL = { font: 12.5, num: 10, least: 26, sign: 10, at: 6, into: 18, note: 10 };
const DENSE = { font: 11, num: 6, least: 22, sign: 6, at: 4, into: 10, note: 10 };
const [SYMBOLS, LETTERS] = [14, 11];

/** How wide a list is, titles included. */
function width({ titles, lines, dense }: List): number {
  const by = dense ? DENSE : USUAL;
  const around: Readonly<Record<string, number>> = { sign: by.sign, at: by.at, "at into": by.into, note: by.note };
  const widest: number[] = [];
  for (const { entries } of lines) {
    entries.forEach(({ kind, text, colours }, at) => {
      const own = by.font * breadth(text) + (colours ? by.num : (around[kind] ?? 0));
      widest[at] = Math.max(widest[at] ?? 0, own, colours ? by.least : 0);
    });
  }
  let column = 0;
  return titles.reduce((sum, { kind, name, letters: small, span = 1 }) => {
    const below = widest.slice(column, (column += span)).reduce((all, one) => all + one, 0);
    const into = kind === "at into" ? by.into + by.font * breadth("into ") : 0;
    return sum + Math.max(below, into + (kind === "num" ? by.font : SYMBOLS) * breadth(name) + LETTERS * breadth(small));
  }, 0);
}

/** The first terms of a cell, with all that there is room for; the rest stands in the rows' titles. */
export function listOf(served: Served, of: Explanation, most: number, room: number): List {
  const made = (less: Columns["less"]): List => {
    const columns = columnsOf(of, less);
    const lines = of.terms.slice(0, most).map((term) => lineOf(served, of, term, columns));
    return { titles: titlesOf(served, of, columns), lines, dense: less > 0 };
  };
  for (const less of [0, 1, 2] as const) {
    const list = made(less);
    if (width(list) <= room) return list;
  }
  return made(3);
}
