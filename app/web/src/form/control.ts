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

/** Does what takes the pressed button away, and gives the focus that goes with it to the button's field. */
export function intoField(event: MouseEvent, act: () => void): void {
  const row = (event.currentTarget as Element).closest(".field");
  act();
  // A press by keys. After one by hand the focus is not missed, and a telephone's keyboard would come up for it.
  if (event.detail === 0) (row?.querySelector("input") ?? row?.querySelector<HTMLElement>("select, [role=switch]"))?.focus();
}

/** Back to what the service settles by itself. */
export function clear(field: Field, set: (value: unknown) => void): HTMLElement {
  return h("button", {
    type: "button", class: "quiet", "aria-label": `${labelOf(field.name)}: auto`,
    onClick: (event: MouseEvent) => intoField(event, () => set(null)),
  }, "auto");
}
