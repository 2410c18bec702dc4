/** How many rows of a list lie below what is in view of it: where scrollbars hide themselves, nothing else tells. */

import { count } from "../../core/format";
import { onCleanup, type Read, signal } from "../../core/signal";

/** Rounding of lengths on the way to pixels, which hides no row. */
const SLACK = 1;

/** @param height of all rows; @param seen how far down from the first one's top the view goes. */
export function rowsBelow(rows: number, height: number, seen: number): number {
  if (height <= seen + SLACK) return 0;
  return Math.min(rows, rows - Math.floor(((seen + SLACK) * rows) / height));
}

export function belowWords(rows: number): string {
  return rows === 0 ? "" : `↓ ${count(rows, "more row")} below`;
}

/** Kept up to date without asking for a layout: sizes are told after each, and scrolling changes nothing of it. */
export function below(frame: HTMLElement, body: HTMLTableSectionElement): Read<number> {
  const rows = signal(0);
  const look = () => {
    const seen = frame.scrollTop + frame.clientHeight - body.offsetTop;
    rows.set(rowsBelow(body.rows.length, body.offsetHeight, seen));
  };
  const observer = new ResizeObserver(look);
  observer.observe(frame);
  observer.observe(body);
  frame.addEventListener("scroll", look, { passive: true });
  onCleanup(() => observer.disconnect());
  return rows;
}
