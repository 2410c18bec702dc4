/** The list of terms: what each is made of, line by line. */

import { h } from "../../core/dom";
import { effect, memo, type Read, signal } from "../../core/signal";
import { medium } from "../../core/format";
import { level, table } from "../../grid/colour";
import { breadth } from "../../grid/draw";
import type { Explanation, Part, Role, Term } from "../../math/layer";
import { position } from "../../math/shape";
import type { App } from "../../state/app";
import type { Served } from "../../state/served";
import { theme } from "../../state/theme";
import { below } from "./below";
import { SYMBOL } from "./names";
import { scaleFor } from "./planes";
import { type Colours, type Entry, type Line, rewrite } from "./rows";

/** What one line of the table is made of, alike for all terms of a cell. */
interface Columns {
  readonly heads: readonly Part[];
  readonly product: string | null;
  readonly target: Role | null;
  readonly notes: boolean;
}

export function coloursOf(served: Served, role: Role, value: number): Colours {
  const scale = scaleFor(served, role);
  const colours = table(theme().name, scale.map);
  const at = level(scale, value);
  return { background: colours.css[at], ink: colours.ink(at) };
}

/** The parts to list: under a given cell that cell itself goes without saying. */
function partsOf(of: Explanation, term: Term): readonly Part[] {
  const own = (part: Part) => of.kind === "given" && part.index === of.index && (part.role === of.role || part.role === "dz");
  return term.parts.filter((part) => !own(part));
}

function columnsOf(of: Explanation): Columns {
  const all = of.terms.map((term) => partsOf(of, term));
  const named = (parts: readonly Part[]) => parts.filter((part) => nameOf(part) !== "").length;
  const heads = all.reduce((most, parts) => (parts.length > most.length || named(parts) > named(most) ? parts : most), []);
  const multiplied = of.terms.some((term) => term.parts.length > 1);
  return {
    heads,
    product: multiplied ? "product" : of.kind === "norm" ? "|x|ᵖ" : null,
    target: (of.terms[0]?.into?.role as Role | undefined) ?? null,
    notes: of.terms.some((term) => term.note),
  };
}

/** Factors such as 1/9 say all there is to say; others have a name, for their column, and a value. */
const isPlain = (part: Part) => /^−?[\d/]+$/.test(part.label ?? "");

function nameOf(part: Part): string {
  if (part.role === "factor") return isPlain(part) ? "" : (part.label ?? "");
  return part.role === "dz" ? "dY·φ′" : SYMBOL[part.role];
}

const tensorOf = (part: Part): Role => (part.role === "dz" ? "dy" : part.role === "factor" ? "y" : part.role);

/** Four or five places of each factor, and three numbers, have to stand in one line. */
function placed(served: Served, places: readonly (string | number)[]): string {
  return places.join(served.spec.dims === 3 || served.spec.samples > 1 ? "," : ", ");
}

function letters(served: Served, role: Role): string {
  const spatial = [..."dhw"].slice(3 - served.spec.dims);
  if (role === "weight" || role === "dweight") return placed(served, [...(served.spec.op === "conv_transpose" ? "io" : "oi"), ...spatial]);
  if (role === "bias" || role === "dbias") return "o";
  return placed(served, [...(served.spec.samples > 1 ? "nc" : "c"), ...spatial]);
}

function place(served: Served, part: Part): string {
  if (part.role === "factor") return "";
  const role = tensorOf(part);
  if (role === "bias" || role === "dbias") return String(part.index);
  const at = position(served.layer.shapes[role]!, part.index, served.spec.dims);
  const sample = role !== "weight" && role !== "dweight";
  return placed(served, sample && served.spec.samples === 1 ? at.slice(1) : at);
}

interface Title {
  readonly kind: string;
  readonly name: string;
  readonly letters: string;
  /** Columns under it: a factor has its place and its value. */
  readonly span?: number;
}

function titlesOf(served: Served, { heads, product, target, notes }: Columns): Title[] {
  const found: Title[] = [];
  heads.forEach((part, at) => {
    if (at > 0) found.push({ kind: "sign", name: "", letters: "" });
    found.push({ kind: "at", name: nameOf(part), letters: part.role === "factor" ? "" : letters(served, tensorOf(part)), span: 2 });
  });
  if (product !== null) found.push({ kind: "sign", name: "", letters: "" }, { kind: "num", name: product, letters: "" });
  if (target) found.push({ kind: "at into", name: SYMBOL[target], letters: letters(served, target) });
  if (notes) found.push({ kind: "note", name: "", letters: "" });
  return found;
}

function head(titles: readonly Title[]): HTMLElement {
  return h("tr", null, titles.map(({ kind, name, letters, span }) =>
    h(name ? "th" : "td", { class: kind, scope: name ? "col" : null, colspan: span ?? null },
      kind === "at into" && "into ",
      name && (kind === "num" ? name : h("span", { class: "symbol small" }, name)),
      letters && h("span", { class: "letters" }, ` ${letters}`))));
}

function line(served: Served, of: Explanation, term: Term, { heads, product, target, notes }: Columns): Entry[] {
  const parts = partsOf(of, term);
  const found: Entry[] = [];
  heads.forEach((_, at) => {
    const part: Part | undefined = parts[at];
    if (at > 0) found.push({ kind: "sign", text: part ? "·" : "" });
    found.push({ kind: "at", text: part ? place(served, part) : "" });
    if (!part) found.push({ kind: "num", text: "" });
    else if (part.role === "factor") found.push({ kind: "num", text: isPlain(part) ? part.label! : medium(part.value) });
    else found.push({ kind: "num", text: medium(part.value), colours: coloursOf(served, tensorOf(part), part.value) });
  });
  if (product !== null) found.push({ kind: "sign", text: "=" }, { kind: "num product", text: medium(term.value) });
  if (target) found.push({ kind: "at into", text: term.into ? place(served, term.into) : "" });
  if (notes) found.push({ kind: "note", text: term.note ?? "" });
  return found;
}

/** In pixels: the font of the list, and what it may take beside a window's grids with the room around its columns. */
const FONT = 12.5;
const ROOM = 250;

/** Whether lines are too long for the list's usual font: their end, the product, would be out of sight. */
export function isDense(lines: readonly Line[]): boolean {
  const widest: number[] = [];
  for (const { entries } of lines) entries.forEach(({ text }, at) => (widest[at] = Math.max(widest[at] ?? 0, breadth(text))));
  return FONT * widest.reduce((sum, one) => sum + one, 0) > ROOM;
}

export interface TermTable {
  readonly frame: HTMLElement;
  /** Rows that are listed, and out of view below. */
  readonly below: Read<number>;
}

/** @param most how many terms to list. */
export function termTable(app: App, most: Read<number>): TermTable {
  const body = h("tbody");
  const rowOf = (event: Event) => {
    const row = (event.target as Element).closest("tr");
    return row?.parentNode === body ? row.sectionRowIndex : -1;
  };
  const open = (at: number) => {
    const term = app.explanation()?.terms[at];
    const far = term && (term.into ?? term.parts.find((part) => part.role !== "factor" && part.role !== "bias"));
    if (far && far.role !== "factor") app.reveal(tensorOf(far), far.index);
  };
  const titles = memo(() => {
    const [of, served] = [app.explanation(), app.session.served()];
    return of && served && of.terms.length > 0 ? JSON.stringify(titlesOf(served, columnsOf(of))) : "";
  });
  const dense = signal(false);
  const frame = h("div", {
    class: "terms-frame", tabindex: 0, role: "region", "aria-label": "Terms", hidden: () => titles() === "",
    "data-long": () => (most() === Infinity ? "1" : null),
  },
    h("table", {
      class: "terms", "data-dense": () => (dense() ? "1" : null), onPointerleave: () => app.term.set(-1), onPointerover: (event: Event) => app.term.set(rowOf(event)),
      onClick: (event: Event) => open(rowOf(event)),
    },
      h("thead", null, () => titles() !== "" && head(JSON.parse(titles()) as Title[])), body));
  const under = below(frame, body);
  effect(() => {
    frame.dataset.below = String(under());
  });
  let shown: readonly Line[] = [];
  let scrolled = false;
  frame.addEventListener("scroll", () => {
    scrolled = frame.scrollTop > 0;
  });
  effect(() => {
    const [of, served] = [app.explanation(), app.session.served()];
    if (!of || !served) return;
    const columns = columnsOf(of);
    const now = of.terms.slice(0, most()).map((term) => ({ entries: line(served, of, term, columns), idle: term.idle === true }));
    rewrite(body, shown, now);
    shown = now;
    dense.set(isDense(now));
    // Asked for only where it does something: it makes the browser lay out the page at once.
    if (scrolled) frame.scrollTop = 0;
  });
  return { frame, below: under };
}
