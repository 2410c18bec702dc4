/** A control for one config field, made from its kind; what the service refuses is explained under it. */

import { type Child, h } from "../core/dom";
import { memo, type Read } from "../core/signal";
import type { App } from "../state/app";
import { type Spec, withField } from "../state/spec";
import { axesControl, paddingControl } from "./axes";
import { clear, type Control, dimsOf, labelOf, numberOf } from "./control";
import { type Field, type Kind, type Named, WHOLE } from "./kinds";
import { refusalNote } from "./refusal";
import { type Option, select, stepper, toggle } from "./widgets";

export function fieldRow(app: App, field: Field): HTMLElement {
  const { session } = app;
  const value = () => session.draft().config[field.name] ?? field.otherwise ?? null;
  const set = (next: unknown) =>
    session.change((spec) => withField(spec, field.name, next, field.otherwise), field.name);
  const control: Control = { app, field, value, set };
  const whole = field.name === WHOLE;
  return h("div", { class: "field", "data-field": field.name, "data-kind": field.kind.kind },
    h("div", { class: "field-line" },
      h("span", { class: "field-label", title: field.description }, whole ? "Function" : labelOf(field.name)),
      whole ? wholeControl(app, field) : controlOf(control)),
    !whole && refusalNote(app, field.name, field.kind, field.otherwise,
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

function numberControl({ field, value, set }: Control, kind: Extract<Kind, { kind: "number" }>): Child {
  const step = kind.integer ? 1 : 0.5;
  const minimum = kind.integer ? kind.minimum : Math.max(kind.minimum, kind.minimum === 0 ? 0.5 : -99);
  const given = memo(() => kind.nullable && field.otherwise === null && numberOf(value()) !== null);
  return [
    () => given() && clear(field, set),
    stepper({
      label: labelOf(field.name), value: () => numberOf(value()), placeholder: kind.nullable && field.otherwise === null ? "auto" : undefined, step,
      minimum, maximum: 99, onChange: set,
    }),
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
