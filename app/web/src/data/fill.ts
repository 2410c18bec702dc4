/** A tensor's contents as a recipe: a preset, a seed, single cells changed; or all numbers as they are. */

import { size } from "../math/shape";
import { fillPreset, type PresetName } from "./presets";
import { uniform } from "./rng";

export interface Fill {
  readonly preset: PresetName;
  readonly seed: number;
  readonly edits: ReadonlyMap<number, number>;
  /** Numbers from a file or a link; cells beyond them come from the preset. */
  readonly data?: Float32Array;
}

export function fill(preset: PresetName, seed = 1): Fill {
  return { preset, seed, edits: new Map() };
}

export function edited(of: Fill, values: ReadonlyMap<number, number>): Fill {
  const edits = new Map(of.edits);
  for (const [index, value] of values) edits.set(index, Math.fround(value));
  return { ...of, edits };
}

const realised = new WeakMap<Fill, { shape: string; data: Float32Array }>();

/** The numbers; worked out once for each recipe and shape, and not to be written to. */
export function realise(of: Fill, shape: readonly number[]): Float32Array {
  const key = shape.join();
  const known = realised.get(of);
  if (known?.shape === key) return known.data;
  const data = make(of, shape);
  realised.set(of, { shape: key, data });
  return data;
}

function make(of: Fill, shape: readonly number[]): Float32Array {
  const out = of.data?.length === size(shape) ? of.data.slice() : fillPreset(of.preset, shape, of.seed);
  for (const [index, value] of of.edits) if (index < out.length) out[index] = value;
  return out;
}

/** Distinct targets for unpooling: one random cell in each block of the output plane. */
export function realiseIndices(of: Fill, shape: readonly number[], output: readonly number[]): Float32Array {
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
  for (const [index, value] of of.edits) {
    if (index < out.length && value >= 0 && value < plane) out[index] = Math.floor(value);
  }
  return out;
}
