/** A field laid over a cell, to type its new value into. */

import { h } from "../core/dom";
import { BlockError, readNumber } from "../data/block";
import { shortest } from "../data/text";
import { corner } from "./draw";
import type { GridOptions } from "./view";

/** Enter or leaving it sets the value, Escape does not. */
export function editor(options: GridOptions, of: { index: number; text: string }, close: () => void): HTMLElement {
  const [x, y] = corner(options.plane(), options.cell(), of.index);
  const side = Math.max(options.cell(), 44);
  const before = shortest(options.plane().values[of.index]);
  const field = h("input", {
    class: "grid-editor",
    type: "text",
    inputmode: "decimal",
    "aria-label": `New value of ${options.describe(of.index)}`,
    value: of.text || before,
    style: { left: `${x - (side - options.cell()) / 2}px`, top: `${y}px`, width: `${side}px`, height: `${Math.max(24, options.cell())}px` },
  });
  let done = false;
  const finish = (keep: boolean) => {
    if (done) return;
    done = true;
    const text = field.value.trim();
    close();
    if (!keep || text === "" || text === before) return;
    try {
      options.onEdit?.(of.index, readNumber(text));
    } catch (error) {
      if (!(error instanceof BlockError)) throw error;
      options.onRefused?.(error.message);
    }
  };
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") finish(true);
    else if (event.key === "Escape") finish(false);
  });
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    // One number goes into the field; a block begins at its cell.
    if (!options.onPaste || !/[\s;[]/.test(text.trim())) return;
    event.preventDefault();
    finish(false);
    options.onPaste(text, of.index);
  });
  field.addEventListener("pointerdown", (event) => event.stopPropagation());
  field.addEventListener("blur", () => finish(true));
  return field;
}
