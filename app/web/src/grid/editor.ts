/** A field laid over a cell, to type its new value into. */

import { h } from "../core/dom";
import { keepInside } from "../core/inside";
import { signal } from "../core/signal";
import { BlockError, readNumber } from "../data/block";
import { shortest } from "../data/text";
import { corner } from "./draw";
import type { GridOptions } from "./view";

let serial = 0;

/**
 * Enter or leaving it sets the value, Escape does not. A text that is refused stays, with the reason below it, to be
 * mended or given up.
 */
export function editor(options: GridOptions, of: { index: number; text: string }, close: () => void): HTMLElement {
  const [x, y] = corner(options.plane(), options.cell(), of.index);
  const side = Math.max(options.cell(), 44);
  const [left, height] = [x - (side - options.cell()) / 2, Math.max(24, options.cell())];
  const before = shortest(options.plane().values[of.index]);
  const id = `refused${(serial += 1)}`;
  const refused = signal<string | null>(null);
  const field = h("input", {
    class: "grid-editor",
    type: "text",
    inputmode: "decimal",
    "aria-label": `New value of ${options.describe(of.index)}`,
    "aria-invalid": () => (refused() === null ? null : "true"), "aria-describedby": () => (refused() === null ? null : id),
    value: of.text || before,
    style: { left: `${left}px`, top: `${y}px`, width: `${side}px`, height: `${height}px` },
  });
  // A grid has rows of cells, and nothing else.
  const frame = h("div", { role: "row" }, h("div", { role: "gridcell" }, field, () => refused() !== null && h("p", {
    id, class: "refusal grid-refusal", role: "alert", style: { left: `${left}px`, top: `${y + height}px` },
  }, refused())));
  let done = false;
  const leave = () => {
    done = true;
    close();
  };
  const finish = () => {
    if (done) return;
    const text = field.value.trim();
    if (text === "" || text === before) {
      leave();
      return;
    }
    try {
      const value = readNumber(text, options.wanted?.());
      leave();
      options.onEdit?.(of.index, value);
    } catch (error) {
      if (!(error instanceof BlockError)) throw error;
      refused.set(`Expected ${error.expected}, got ${error.got}.`);
      const note = frame.querySelector<HTMLElement>(".grid-refusal");
      if (note) keepInside(note);
    }
  };
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") finish();
    else if (event.key === "Escape") leave();
  });
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    // One number goes into the field; a block begins at its cell.
    if (!options.onPaste || !/[\s;[]/.test(text.trim())) return;
    event.preventDefault();
    leave();
    options.onPaste(text, of.index);
  });
  frame.addEventListener("pointerdown", (event) => event.stopPropagation());
  field.addEventListener("blur", finish);
  return frame;
}
