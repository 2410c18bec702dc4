/** Controls for fields that have a value for each axis, or one for all: strides and their like, and padding. */

import { type Child, h } from "../core/dom";
import { memo, type Read } from "../core/signal";
import type { App } from "../state/app";
import { clear, type Control, dimsOf, labelOf, numberOf } from "./control";
import type { Field } from "./kinds";
import { type Option, select, stepper } from "./widgets";

const AXES = ["", "w", "hw", "dhw"];

/** Where a field that has no value starts from when the user begins to count. */
function startOf(app: App, field: Field, axis: number): number {
  const served = app.session.served();
  if (field.name === "output_size") return served?.shapes.y[2 + axis] ?? 1;
  const kernel = served?.spec.config.kernel;
  if (field.name === "stride" && kernel !== undefined) return Array.isArray(kernel) ? (kernel[axis] as number) : (kernel as number);
  return 1;
}

/** One number for all axes, or one for each; null is what the service settles, or, where a value is required, the input's own. */
export function axesControl(control: Control, minimum: number, nullable: boolean): Child {
  const { field, value, set, app } = control;
  const entry = (axis: number) => {
    const now = value();
    return numberOf(Array.isArray(now) ? now[axis] : now);
  };
  const one = (axis: number, letter: string, change: (next: number) => void) =>
    stepper({
      label: `${labelOf(field.name)} ${letter}`.trim(), value: () => entry(axis), minimum, maximum: 64,
      placeholder: nullable ? (field.required ? "same" : "auto") : undefined, start: () => startOf(app, field, axis), onChange: change,
    });
  const dimensions = memo(() => dimsOf(control));
  const apart = memo(() => Array.isArray(value()) && dimensions() > 1);
  const given = memo(() => nullable && value() !== null && !field.required);
  return () => {
    const dims = dimensions();
    const setAxis = (axis: number) => (next: number) =>
      set(Array.from({ length: dims }, (_, at) => (at === axis ? next : (entry(at) ?? startOf(app, field, at)))));
    const together = (next: number) => set(field.required && Array.isArray(value()) ? Array(dims).fill(next) : next);
    return h("span", { class: "axes" },
      () => given() && clear(field, set),
      dims > 1 && splitButton(field, apart, () => set(apart() ? entry(0) : Array.from({ length: dims }, (_, at) => entry(at) ?? startOf(app, field, at)))),
      h("span", { class: "axes-list" }, () =>
        apart()
          ? [...AXES[dims]].map((letter, axis) => h("span", { class: "axis" }, h("i", null, letter), one(axis, letter, setAxis(axis))))
          : one(0, "", together)));
  };
}

/** The same button both ways, so that it keeps the focus. */
function splitButton(field: Field, apart: Read<boolean>, onClick: () => void): HTMLElement {
  const words = () => (apart() ? "joined" : "per axis");
  return h("button", {
    type: "button", class: "quiet", "aria-pressed": () => String(apart()), onClick,
    "aria-label": () => `${labelOf(field.name)}: ${words()}`,
    title: () => (apart() ? "One value for all axes" : "A value for each axis"),
  }, words);
}

export function paddingControl(control: Control, names: readonly string[]): Child {
  const { field, value, set } = control;
  const dimensions = memo(() => dimsOf(control));
  const mode = memo(() => {
    const now = value();
    return typeof now === "string" ? now : Array.isArray(now) ? "pairs" : "number";
  });
  const pair = (axis: number, side: 0 | 1): number => {
    const now = value();
    const entry: unknown = Array.isArray(now) ? now[axis] : now;
    return (Array.isArray(entry) ? numberOf(entry[side]) : numberOf(entry)) ?? 0;
  };
  const pairs = () => Array.from({ length: dimsOf(control) }, (_, axis) => [pair(axis, 0), pair(axis, 1)]);
  const choose = (next: string) => set(next === "number" ? pair(0, 0) : next === "pairs" ? pairs() : next);
  // Causal padding is of one axis alone; what a link asks for all the same is shown, and why it is refused.
  const offered = () => names.filter((name) => name !== "causal" || dimensions() === 1 || mode() === name);
  const list = (): Option[] => [
    { value: "number", label: "equal" }, { value: "pairs", label: "low, high" },
    ...offered().map((name) => ({ value: name, label: name.replaceAll("_", " ") })),
  ];
  const sideStepper = (axis: number, side: 0 | 1, letter: string) => stepper({
    label: `${labelOf(field.name)} ${letter} ${side ? "high" : "low"}`, value: () => pair(axis, side), minimum: 0, maximum: 32,
    onChange: (next) => set(pairs().map((both, at) => (at === axis ? both.map((v, s) => (s === side ? next : v)) : both))),
  });
  return [
    select(`${labelOf(field.name)}, how`, list, mode, choose),
    () => mode() === "number" && stepper({ label: labelOf(field.name), value: () => pair(0, 0), minimum: 0, maximum: 32, onChange: set }),
    () => mode() === "pairs" && h("span", { class: "axes-list" }, [...AXES[dimensions()]].map((letter, axis) =>
      h("span", { class: "axis" }, h("i", null, letter), sideStepper(axis, 0, letter), sideStepper(axis, 1, letter)))),
  ];
}
