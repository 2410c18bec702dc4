/** The part of the picture that a unit depends on, beside its gradient, large enough for numbers. */

import { type Child, h } from "../../core/dom";
import { full } from "../../core/format";
import { NO_RING } from "../../grid/draw";
import { NO_LIGHT } from "../../grid/light";
import { gridView } from "../../grid/view";
import { toneScale } from "./maps";
import type { Traced } from "./pipeline";
import { FILTER_LABELS } from "./settings";

const WIDEST = 15;

/** The smallest box around everything that is not zero. */
export function support(values: ArrayLike<number>, size: number): { top: number; left: number; rows: number; cols: number } | null {
  let [top, left, bottom, right] = [size, size, -1, -1];
  for (let i = 0; i < size * size; i += 1) {
    if (values[i] === 0) continue;
    const [r, c] = [Math.floor(i / size), i % size];
    [top, left, bottom, right] = [Math.min(top, r), Math.min(left, c), Math.max(bottom, r), Math.max(right, c)];
  }
  return bottom < 0 ? null : { top, left, rows: Math.min(WIDEST, bottom - top + 1), cols: Math.min(WIDEST, right - left + 1) };
}

export function closeUp(traced: Traced | null): Child {
  if (!traced) return h("p", { class: "hint closeup" }, "Choose a unit in a map below.");
  const { of, unit } = traced;
  const { size, values } = of.image;
  const box = support(traced.dx, size);
  const name = `${unit.stage === "feature" ? "Feature map" : "Pooled map"} ${FILTER_LABELS[of.settings.filters[unit.channel]]}, row ${unit.row}, column ${unit.col}`;
  const title = h("p", null, h("strong", null, name), ` is ${full(traced.value)}. `, box
    ? `Its gradient at the input is the filter, laid where the unit looks${unit.stage === "pooled" ? "; of the pool’s window only the maximum passes it on" : ""}.`
    : "The ReLU is off there, so its gradient is zero everywhere.");
  if (!box) return h("div", { class: "closeup" }, title);
  const cut = (from: ArrayLike<number>) => Float32Array.from({ length: box.rows * box.cols }, (_, i) =>
    from[(box.top + Math.floor(i / box.cols)) * size + box.left + (i % box.cols)]);
  const one = (label: string, from: ArrayLike<number>, signed: boolean) => {
    const part = cut(from);
    return h("figure", { class: "map-figure" },
      gridView({
        label: () => label, light: () => NO_LIGHT, cell: () => (box.cols > 9 ? 24 : 36),
        plane: () => ({ rows: box.rows, cols: box.cols, values: part, scale: toneScale(part, signed ? "signed" : "picture"), ring: NO_RING }),
        describe: (index) => `row ${box.top + Math.floor(index / box.cols)}, column ${box.left + (index % box.cols)}: ${full(part[index])}`,
      }).element,
      h("figcaption", null, h("span", null, label)));
  };
  return h("div", { class: "closeup" }, title, h("div", { class: "closeup-grids" }, one("Picture, close up", values, false), one("Gradient, close up", traced.dx, true)));
}
