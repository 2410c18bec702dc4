/** The list of terms: what each is made of, line by line. */

import { h } from "../../core/dom";
import { computed, effect, memo, onCleanup, type Read, signal } from "../../core/signal";
import type { App } from "../../state/app";
import { below } from "./below";
import { listOf, type Title } from "./columns";
import { type Line, rewrite } from "./rows";

function head(titles: readonly Title[]): HTMLElement {
  return h("tr", null, titles.map(({ kind, name, letters, span }) =>
    h(name ? "th" : "td", { class: kind, scope: name ? "col" : null, colspan: span ?? null },
      kind === "at into" && "into ",
      name && (kind === "num" ? name : h("span", { class: "symbol small" }, name)),
      letters && h("span", { class: "letters" }, ` ${letters}`))));
}

/** In pixels: what lines may take until it is known. */
const ROOM = 296;

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
    if (far && far.role !== "factor") app.reveal(far.role, far.index);
  };
  const room = signal(ROOM);
  const list = computed(() => {
    const [of, served] = [app.explanation(), app.session.served()];
    return of && served ? listOf(served, of, most(), room()) : null;
  });
  const titles = memo(() => {
    const now = list();
    return now && now.lines.length > 0 ? JSON.stringify(now.titles) : "";
  });
  const frame = h("div", {
    class: "terms-frame", tabindex: 0, role: "region", "aria-label": "Terms", hidden: () => titles() === "",
    "data-long": () => (most() === Infinity ? "1" : null),
  },
    h("table", {
      class: "terms", "data-dense": () => (list()?.dense ? "1" : null), onPointerleave: () => app.term.set(-1), onPointerover: (event: Event) => app.term.set(rowOf(event)),
      onClick: (event: Event) => open(rowOf(event)),
    },
      h("thead", null, () => titles() !== "" && head(JSON.parse(titles()) as Title[])), body));
  const observer = new ResizeObserver(([entry]) => entry.contentRect.width > 0 && room.set(Math.floor(entry.contentRect.width)));
  observer.observe(frame);
  onCleanup(() => observer.disconnect());
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
    const now = list()?.lines;
    if (!now) return;
    rewrite(body, shown, now);
    shown = now;
    // Asked for only where it does something: it makes the browser lay out the page at once.
    if (scrolled) frame.scrollTop = 0;
  });
  return { frame, below: under };
}
