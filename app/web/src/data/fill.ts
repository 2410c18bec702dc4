/** A tensor's contents as a recipe: a preset, a seed, single cells changed; or all numbers as they are. */

import { around, moved, same, size } from "../math/shape";
import { fillPreset, type PresetName } from "./presets";
import { uniform } from "./rng";

type Shape = readonly number[];

export interface Fill {
  readonly preset: PresetName;
  readonly seed: number;
  readonly edits: ReadonlyMap<number, number>;
  /** Numbers from a file or a link; cells beyond them come from the preset. */
  readonly data?: Float32Array;
  /** The shapes that the two are flat in: cells keep their places in any other. Without them, the one that is asked for. */
  readonly shapes?: { readonly edits: Shape; readonly data: Shape };
}

export function fill(preset: PresetName, seed = 1): Fill {
  return { preset, seed, edits: new Map() };
}

const shapesOf = (of: Fill, shape: Shape) => of.shapes ?? { edits: shape, data: shape };

/** Contents that keep their cells' places from now on: those in `shape`, unless they have others. A preset alone suits any. */
export function placed(of: Fill, shape: Shape): Fill {
  return !of.shapes && (of.data || of.edits.size > 0) ? { ...of, shapes: shapesOf(of, shape) } : of;
}

/** Cells of one shape where they are in another; those outside of it are left out. */
function* carried(cells: Iterable<readonly [number, number]>, from: Shape, to: Shape): Generator<[number, number]> {
  for (const [index, value] of cells) {
    const at = moved(index, from, to);
    if (at >= 0) yield [at, value];
  }
}

/** @param shape the one that `values` are flat in. Older edits outside of it stay: they are kept in a shape around both. */
export function edited(of: Fill, values: ReadonlyMap<number, number>, shape: Shape): Fill {
  const before = shapesOf(of, shape);
  const whole = around(before.edits, shape);
  const edits = new Map(carried(of.edits, before.edits, whole));
  for (const [index, value] of carried(values, shape, whole)) edits.set(index, Math.fround(value));
  return { ...of, edits, shapes: { edits: whole, data: before.data } };
}

/** Has `make` work each recipe out once for the shape that it was last wanted in. */
function once<T>(make: (of: Fill, shape: Shape) => T): (of: Fill, shape: Shape) => T {
  const known = new WeakMap<Fill, { readonly shape: Shape; readonly made: T }>();
  return (of, shape) => {
    const last = known.get(of);
    if (last && same(last.shape, shape)) return last.made;
    const made = make(of, shape);
    known.set(of, { shape, made });
    return made;
  };
}

/** The numbers below the edits. Data of the wrong size are left out. */
function ground(of: Fill, shape: Shape): Float32Array {
  const from = shapesOf(of, shape).data;
  const data = of.data?.length === size(from) ? of.data : null;
  if (data && same(from, shape)) return data.slice();
  const out = fillPreset(of.preset, shape, of.seed);
  for (const [at, value] of carried(data?.entries() ?? [], from, shape)) out[at] = value;
  return out;
}

/** The numbers, which are not to be written to. */
export const realise = once((of, shape) => {
  const out = ground(of, shape);
  for (const [at, value] of carried(of.edits, shapesOf(of, shape).edits, shape)) out[at] = value;
  return out;
});

/** A recipe of what `shape` shows and no more, flat in it: what leaves the page is such. */
export const within = once((of, shape): Fill => {
  const { edits, data } = shapesOf(of, shape);
  if (same(edits, shape) && same(data, shape)) return of;
  const { preset, seed } = of;
  return { preset, seed, edits: new Map(carried(of.edits, edits, shape)), ...(of.data && { data: ground(of, shape) }) };
});

/**
 * Distinct targets for unpooling: one random cell in each block of the output plane. A typed one stays the number that it was
 * typed as, whatever cell that is in an output of another size; beyond that plane the random one stands in its place.
 */
export function realiseIndices(of: Fill, shape: Shape, output: Shape): Float32Array {
  const next = uniform(of.seed);
  const input = shape.slice(2);
  const plane = size(output);
  const out = Float32Array.from({ length: size(shape) }, (_, at) => {
    let rest = at % size(input);
    let index = 0;
    let step = 1;
    for (let axis = input.length - 1; axis >= 0; axis -= 1) {
      const q = rest % input[axis];
      rest = Math.floor(rest / input[axis]);
      const start = Math.floor((q * output[axis]) / input[axis]);
      const stop = Math.max(start + 1, Math.floor(((q + 1) * output[axis]) / input[axis]));
      index += step * Math.min(output[axis] - 1, start + Math.floor(next() * (stop - start)));
      step *= output[axis];
    }
    return index;
  });
  for (const [at, value] of carried(of.edits, shapesOf(of, shape).edits, shape)) {
    if (value >= 0 && value < plane) out[at] = Math.floor(value);
  }
  return out;
}
