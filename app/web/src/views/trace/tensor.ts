/** One tensor of the stage: its name, its plane, its range, and the pages that it has. */

import { type Child, h } from "../../core/dom";
import { computed, effect, memo, type Read } from "../../core/signal";
import { full } from "../../core/format";
import { fill, within } from "../../data/fill";
import { PRESETS, type PresetName } from "../../data/presets";
import { menu, stepper } from "../../form/widgets";
import { type GridView, gridView } from "../../grid/view";
import { legend } from "../../grid/legend";
import { thumbnails } from "../../grid/thumbnails";
import { type Role, SPACE } from "../../math/layer";
import { plane as planeSize } from "../../math/shape";
import type { App } from "../../state/app";
import { planeWords } from "../../state/channels";
import { type Editable, wantedBy } from "../../state/spec";
import { valuesOf } from "../../state/served";
import { IN_WORDS, isMade, placeOf, SYMBOL } from "./names";
import { copied, paste } from "./paste";
import { type Planes, sliceOf } from "./planes";

const EDITABLE: ReadonlySet<Role> = new Set<Role>(["x", "weight", "bias", "dy", "indices"]);

export function symbol(role: Role): HTMLElement {
  const name = SYMBOL[role];
  return h("span", { class: "symbol" }, name.startsWith("d") && name.length > 1
    ? [h("span", { class: "d" }, "d"), name.slice(1)] : name);
}

/** @param indent pixels by which the plane stands further right, so that positions stand below positions. */
export function tensorCard(app: App, planes: Planes, role: Role, cell: Read<number>, indent: Read<number>): { element: HTMLElement; grid: GridView } {
  const plane = planes.plane(role);
  const light = planes.light(role);
  const toFlat = (index: number) => sliceOf(app, role).base + index;
  const editable = EDITABLE.has(role);
  const grid = gridView({
    label: () => `${SYMBOL[role]}, ${IN_WORDS[role]}`,
    plane, light, cell,
    describe: (index) => describe(app, role, toFlat(index)),
    onHover: (index) => app.hover.set(index < 0 ? null : { role, index: toFlat(index) }),
    onSelect: (index: number) => app.pin(role, toFlat(index)),
    onClear: () => {
      app.endSweep();
      app.unpin();
    },
    onEdit: editable ? (index, value) => app.edit(role as Editable, toFlat(index), value) : undefined,
    wanted: editable ? () => wantedBy(role as Editable, app.shapes().y!) : undefined,
    onPaste: (text, index) => paste(app, role, text, index),
    onCopy: () => copied(app, role),
    brush: app.brush,
    data: {
      role: () => role,
      lit: () => app.explanation()?.lit[SPACE[role]].size ?? 0,
      shown: () => light().lit?.reduce((sum, one) => sum + one, 0) ?? 0,
      unread: () => plane().unread?.reduce((sum, one) => sum + one, 0) ?? 0,
      cell: () => cell(),
    },
  });
  effect(() => grid.element.style.setProperty("margin-left", `${indent()}px`));
  const element = h("section", { class: "tensor", "data-tensor": role, "aria-label": `${SYMBOL[role]}, ${IN_WORDS[role]}` },
    h("header", { class: "tensor-head" },
      symbol(role),
      h("span", { class: "tensor-role" }, h("span", { class: "tensor-words" }, IN_WORDS[role]), " ",
        h("span", { class: "tensor-shape" }, () => shapeText(app, role))),
      editable && fillMenu(app, role as Editable)),
    grid.element,
    h("footer", { class: "tensor-foot" }, legend(() => plane().scale), pages(app, planes, role)));
  return { element, grid };
}

export function shapeText(app: App, role: Role): string {
  const shapes = app.session.served()?.shapes ?? {};
  const own = shapes[role] ?? shapes[role.slice(1)];
  return own ? own.join(" × ") : "";
}

function describe(app: App, role: Role, index: number): string {
  const served = app.session.served();
  if (!served) return "";
  const value = valuesOf(served, role)?.[index];
  if (value === undefined) return "";
  const base = `${SYMBOL[role]}[${placeOf(app, role, index)}] = ${full(value)}`;
  if (!isMade(role)) return `${base}, given`;
  const { terms } = served.layer.explain(role, index);
  const active = terms.filter((term) => !term.idle).length;
  return `${base}, from ${active} ${active === 1 ? "term" : "terms"}`;
}

/** The planes of a tensor as small pictures, and depth where there is one. */
function pages(app: App, planes: Planes, role: Role): Child {
  if (SPACE[role] === "bias") return null;
  if (SPACE[role] === "weight") return [planeOf(app), depth(app, role)];
  const channels = memo(() => app.shapes()[role]?.[1] ?? 1);
  const key = SPACE[role] === "x" ? "c" : "o";
  const lit = computed(() => {
    const shape = app.shapes()[role];
    const found = new Set<number>();
    if (!shape) return found;
    const area = planeSize(shape);
    for (const index of app.explanation()?.lit[SPACE[role]] ?? []) found.add(Math.floor(index / area) % shape[1]);
    return found;
  });
  return [
    () => channels() > 1 && thumbnails({
      count: channels(),
      chosen: () => app.pick()[key],
      label: (channel) => `${SYMBOL[role]}, channel ${channel}`,
      scale: () => planes.plane(role)().scale,
      plane: (channel) => {
        const shape = app.shapes()[role]!;
        const { n } = app.pick();
        const deep = app.pick()[key === "c" ? "xd" : "yd"];
        const base = ((n * shape[1] + channel) * shape[2] + deep) * shape[3] * shape[4];
        return { rows: shape[3], cols: shape[4], base, values: valuesOf(app.session.served()!, role)! };
      },
      lit: (channel) => lit().has(channel),
      choose: (channel) => app.showChannel(key, channel),
    }),
    depth(app, role),
  ];
}

/** Of the weight's planes, which X's and Y's small pictures choose between them, the one on show. */
function planeOf(app: App): Child {
  const words = memo(() => planeWords(app.session.served()!, app.pick()).join("\n"));
  return () => words() !== "" && h("span", { class: "plane-words" }, words().split("\n").map((one) => h("span", null, one, " ")));
}

function depth(app: App, role: Role): Child {
  const key = ({ x: "xd", y: "yd", weight: "kd", bias: "kd" } as const)[SPACE[role]];
  const extent = memo(() => app.shapes()[role]?.[2] ?? 1);
  return () => extent() > 1 && h("span", { class: "depth" }, "depth ",
    stepper({
      label: `${SYMBOL[role]} depth`, value: () => app.pick()[key], minimum: 0, maximum: extent() - 1,
      onChange: (value) => app.wish.update((wish) => ({ ...wish, [key]: value })),
    }), ` of ${extent()}`);
}

/** What a tensor is filled with, and the brush. */
function fillMenu(app: App, role: Editable): HTMLElement {
  const { session } = app;
  const now = memo(() => {
    const [of, shape] = [session.draft().fills[role], session.served()?.shapes[role]];
    return shape ? within(of, shape) : of;
  });
  const put = (preset: PresetName, seed: number) => session.change((spec) => ({
    ...spec, fills: { ...spec.fills, [role]: fill(preset, seed) },
  }), role);
  const seeded = () => (PRESETS[now().preset] as { seeded: boolean }).seeded || role === "indices";
  const names = Object.entries(PRESETS) as [PresetName, { label: string }][];
  return menu(() => (app.brush() === null ? "Fill" : "Paint"), `Fill ${SYMBOL[role]}`, () => [
    role !== "indices" && h("div", { class: "presets" }, names.map(([name, { label }]) =>
      h("button", {
        type: "button", "aria-pressed": () => String(now().preset === name && !now().data && now().edits.size === 0),
        onClick: () => put(name, now().seed),
      }, label))),
    h("div", { class: "field-line", hidden: () => !seeded() }, h("span", null, "Seed"),
      stepper({ label: "Seed", value: () => now().seed, minimum: 0, maximum: 999999, onChange: (seed) => put(now().preset, seed) })),
    brushRow(app),
    h("p", { class: "hint" }, "Or choose a cell and type a number, or paste several."),
  ]);
}

function brushRow(app: App): HTMLElement {
  const painting = () => app.brush() !== null;
  return h("div", { class: "field-line" },
    h("button", {
      type: "button", "aria-pressed": () => String(painting()),
      onClick: () => app.brush.set(painting() ? null : 1),
    }, () => (painting() ? "Stop painting" : "Paint with")),
    stepper({ label: "Brush value", value: () => app.brush() ?? 1, step: 0.5, onChange: (value) => app.brush.set(value) }));
}
