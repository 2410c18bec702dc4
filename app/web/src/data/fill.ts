/** A tensor's contents as a recipe: a preset, a seed, single cells changed; or all numbers as they are. */

import { size } from "../math/shape";
import { fillPreset, isPreset, type PresetName } from "./presets";
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

export function edited(of: Fill, index: number, value: number): Fill {
  return { ...of, edits: new Map(of.edits).set(index, Math.fround(value)) };
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

const RAW = "raw:";

/** `preset.seed~index:value,…` or `raw:` and base64url of the float32 bytes. */
export function writeFill(of: Fill): string {
  if (of.data) return RAW + toBase64(of.data);
  const edits = [...of.edits].map(([index, value]) => `${index}:${value}`).join(",");
  return `${of.preset}.${of.seed}${edits ? `~${edits}` : ""}`;
}

/** null where the text is no recipe. Data of the wrong size is left out by `realise`. */
export function readFill(text: string): Fill | null {
  if (text.startsWith(RAW)) {
    const data = fromBase64(text.slice(RAW.length));
    return data && { ...fill("zeros"), data };
  }
  const [head, tail = ""] = text.split("~", 2);
  const [preset, seed = "1"] = head.split(".", 2);
  if (!isPreset(preset) || !/^\d{1,9}$/.test(seed)) return null;
  const edits = new Map<number, number>();
  for (const edit of tail ? tail.split(",") : []) {
    const [index, value] = edit.split(":").map(Number);
    if (!Number.isInteger(index) || index < 0 || Number.isNaN(value)) return null;
    edits.set(index, Math.fround(value));
  }
  return { preset, seed: Number(seed), edits };
}

export function toBase64(data: Float32Array): string {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text: string): Float32Array | null {
  if (!/^[\w-]*$/.test(text)) return null;
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return bytes.length % 4 === 0 ? new Float32Array(bytes.buffer) : null;
  } catch {
    return null;
  }
}
