/** A control for one config field, made from its kind; what the service refuses is explained under it. */

import { type Child, h } from "../core/dom";
import { memo, type Read } from "../core/signal";
import { type App } from "../state/app";
import { type Spec, withField } from "../state/spec";
import { type Field, type Kind, type Named, WHOLE } from "./kinds";
import { refusalNote } from "./refusal";
import { type Option, select, stepper, toggle } from "./widgets";

/** Where a field that has no value starts from when the user begins to count. */
function startOf(app: App, field: Field, axis: number): number {
  const served = app.session.served();
  if (field.name === "output_size") return served?.shapes.y[2 + axis] ?? 1;
  const kernel = served?.spec.config.kernel;
  if (field.name === "stride" && kernel !== undefined) return Array.isArray(kernel) ? (kernel[axis] as number) : (kernel as number);
  return 1;
}

const AXES = ["", "w", "hw", "dhw"];

export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

interface Control {
  readonly app: App;
  readonly field: Field;
  readonly value: Read<unknown>;
  readonly set: (value: unknown) => void;
}

export function fieldRow(app: App, field: Field): HTMLElement {
  const { session } = app;
  const value = () => session.draft().config[field.name] ?? field.otherwise ?? null;
  const set = (next: unknown) =>
    session.change((spec) => withField(spec, field.name, next, field.otherwise), field.name);
  const control: Control = { app, field, value, set };
  const whole = field.name === WHOLE;
  return h("div", { class: "field", "data-field": field.name || "config", "data-kind": field.kind.kind },
    h("div", { class: "field-line" },
      h("span", { class: "field-label", title: field.description }, whole ? "Function" : labelOf(field.name)),
      whole ? wholeControl(app, field) : controlOf(control)),
    refusalNote(app, field.name, field.kind, field.otherwise,
      (spec: Spec) => spec.config[field.name],
      (spec: Spec, next: unknown) => withField(spec, field.name, next, field.otherwise)));
}

function controlOf(control: Control): Child {
  const { field } = control;
  const name = labelOf(field.name);
  const { kind } = field;
  switch (kind.kind) {
    case "flag":
      return toggle(name, () => control.value() === true, control.set);
    case "choice":
      return select(name, () => options(kind.options, kind.nullable), () => String(control.value() ?? ""),
        (next) => control.set(next === "" ? null : next));
    case "number":
      return numberControl(control, kind);
    case "axes":
      return axesControl(control, kind.minimum, kind.nullable);
    case "padding":
      return paddingControl(control, kind.names);
    case "layout":
      return layoutControl(control);
    case "named":
      return namedControl(name, kind.options, kind.nullable, control.value, control.set);
    default:
      return h("span", { class: "muted" }, "set by the page");
  }
}

function options(names: readonly string[], nullable: boolean): Option[] {
  const found = names.map((value) => ({ value, label: value.replaceAll("_", " ") }));
  return nullable ? [{ value: "", label: "none" }, ...found] : found;
}

const numberOf = (value: unknown) => (typeof value === "number" ? value : null);

function numberControl({ field, value, set }: Control, kind: Extract<Kind, { kind: "number" }>): Child {
  const step = kind.integer ? 1 : 0.5;
  const minimum = kind.integer ? kind.minimum : Math.max(kind.minimum, kind.minimum === 0 ? 0.5 : -99);
  const given = memo(() => kind.nullable && field.otherwise === null && numberOf(value()) !== null);
  return [
    () => given() && clear(field, set),
    stepper({
      label: labelOf(field.name), value: () => numberOf(value()), placeholder: () => "auto", step,
      minimum, maximum: 99, onChange: set,
    }),
  ];
}

function clear(field: Field, set: (value: unknown) => void): HTMLElement {
  return h("button", { type: "button", class: "quiet", "aria-label": `${labelOf(field.name)}: auto`, onClick: () => set(null) }, "auto");
}

function dimsOf(control: Control): number {
  return control.app.session.draft().dims;
}

/** One number for all axes, or one for each. */
function axesControl(control: Control, minimum: number, nullable: boolean): Child {
  const { field, value, set, app } = control;
  const entry = (axis: number) => {
    const now = value();
    return numberOf(Array.isArray(now) ? now[axis] : now);
  };
  const one = (axis: number, letter: string, change: (next: number) => void) =>
    stepper({
      label: `${labelOf(field.name)} ${letter}`.trim(), value: () => entry(axis), minimum, maximum: 64,
      placeholder: () => "auto", start: () => startOf(app, field, axis), onChange: change,
    });
  const dimensions = memo(() => dimsOf(control));
  const apart = memo(() => Array.isArray(value()) && dimensions() > 1);
  const given = memo(() => nullable && value() !== null && !field.required);
  return () => {
    const dims = dimensions();
    const split = apart();
    const setAxis = (axis: number) => (next: number) =>
      set(Array.from({ length: dims }, (_, at) => (at === axis ? next : (entry(at) ?? startOf(app, field, at)))));
    const together = (next: number) => set(field.required && Array.isArray(value()) ? Array(dims).fill(next) : next);
    return h("span", { class: "axes" },
      () => given() && clear(field, set),
      dims > 1 && splitButton(field, split, () => set(split ? entry(0) : Array.from({ length: dims }, (_, at) => entry(at) ?? startOf(app, field, at)))),
      h("span", { class: "axes-list" },
        split
          ? [...AXES[dims]].map((letter, axis) => h("span", { class: "axis" }, h("i", null, letter), one(axis, letter, setAxis(axis))))
          : one(0, "", together)));
  };
}

function splitButton(field: Field, split: boolean, onClick: () => void): HTMLElement {
  return h("button", {
    type: "button", class: "quiet", "aria-pressed": String(split), onClick,
    "aria-label": `${labelOf(field.name)}: ${split ? "joined" : "per axis"}`,
    title: split ? "One value for all axes" : "A value for each axis",
  }, split ? "joined" : "per axis");
}

function paddingControl(control: Control, names: readonly string[]): Child {
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
  const list: Option[] = [
    { value: "number", label: "equal" }, { value: "pairs", label: "low, high" },
    ...names.map((name) => ({ value: name, label: name.replaceAll("_", " ") })),
  ];
  const sideStepper = (axis: number, side: 0 | 1, letter: string) => stepper({
    label: `${labelOf(field.name)} ${letter} ${side ? "high" : "low"}`, value: () => pair(axis, side), minimum: 0, maximum: 32,
    onChange: (next) => set(pairs().map((both, at) => (at === axis ? both.map((v, s) => (s === side ? next : v)) : both))),
  });
  return [
    select(`${labelOf(field.name)}, how`, () => list, mode, choose),
    () => mode() === "number" && stepper({ label: labelOf(field.name), value: () => pair(0, 0), minimum: 0, maximum: 32, onChange: set }),
    () => mode() === "pairs" && h("span", { class: "axes-list" }, [...AXES[dimensions()]].map((letter, axis) =>
      h("span", { class: "axis" }, h("i", null, letter), sideStepper(axis, 0, letter), sideStepper(axis, 1, letter)))),
  ];
}

function layoutControl(control: Control): Child {
  const { field, value, set } = control;
  const dimensions = memo(() => dimsOf(control));
  const names = () => {
    const spatial = ["", "W", "HW", "DHW"][dimensions()];
    return field.name === "layout"
      ? [`NC${spatial}`, `N${spatial}C`]
      : [`OI${spatial}`, `${spatial}IO`, `IO${spatial}`, `O${spatial}I`];
  };
  return select(labelOf(field.name), () => [{ value: "", label: "default" }, ...names().map((name) => ({ value: name, label: name }))],
    () => String(value() ?? ""), (next) => set(next === "" ? null : next));
}

function namedControl(
  label: string, list: readonly Named[], nullable: boolean, value: Read<unknown>, set: (value: unknown) => void,
): Child {
  const map = () => {
    const now = value();
    return (typeof now === "string" ? { name: now } : now) as { name: string; [key: string]: unknown } | null;
  };
  const chosen = memo(() => list.find((one) => one.name === map()?.name));
  const put = (key: string, next: unknown) => set({ ...map(), [key]: next });
  return [
    select(label, () => options(list.map((one) => one.name), nullable), () => map()?.name ?? "",
      (next) => set(next === "" ? null : { name: next })),
    () => Object.entries(chosen()?.parameters ?? {}).map(([key, schema]) => h("span", { class: "axis" }, h("i", null, key),
      schema.type === "boolean"
        ? toggle(key, () => (map()?.[key] ?? schema.default) === true, (next) => put(key, next))
        : stepper({ label: key, value: () => numberOf(map()?.[key] ?? schema.default), step: 0.1, minimum: -9, maximum: 9, onChange: (next) => put(key, next) }))),
  ];
}

function wholeControl(app: App, field: Field): Child {
  if (field.kind.kind !== "named") return null;
  return namedControl("Function", field.kind.options, false, () => app.session.draft().config,
    (next) => app.session.change((spec) => ({ ...spec, config: next as Spec["config"] }), WHOLE));
}
