/** Small controls. Each shows a value that it reads and says what the user wants; it keeps nothing itself. */

import { type Child, h } from "../core/dom";
import { keepInside } from "../core/inside";
import { effect, type Read, signal, untrack } from "../core/signal";
import { readTyped } from "./typed";

export interface StepperOptions {
  readonly label: string;
  readonly value: Read<number | null>;
  /** Shown where the value is null. */
  readonly placeholder?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly step?: number;
  readonly start?: Read<number>;
  readonly onChange: (value: number) => void;
}

let serial = 0;

/** − value +, with arrow keys in the field. What is typed and not set as it is, is answered beside it until the next value. */
export function stepper(options: StepperOptions): HTMLElement {
  const { minimum = -Infinity, maximum = Infinity, step = 1 } = options;
  const id = `said${(serial += 1)}`;
  const said = signal<string | null>(null);
  const base = () => options.value() ?? options.start?.() ?? Math.max(minimum, 1);
  const clamp = (value: number) => Math.min(maximum, Math.max(minimum, value));
  const shown = (value: number | null) => (value === null ? "" : String(value));
  const by = (amount: number) => {
    const value = clamp(options.value() === null ? base() : base() + amount * step);
    said.set(null);
    options.onChange(Math.round(value * 1e6) / 1e6);
  };
  const field = h("input", {
    type: "text", inputmode: "decimal", "aria-label": options.label, autocomplete: "off", placeholder: options.placeholder ?? "",
    role: "spinbutton", "aria-valuenow": options.value, "aria-valuetext": () => (options.value() === null ? (options.placeholder ?? null) : null),
    "aria-valuemin": Number.isFinite(minimum) ? minimum : null, "aria-valuemax": Number.isFinite(maximum) ? maximum : null,
    "aria-invalid": () => (said() === null ? null : "true"), "aria-describedby": () => (said() === null ? null : id),
  });
  /** The value before one that was set in place of what was typed. */
  let before: number | null | undefined;
  let typed = false;
  effect(() => {
    const now = options.value();
    field.value = shown(now);
    typed = false;
    // Where the service refuses what was set, the old value comes back: why that was asked for is still to be read.
    if (now !== before) said.set(null);
    before = undefined;
  });
  const commit = () => {
    if (!typed) return;
    typed = false;
    const old = options.value();
    const text = field.value;
    const read = text.trim() === "" ? { value: null, said: null } : readTyped(text, { minimum, maximum, whole: step === 1 }, shown(old) || (options.placeholder || "none"));
    // Also where it is the value that there is: it may have been typed in place of one that was refused.
    if (read.value !== null) options.onChange(read.value);
    if (read.said !== null && read.value !== old) before = old;
    said.set(read.said);
    field.value = shown(options.value());
  };
  field.addEventListener("input", () => (typed = true));
  field.addEventListener("blur", commit);
  field.addEventListener("change", commit);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") commit();
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    by(event.key === "ArrowUp" ? 1 : -1);
  });
  const button = (sign: string, amount: number, word: string, off: () => boolean) =>
    h("button", {
      type: "button", tabindex: -1, "aria-label": `${word} ${options.label}`, disabled: off,
      onClick: () => by(amount),
    }, sign);
  return h("span", { class: "number" },
    h("span", { class: "stepper" },
      button("−", -1, "decrease", () => base() <= minimum),
      field,
      button("+", 1, "increase", () => base() >= maximum)),
    () => said() !== null && h("span", { id, class: "refusal", role: "alert" }, said()));
}

export interface Option {
  readonly value: string;
  readonly label: string;
}

export function select(
  label: string, options: Read<readonly Option[]>, value: Read<string>, onChange: (value: string) => void,
): HTMLSelectElement {
  const element = h("select", { "aria-label": label });
  effect(() => {
    element.replaceChildren(...options().map((one) => h("option", { value: one.value }, one.label)));
    element.value = untrack(value);
  });
  effect(() => {
    element.value = value();
  });
  element.addEventListener("change", () => {
    onChange(element.value);
    element.value = value();
  });
  return element;
}

/** A switch: on or off at once. */
export function toggle(label: string, value: Read<boolean>, onChange: (value: boolean) => void): HTMLElement {
  return h("button", {
    type: "button", class: "toggle", role: "switch", "aria-label": label,
    "aria-checked": () => String(value()), onClick: () => onChange(!value()),
  }, h("span", { class: "knob" }));
}

/** A few alternatives side by side. */
export function segments(
  label: string, options: readonly Option[], value: Read<string>, onChange: (value: string) => void,
): HTMLElement {
  return h("div", { class: "segments", role: "radiogroup", "aria-label": label },
    options.map((one, at) => {
      const move = (event: KeyboardEvent) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        const next = (at + by + options.length) % options.length;
        onChange(options[next].value);
        ((event.currentTarget as HTMLElement).parentElement!.children[next] as HTMLElement).focus();
      };
      return h("button", {
        type: "button", role: "radio", "aria-checked": () => String(value() === one.value),
        tabindex: () => (value() === one.value ? 0 : -1),
        onClick: () => onChange(one.value), onKeydown: move,
      }, one.label);
    }));
}

/** A button that opens a small panel; Escape, a second press or a press elsewhere closes it. */
export function menu(label: Child, name: string, content: () => Child): HTMLElement {
  // Takes the focus from a press on what has none, as buttons have in Safari, so that Escape is still heard.
  const panel = h("div", { class: "menu-panel", tabindex: -1 });
  const details = h("details", { class: "menu" }, h("summary", { "aria-label": name, title: name }, label), panel);
  const outside = (event: Event) => {
    if (!details.contains(event.target as Node)) details.open = false;
  };
  let filled = false;
  details.addEventListener("toggle", () => {
    if (details.open && !filled) {
      panel.append(...([content()].flat(9) as Node[]));
      filled = true;
    }
    if (details.open) {
      keepInside(panel);
      document.addEventListener("pointerdown", outside);
    } else document.removeEventListener("pointerdown", outside);
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.stopPropagation();
    details.open = false;
    details.querySelector("summary")?.focus();
  });
  details.addEventListener("focusout", (event) => {
    const next = event.relatedTarget as Node | null;
    if (next && !details.contains(next)) details.open = false;
  });
  return details;
}
