/** The inspector: one cell, the terms that made it, their sum, and the service's own value beside it. */

import { type Child, h } from "../../core/dom";
import { memo, type Read, type Signal, signal } from "../../core/signal";
import { count, full } from "../../core/format";
import type { Explanation, Role } from "../../math/layer";
import type { App } from "../../state/app";
import { type Served, valuesOf } from "../../state/served";
import { isConvolution } from "../../state/spec";
import { agrees, verdict } from "./agreement";
import { belowWords } from "./below";
import { coloursOf } from "./columns";
import { facts } from "./facts";
import { isMade, placeOf, SYMBOL } from "./names";
import { symbol } from "./tensor";
import { termTable } from "./terms";
import { sentence } from "./words";

/** Terms shown before the user asks for all, about as many as there is room for. */
const SHORT = 24;

export function inspector(app: App): HTMLElement {
  const all = signal(false);
  const rest = memo(() => Math.max(0, (app.explanation()?.terms.length ?? 0) - SHORT));
  // Under the pointer cells change too fast for a thousand rows.
  const terms = termTable(app, () => (all() && !app.hover() ? Infinity : SHORT));
  return h("aside", { class: "inspector", "aria-label": "Inspector", tabindex: -1 },
    () => {
      const of = app.explanation();
      const served = app.session.served();
      if (!of || !served) return h("p", { class: "hint" }, "Choose a cell in any grid to see the terms that made it.");
      return [heading(app, served, of), h("p", { class: "sentence" }, sentence(served, of))];
    },
    terms.frame,
    h("div", { class: "terms-foot" }, h("span", { class: "terms-below" }, () => belowWords(terms.below())), more(rest, all)),
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
    h("span", { class: "equals" }, "="), chip(served, of.role, value));
}

/** A number on the colour that its cell has. */
function chip(served: Served, role: Role, value: number): HTMLElement {
  const { background, ink } = coloursOf(served, role, value);
  return h("span", { class: "chip", style: { background, color: ink } }, full(value));
}

function more(rest: Read<number>, all: Signal<boolean>): Child {
  return h("button", { type: "button", class: "link", hidden: () => rest() === 0, onClick: () => all.set(!all()) },
    () => (all() ? `Show the first ${SHORT}` : `Show ${count(rest(), "more term")}`));
}

const SUM_WORDS = { sum: "Sum of the terms", max: "Largest", norm: "Sum of the terms", given: "" } as const;

/** The sum, what is done to it, and the service's value. */
function total(served: Served, of: Explanation): Child {
  if (!isMade(of.role)) return null;
  const value = valuesOf(served, of.role)![of.index];
  const good = agrees(of, value);
  const bent = of.role === "y" && isConvolution(served.spec.op) && of.after.length > 0;
  const line = (name: Child, number: string, id: string) =>
    h("div", { class: "total-line", "data-total": id }, h("span", null, name), h("span", { class: "num" }, number));
  return h("div", { class: "total", "data-agrees": String(good), "data-own": of.value, "data-served": value },
    line(SUM_WORDS[of.kind] + (bent ? ", z" : ""), full(of.total), "sum"),
    of.after.map((step) => line(step.label, full(step.value), "after")),
    line("The service’s value", full(value), "served"),
    h("p", { class: good ? "verdict good" : "verdict bad" },
      h("span", { class: "mark", "aria-hidden": "true" }, good ? "✓" : "✗"),
      verdict(of, value)));
}

function spoken(app: App): string {
  // A sentence a step would be a stream of them.
  if (app.playing()) return "";
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
