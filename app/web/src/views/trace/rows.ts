/** The rows of the list of terms: they stay and are written over, since the pointer changes them many times a second. */

import { h } from "../../core/dom";

/** A cell as it is to be: text, and the colours of its tensor where it is a value. */
export interface Entry {
  readonly kind: string;
  readonly text: string;
  readonly colours?: Colours;
}

export interface Colours {
  readonly background: string;
  readonly ink: string;
}

export interface Line {
  readonly entries: readonly Entry[];
  readonly idle: boolean;
  /** What there is no room for in the line. */
  readonly title: string;
}

/** Makes a cell what it is to be; `before` is what it was. */
function write(cell: HTMLTableCellElement, before: Entry | undefined, { kind, text, colours }: Entry): void {
  if (before?.kind !== kind) cell.className = kind;
  const fresh = before === undefined || (before.colours === undefined) !== (colours === undefined);
  if (fresh) cell.replaceChildren(colours ? h("span", { class: "chip" }, text) : text);
  const holder = (cell.firstElementChild ?? cell) as HTMLElement;
  if (!fresh && before.text !== text) holder.firstChild!.nodeValue = text;
  if (!colours || colours.background === before?.colours?.background) return;
  holder.style.backgroundColor = colours.background;
  holder.style.color = colours.ink;
}

/** Turns the rows of `before` into those of `now`, touching only what differs. */
export function rewrite(body: HTMLTableSectionElement, before: readonly Line[], now: readonly Line[]): void {
  while (body.rows.length > now.length) body.deleteRow(-1);
  now.forEach(({ entries, idle, title }, at) => {
    const old: Line | undefined = before[at];
    const row = old ? body.rows[at] : body.insertRow();
    if (old?.idle !== idle) row.dataset.idle = idle ? "1" : "0";
    if ((old?.title ?? "") !== title) row.title = title;
    while (row.cells.length > entries.length) row.deleteCell(-1);
    entries.forEach((entry, column) => write(row.cells[column] ?? row.insertCell(), old?.entries[column], entry));
  });
}
