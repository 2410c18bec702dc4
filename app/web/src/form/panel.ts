/** The panel of controls: the operation, its sizes, and a field for each entry of its config's schema. */

import { type Child, h } from "../core/dom";
import { memo, type Read, signal } from "../core/signal";
import { type App, FIRST_PICK } from "../state/app";
import { redimensioned, switched } from "../state/change";
import { EXAMPLES } from "../state/examples";
import { CAPS, isConvolution, OPERATIONS, type Spec } from "../state/spec";
import { fieldRow } from "./field";
import { type Field, fieldsOf, type Kind, WHOLE } from "./kinds";
import { refusalNote } from "./refusal";
import { segments, select, stepper, toggle } from "./widgets";

/** Fields about how numbers are sent and computed, not about what the layer is. */
const LATER = new Set(["layout", "weight_layout", "algorithm", "grad_reduction", "divisor_override", "output_size"]);
/** The page always has x, and asks for gradients, whose answer has no indices. */
const NEVER = new Set(["input_shape", "return_indices"]);

export function panel(app: App): HTMLElement {
  const { session } = app;
  const op = memo(() => session.draft().op);
  const fields = memo(() => fieldsOf(app.catalogue()?.[op()] ?? {}).filter((one) => !NEVER.has(one.name)));
  // In narrow windows all but the operation is a sheet over the page's foot, so that the grids stay in view.
  const open = signal(false);
  const unfold = h("button", {
    type: "button", class: "fold", "aria-expanded": () => String(open()), "aria-controls": "layer-settings", onClick: () => open.set(!open()),
  }, "Settings");
  const close = () => {
    open.set(false);
    // The sheet takes away what had the focus.
    unfold.focus();
  };
  const escape = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open()) return;
    event.stopPropagation();
    close();
  };
  return h("aside", { class: "panel", "aria-label": "Layer", "data-open": () => (open() ? "1" : "0"), onKeydown: escape },
    h("div", { class: "operation" },
      row("Operation", [select("Operation",
        () => Object.entries(OPERATIONS).map(([value, label]) => ({ value, label })), op,
        (next) => app.leap(() => session.change((spec) => switched(spec, next)))), unfold])),
    refused(app, fields, open),
    // Takes the focus from a press on what has none, as buttons have in Safari, so that Escape is still heard.
    h("div", { class: "settings", id: "layer-settings", tabindex: -1 },
      h("div", { class: "sheet-head" }, h("strong", null, "Settings"), h("button", { type: "button", class: "fold", onClick: close }, "Done")),
      settings(app, op, fields)));
}

function settings(app: App, op: Read<string>, fields: Read<readonly Field[]>): Child {
  const { session } = app;
  const first = (field: Field) => !LATER.has(field.name) || field.required;
  return [
    h("div", { class: "block" },
      row("Dimensions", segments("Dimensions", [1, 2, 3].map((d) => ({ value: String(d), label: `${d}-D` })),
        () => String(session.draft().dims), (next) => app.leap(() => session.want(redimensioned(session.draft(), Number(next)))))),
      row("Example", select("Example",
        () => [{ value: "", label: "choose…" }, ...EXAMPLES.map((one, at) => ({ value: String(at), label: one.label }))],
        () => "", (next) => {
          if (next !== "") openExample(app, Number(next));
        }))),
    h("div", { class: "block" }, h("h2", null, "Sizes"), sizes(app)),
    h("div", { class: "block" }, h("h2", null, "Configuration"),
      () => (op(), fields().filter(first).map((field) => fieldRow(app, field))),
      () => {
        const rest = fields().filter((field) => !first(field));
        return rest.length > 0 && h("details", { class: "more" }, h("summary", null, "More"), rest.map((field) => fieldRow(app, field)));
      }),
  ];
}

function row(label: string, control: Child): HTMLElement {
  return h("div", { class: "field" }, h("div", { class: "field-line" }, h("span", { class: "field-label" }, label), control));
}

export function openExample(app: App, at: number): void {
  const example = EXAMPLES[at];
  app.leap(() => {
    app.endSweep();
    app.pinned.set(example.cell);
    app.wish.set({ ...FIRST_PICK, ...example.pick });
    app.session.want(example.spec);
  });
}

const WHOLE_NUMBER: Kind = { kind: "number", integer: true, minimum: 1, nullable: false };

function sizes(app: App): Child {
  const { session } = app;
  const one = (name: string, label: string, read: (spec: Spec) => number, write: (spec: Spec, value: number) => Spec, maximum: number) =>
    h("div", { class: "field" },
      h("div", { class: "field-line" }, h("span", { class: "field-label" }, label),
        stepper({ label, value: () => read(session.draft()), minimum: 1, maximum, onChange: (value) => session.change((spec) => write(spec, value), name) })),
      refusalNote(app, name, WHOLE_NUMBER, 1, read, (spec, value) => write(spec, value as number)));
  const axes = (key: "size" | "kernel", label: string, dims: number, maximum: number): Child => {
    const letters = ["", "W", "HW", "DHW"][dims];
    return h("div", { class: "field" },
      h("div", { class: "field-line" }, h("span", { class: "field-label" }, label, h("i", { class: "axes-letters" }, [...letters].join(" × ").toLowerCase())),
        h("span", { class: "axes-row" }, [...letters].map((letter, axis) => stepper({
          label: `${label} ${letter}`, value: () => session.draft()[key][axis] ?? 1, minimum: 1, maximum,
          onChange: (value) => session.change((spec) => ({ ...spec, [key]: spec[key].map((v, at) => (at === axis ? value : v)) }), key),
        })))),
      refusalNote(app, key, { kind: "axes", minimum: 1, nullable: false }, Array(dims).fill(1),
        (spec) => spec[key], (spec, value) => ({ ...spec, [key]: value as number[] })));
  };
  const convolution = memo(() => isConvolution(session.draft().op));
  const dims = memo(() => session.draft().dims);
  return [
    one("samples", "Samples", (spec) => spec.samples, (spec, value) => ({ ...spec, samples: value }), CAPS.samples),
    one("channels", "Channels in", (spec) => spec.channels, (spec, value) => ({ ...spec, channels: value }), CAPS.channels),
    () => convolution() && one("outputs", "Channels out", (spec) => spec.outputs, (spec, value) => ({ ...spec, outputs: value }), CAPS.channels),
    () => axes("size", "Input", dims(), CAPS.size[dims()]),
    () => convolution() && axes("kernel", "Kernel", dims(), CAPS.kernel),
    () => convolution() && row("Bias", toggle("Bias", () => session.draft().bias, (on) => session.change((spec) => ({ ...spec, bias: on }), "bias"))),
  ];
}

/** Sizes whose controls say themselves why they were refused, as those of the config's fields do. */
const EXPLAINED = new Set(["samples", "channels", "outputs", "size", "kernel"]);

/**
 * Why something was refused, outside of the sheet, where it is seen whether that is open or not: what no control explains, such as
 * another operation, and, in narrow windows, what a control explains inside the closed sheet. That of a link is told above every view.
 */
function refused(app: App, fields: Read<readonly Field[]>, open: Read<boolean>): Child {
  return () => {
    const refusal = app.session.refusal();
    if (!refusal || refusal.field === "link") return null;
    const explained = EXPLAINED.has(refusal.field) || fields().some((one) => one.name === refusal.field && one.name !== WHOLE);
    if (explained && open()) return null;
    return h("p", { class: explained ? "refusal folded" : "refusal", role: "alert" }, `That is not possible: ${refusal.why}.`);
  };
}
