/** Cells keep their places while a layer's shapes change. */

import { type Fill, placed, within } from "../data/fill";
import { givenShapes, type Spec } from "./spec";

/** @param output the shape of y; null where nobody knows it yet: then dy stays as it is. */
function each(spec: Spec, output: readonly number[] | null, change: (of: Fill, shape: readonly number[]) => Fill): Spec {
  // A bias that is switched off keeps its numbers.
  const shapes: Record<string, readonly number[]> = { ...givenShapes({ ...spec, bias: true }), ...(output && { dy: output }) };
  const fills = Object.entries(spec.fills).map(([name, of]) => [name, shapes[name] ? change(of, shapes[name]) : of]);
  return { ...spec, fills: Object.fromEntries(fills) as Spec["fills"] };
}

/** Before another shape may be asked for: what came from a link or a file is held to the one that it is in. */
export const holdPlaces = (spec: Spec, output: readonly number[] | null): Spec => each(spec, output, placed);

/** The layer with what it shows, and nothing of what is outside its shapes. */
export const onShow = (spec: Spec, output: readonly number[] | null): Spec => each(spec, output, within);
