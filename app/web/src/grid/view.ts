/** A grid on the page: a canvas to look at, one focusable element for the keyboard, words for the cell. */

import { h } from "../core/dom";
import { effect, type Read, signal, untrack } from "../core/signal";
import type { Wanted } from "../data/block";
import { type Plane } from "./draw";
import { type Light } from "./light";
import { clipboard } from "./clipboard";
import { editor } from "./editor";
import { paintWhenChanged } from "./painting";
import { brushOf, type OpenEditor, pointing } from "./pointing";

export interface GridOptions {
  readonly label: Read<string>;
  readonly plane: Read<Plane>;
  readonly light: Read<Light>;
  readonly cell: Read<number>;
  /** Words for a cell of the plane. */
  readonly describe: (index: number) => string;
  readonly onHover?: (index: number) => void;
  /** A cell is chosen, by a pointer or by keys. */
  readonly onSelect?: (index: number) => void;
  /** A pointer presses a cell: for what keys that only pass must not do. */
  readonly onPress?: (index: number) => void;
  readonly onClear?: () => void;
  /** A new value for a cell: absent where the tensor is not the user's to set. */
  readonly onEdit?: (index: number, value: number) => void;
  /** What a cell takes; absent: any number. */
  readonly wanted?: Read<Wanted>;
  /** A text from the clipboard, to begin at a cell. */
  readonly onPaste?: (text: string, index: number) => void;
  /** The plane on show has gone to the clipboard. */
  readonly onCopy?: () => void;
  /** While painting, dragging sets cells to this value. */
  readonly brush?: Read<number | null>;
  readonly data?: Record<string, Read<string | number>>;
}

export interface GridView {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
}

let serial = 0;

export function gridView(options: GridOptions): GridView {
  const { plane, light } = options;
  const id = `grid${(serial += 1)}`;
  const canvas = h("canvas", { "aria-hidden": "true" });
  const cursor = signal(0);
  const editing = signal<{ index: number; text: string } | null>(null);
  const spoken = h(
    "div",
    { class: "visually-hidden", role: "row", "aria-rowindex": () => Math.floor(cursor() / plane().cols) + 1 },
    h("div", {
      id, role: "gridcell", "aria-colindex": () => (cursor() % plane().cols) + 1,
      "aria-selected": () => (light().selected === cursor() ? "true" : "false"),
    }, () => options.describe(cursor())),
  );
  const element = h(
    "div",
    {
      class: "grid",
      role: "grid",
      tabindex: 0,
      "aria-label": options.label,
      "aria-rowcount": () => plane().rows,
      "aria-colcount": () => plane().cols,
      "aria-activedescendant": id,
      "aria-readonly": options.onEdit ? "false" : "true",
      "data-brush": () => (brushOf(options) === null ? null : "1"),
      ...dataset(options.data),
    },
    canvas,
    spoken,
    () => {
      const now = editing();
      // Not made anew where the plane changes: what is being typed would be lost.
      return now && untrack(() => editor(options, now, () => {
        editing.set(null);
        element.focus();
      }));
    },
  );
  effect(() => {
    const chosen = light().selected;
    if (chosen >= 0) cursor.set(chosen);
    else if (cursor.peek() >= plane().rows * plane().cols) cursor.set(0);
  });
  effect(() => {
    plane();
    // A text that was refused and left stays where it is, but not over cells that are others now.
    const left = element.querySelector(".grid-editor[aria-invalid]");
    if (left && left !== document.activeElement) editing.set(null);
  });
  paintWhenChanged(canvas, options);
  const edit: OpenEditor = (index, text) => {
    editing.set({ index, text });
    // At once, so that the next key already goes there.
    const field = element.querySelector<HTMLInputElement>(".grid-editor")!;
    field.focus();
    if (text) field.setSelectionRange(text.length, text.length);
    else field.select();
  };
  pointing(element, canvas, options, edit);
  typing(element, options, cursor, edit);
  clipboard(element, options, cursor);
  return { element, canvas };
}

function dataset(data: GridOptions["data"] = {}): Record<string, Read<string | number>> {
  return Object.fromEntries(Object.entries(data).map(([name, read]) => [`data-${name}`, read]));
}

function typing(
  element: HTMLElement, options: GridOptions, cursor: Read<number> & { set(value: number): void }, open: OpenEditor,
): void {
  element.addEventListener("keydown", (event) => {
    if (event.target !== element || event.altKey || event.metaKey) return;
    const { rows, cols } = options.plane();
    const at = cursor();
    const [r, c] = [Math.floor(at / cols), at % cols];
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], ArrowUp: [r - 1, c], ArrowDown: [r + 1, c],
      Home: [event.ctrlKey ? 0 : r, 0], End: [event.ctrlKey ? rows - 1 : r, cols - 1],
    };
    const move = moves[event.key];
    if (move) {
      const next = Math.min(rows - 1, Math.max(0, move[0])) * cols + Math.min(cols - 1, Math.max(0, move[1]));
      cursor.set(next);
      options.onSelect?.(next);
    } else if (event.key === "Enter" || event.key === "F2") {
      options.onSelect?.(at);
      const brush = event.key === "Enter" ? brushOf(options) : null;
      if (brush !== null) options.onEdit!(at, brush);
      else if (options.onEdit) open(at, "");
    } else if (event.key === "Escape") options.onClear?.();
    else if (options.onEdit && /^[\d.-]$/.test(event.key) && !event.ctrlKey) open(at, event.key);
    else return;
    event.preventDefault();
  });
}
