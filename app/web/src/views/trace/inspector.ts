/** The inspector: one cell, the terms that made it, their sum, and the service's own value beside it. */

import { type Child, h } from "../../core/dom";
import { memo, type Read, type Signal, signal } from "../../core/signal";
import { count, full, medium, tiny } from "../../core/format";
import { level, table } from "../../grid/colour";
import type { Explanation, Part, Role, Term } from "../../math/layer";
import { position } from "../../math/shape";
import type { App } from "../../state/app";
import { type Served, valuesOf } from "../../state/served";
import { theme } from "../../state/theme";
import { facts } from "./facts";
import { isMade, scaleFor, SYMBOL } from "./planes";
import { placeOf, symbol } from "./tensor";
import { sentence } from "./words";

/** Terms shown before the user asks for all. */
const SHORT = 48;
/** Of the size of the terms: what float32 and another order of adding may differ by. */
export const TOLERANCE = 1e-5;

export function inspector(app: App): HTMLElement {
  const all = signal(false);
  const rest = memo(() => Math.max(0, (app.explanation()?.terms.length ?? 0) - SHORT));
  return h("aside", { class: "inspector", "aria-label": "Inspector" },
    () => {
      const of = app.explanation();
      const served = app.session.served();
      if (!of || !served) return h("p", { class: "hint" }, "Choose a cell in any grid to see the terms that made it.");
      return [heading(app, served, of), h("p", { class: "sentence" }, sentence(served, of)), terms(app, served, of, all())];
    },
    more(rest, all),
    () => {
      const of = app.explanation();
      const served = app.session.served();
      return of && served && total(served, of);
    },
    h("div", { class: "visually-hidden", "aria-live": "polite", role: "status" }, () => spoken(app)),
    facts(app));
}

function heading(app: App, served: Served, of: Explanation): HTMLElement {
  const value = valuesOf(served, of.role)?.[of.index] ?? of.value;
  return h("h2", { class: "cell-name", "data-role": of.role, "data-index": of.index },
    symbol(of.role), h("span", { class: "place" }, `[${placeOf(app, of.role, of.index)}]`),
    h("span", { class: "equals" }, "="), chip(served, of.role, value, full));
}

/** A number on the colour that its cell has. */
function chip(served: Served, role: Role, value: number, write = medium): HTMLElement {
  const scale = scaleFor(served, role);
  const colours = table(theme().name, scale.map);
  const at = level(scale, value);
  return h("span", { class: "chip", style: { background: colours.css[at], color: colours.ink(at) } }, write(value));
}

/** The parts to list: under a given cell that cell itself goes without saying. */
function partsOf(of: Explanation, term: Term): readonly Part[] {
  const own = (part: Part) => of.kind === "given" && part.index === of.index && (part.role === of.role || part.role === "dz");
  return term.parts.filter((part) => !own(part));
}

/** What a term's parts are of, to head their columns: all terms of a list have the same. */
function columns(of: Explanation): readonly Part[] {
  return of.terms.map((term) => partsOf(of, term)).reduce((most, parts) => (parts.length > most.length ? parts : most), []);
}

function nameOf(part: Part): string {
  if (part.role === "factor") return part.label ?? "";
  return part.role === "dz" ? "dY·φ′" : SYMBOL[part.role];
}

function letters(served: Served, role: Role | "dz"): string {
  const spatial = ["", "w", "h, w", "d, h, w"][served.spec.dims];
  if (role === "weight" || role === "dweight") return served.spec.op === "conv_transpose" ? `i, o, ${spatial}` : `o, i, ${spatial}`;
  if (role === "bias" || role === "dbias") return "o";
  return served.spec.samples > 1 ? `n, c, ${spatial}` : `c, ${spatial}`;
}

function place(served: Served, part: Part): string {
  if (part.role === "factor") return "";
  const role = part.role === "dz" ? "dy" : part.role;
  if (role === "bias" || role === "dbias") return String(part.index);
  const at = position(served.layer.shapes[role]!, part.index, served.spec.dims);
  const sample = role !== "weight" && role !== "dweight";
  return (sample && served.spec.samples === 1 ? at.slice(1) : at).join(", ");
}

function terms(app: App, served: Served, of: Explanation, all: boolean): Child {
  if (of.terms.length === 0) return null;
  const heads = columns(of);
  const into = of.terms[0].into;
  const multiplied = of.terms.some((term) => term.parts.length > 1);
  const shown = all ? of.terms : of.terms.slice(0, SHORT);
  const target = into && (into.role as Role);
  return h("div", { class: "terms-frame", tabindex: 0, role: "region", "aria-label": "Terms" },
    h("table", { class: "terms", onPointerleave: () => app.term.set(-1) },
      h("thead", null, h("tr", null,
        heads.map((part, at) => [
          at > 0 && h("th", { class: "sign" }),
          h("th", { class: "at", scope: "col" }, h("span", { class: "symbol small" }, nameOf(part)),
            part.role !== "factor" && h("span", { class: "letters" }, ` ${letters(served, part.role)}`)),
          h("th", { class: "sign" }),
        ]),
        (multiplied || of.kind === "norm") && [h("th", { class: "sign" }), h("th", { class: "num", scope: "col" }, multiplied ? "product" : "|x|ᵖ")],
        target && h("th", { class: "at into", scope: "col" }, "into ", h("span", { class: "symbol small" }, SYMBOL[target]), h("span", { class: "letters" }, ` ${letters(served, target)}`)),
        of.terms.some((term) => term.note) && h("th", { class: "note" }))),
      h("tbody", null, shown.map((term, at) => row(app, served, of, term, at, heads.length, multiplied)))));
}

function row(app: App, served: Served, of: Explanation, term: Term, at: number, width: number, multiplied: boolean): HTMLElement {
  const parts = partsOf(of, term);
  const blanks = width - parts.length;
  const far = term.into ?? term.parts.find((part) => part.role !== "factor" && part.role !== "bias");
  const open = () => {
    if (far && far.role !== "factor") app.reveal(far.role === "dz" ? "dy" : far.role, far.index);
  };
  return h("tr", { "data-idle": term.idle ? "1" : "0", onPointerenter: () => app.term.set(at), onClick: open },
    parts.map((part, index) => [
      index > 0 && h("td", { class: "sign" }, "·"),
      h("td", { class: "at" }, place(served, part)),
      h("td", { class: "num" }, part.role === "factor" ? (part.label || full(part.value)) : chip(served, part.role === "dz" ? "dy" : part.role, part.value)),
    ]),
    Array.from({ length: blanks }, () => [h("td"), h("td"), h("td")]),
    (multiplied || of.kind === "norm") && [h("td", { class: "sign" }, "="), h("td", { class: "num product" }, medium(term.value))],
    term.into && h("td", { class: "at into" }, place(served, term.into)),
    of.terms.some((one) => one.note) && h("td", { class: "note" }, term.note ?? ""));
}

function more(rest: Read<number>, all: Signal<boolean>): Child {
  return h("button", { type: "button", class: "link", hidden: () => rest() === 0, onClick: () => all.set(!all()) },
    () => (all() ? `Show the first ${SHORT}` : `Show ${count(rest(), "more term")}`));
}

export function agrees(of: Explanation, served: number): boolean {
  if (Object.is(of.value, served) || of.value === served) return true;
  return Math.abs(of.value - served) <= TOLERANCE * Math.max(of.scale, Math.abs(of.value), 1e-30);
}

const SUM_WORDS = { sum: "Sum of the terms", max: "Largest", norm: "Sum of the terms", given: "" } as const;

/** The sum, what is done to it, and the service's value. */
function total(served: Served, of: Explanation): Child {
  if (!isMade(of.role)) return null;
  const value = valuesOf(served, of.role)![of.index];
  const good = agrees(of, value);
  const line = (name: Child, number: string, id: string) =>
    h("div", { class: "total-line", "data-total": id }, h("span", null, name), h("span", { class: "num" }, number));
  return h("div", { class: "total", "data-agrees": String(good), "data-own": of.value, "data-served": value },
    line(SUM_WORDS[of.kind], full(of.total), "sum"),
    of.after.map((step) => line(step.label, full(step.value), "after")),
    line("The service’s value", full(value), "served"),
    h("p", { class: good ? "verdict good" : "verdict bad" },
      h("span", { class: "mark", "aria-hidden": "true" }, good ? "✓" : "✗"),
      good ? "They agree" : "They differ", Object.is(of.value, value) || Number.isNaN(of.value - value) ? "." : `, but for ${tiny(Math.abs(of.value - value))}.`));
}

function spoken(app: App): string {
  const pinned = app.pinned();
  const of = app.hover() ? null : app.explanation();
  const served = app.session.served();
  if (!pinned || !of || !served) return "";
  const value = valuesOf(served, of.role)?.[of.index];
  const active = of.terms.filter((term) => !term.idle).length;
  const name = `${SYMBOL[of.role]}[${placeOf(app, of.role, of.index)}] = ${full(value ?? of.value)}`;
  if (!isMade(of.role)) return `${name}. ${sentence(served, of)}`;
  const source = of.role === "dx" || of.role === "dweight" ? "output" : "term";
  return `${name}, from ${count(active, source)}`;
}
