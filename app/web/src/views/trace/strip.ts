/** At the window's foot, while the terms are below it: the chosen cell, and the way down to what it is made of. */

import { h } from "../../core/dom";
import { computed, effect, memo, onCleanup, type Read, signal } from "../../core/signal";
import { count, full } from "../../core/format";
import { corner } from "../../grid/draw";
import type { App } from "../../state/app";
import { valuesOf } from "../../state/served";
import { placeOn } from "./arrows";
import { placeOf, SYMBOL } from "./names";
import type { Stage } from "./stage";

/** So much of the inspector, in pixels, has to be in view. */
const HEAD = 64;
/** Between a cell and the strip that it is moved away from. */
const CLEAR = 8;

/** The tap that chooses a cell ends, as a click, over the strip that it has brought there, and is not meant for it. */
const TAP_MS = 400;

/** Whether an element lies below what the window shows. */
function isBelow(element: HTMLElement): Read<boolean> {
  const below = signal(false);
  const observer = new IntersectionObserver(([entry]) => below.set(!entry.isIntersecting && entry.boundingClientRect.top > 0),
    { rootMargin: `0px 0px -${HEAD}px 0px` });
  observer.observe(element);
  onCleanup(() => observer.disconnect());
  return below;
}

function words(app: App): string {
  const [of, served] = [app.explanation(), app.session.served()];
  if (!of || !served) return "";
  const value = valuesOf(served, of.role)?.[of.index] ?? of.value;
  return `${SYMBOL[of.role]}[${placeOf(app, of.role, of.index)}] = ${full(value)} · ${count(of.terms.length, "term")}`;
}

export function strip(app: App, { planes, cell, element: stage }: Stage, inspector: HTMLElement): HTMLElement {
  const below = isBelow(inspector);
  // What is merely under the pointer must not bring it: it would come between the two.
  const text = computed(() => (below() && (app.held() || app.swept()) ? words(app) : ""));
  const shown = memo(() => text() !== "");
  const fresh = signal(false);
  effect(() => {
    if (!shown()) return;
    fresh.set(true);
    const timer = setTimeout(() => fresh.set(false), TAP_MS);
    return () => clearTimeout(timer);
  });
  const button = h("button", {
    type: "button", class: "strip", hidden: () => !shown(), "data-fresh": () => (fresh() ? "1" : null),
    onClick: () => {
      inspector.scrollIntoView();
      // The strip goes, and must not take the focus along.
      inspector.focus({ preventScroll: true });
    },
  }, h("span", null, text), h("span", { class: "strip-way" }, "to the terms ", h("span", { "aria-hidden": "true" }, "↓")));
  /** A cell that was just chosen, by a tap or by keys, is not left under the strip. */
  const uncover = () => {
    const held = app.active();
    const grid = held && stage.querySelector<HTMLElement>(`[data-tensor="${held.role}"] .grid`);
    const at = held ? placeOn(app, held.role, held.index) : -1;
    // In print, and beside the opened settings, it is not there either.
    if (!held || !grid || at < 0 || button.getClientRects().length === 0) return;
    const side = cell(held.role);
    const top = grid.getBoundingClientRect().top + corner(planes.plane(held.role)(), side, at)[1];
    const over = top + side + CLEAR - button.getBoundingClientRect().top;
    // Far below it is a cell that was not chosen where it stands, but by a link or from the list of terms.
    if (over > 0 && (top < innerHeight || document.activeElement === grid)) scrollBy(0, over);
  };
  let known = app.pinned.peek();
  effect(() => {
    const pinned = app.pinned();
    if (pinned === known) return;
    known = pinned;
    requestAnimationFrame(uncover);
  });
  return button;
}
