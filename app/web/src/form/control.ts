/** What every control of a config field is given, and what they share. */

import { h } from "../core/dom";
import type { Read } from "../core/signal";
import type { App } from "../state/app";
import type { Field } from "./kinds";

export interface Control {
  readonly app: App;
  readonly field: Field;
  readonly value: Read<unknown>;
  readonly set: (value: unknown) => void;
}

export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function dimsOf(control: Control): number {
  return control.app.session.draft().dims;
}

export const numberOf = (value: unknown) => (typeof value === "number" ? value : null);

/** Back to what the service settles by itself. */
export function clear(field: Field, set: (value: unknown) => void): HTMLElement {
  return h("button", { type: "button", class: "quiet", "aria-label": `${labelOf(field.name)}: auto`, onClick: () => set(null) }, "auto");
}
