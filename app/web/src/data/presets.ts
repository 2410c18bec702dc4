/** Ready-made contents for tensors. Each fills one plane at a time; seeded ones run on through all. */

import { lift, type Shape5, size } from "../math/shape";
import { bell, type Rng, uniform } from "./rng";

interface Plane {
  readonly depth: number;
  readonly rows: number;
  readonly cols: number;
  /** Which plane of the tensor this is: its first and second axes. */
  readonly first: number;
  readonly second: number;
  readonly next: Rng;
}

/** The value at depth d, row r, column c. */
type Maker = (of: Plane, d: number, r: number, c: number) => number;

export interface Preset {
  readonly label: string;
  readonly seeded: boolean;
  readonly make: Maker;
}

const middle = (extent: number) => Math.floor((extent - 1) / 2);

const binomial = (n: number, k: number): number =>
  k < 0 || k > n ? 0 : k === 0 ? 1 : (binomial(n, k - 1) * (n - k + 1)) / k;

/** Sobel's filter at any size: a smoothed difference along one axis, binomial across the other. */
function sobel(along: number, across: number, i: number, j: number): number {
  if (along === 1) return 1;
  const slope = along === 2 ? 2 * i - 1 : binomial(along - 3, i - 2) - binomial(along - 3, i);
  return slope * binomial(across - 1, j);
}

function gabor({ rows, cols, first, second }: Plane, r: number, c: number): number {
  const angle = ((first * 2 + second) * Math.PI) / 4;
  const [y, x] = [r - (rows - 1) / 2, c - (cols - 1) / 2];
  const reach = Math.max(rows, cols, 2);
  const u = x * Math.cos(angle) + y * Math.sin(angle);
  const envelope = Math.exp((-(x * x + y * y) * 6) / (reach * reach));
  return Math.round(1000 * envelope * Math.cos((2 * Math.PI * u) / Math.max(2, reach * 0.6))) / 1000;
}

export const PRESETS = {
  integers: { label: "Integers", seeded: true, make: ({ next }) => Math.floor(next() * 7) - 3 },
  random: { label: "Random", seeded: true, make: ({ next }) => bell(next) },
  ones: { label: "Ones", seeded: false, make: () => 1 },
  zeros: { label: "Zeros", seeded: false, make: () => 0 },
  onehot: {
    label: "One-hot",
    seeded: false,
    make: ({ depth, rows, cols }, d, r, c) =>
      d === middle(depth) && r === middle(rows) && c === middle(cols) ? 1 : 0,
  },
  ramp: { label: "Ramp", seeded: false, make: ({ rows, cols }, d, r, c) => (d * rows + r) * cols + c },
  checkerboard: { label: "Checkerboard", seeded: false, make: (_, d, r, c) => (d + r + c + 1) % 2 },
  edge: { label: "Edge", seeded: false, make: ({ cols }, _d, _r, c) => (c < cols / 2 ? 0 : 1) },
  sobelx: { label: "Sobel →", seeded: false, make: ({ rows, cols }, _, r, c) => sobel(cols, rows, c, r) },
  sobely: { label: "Sobel ↓", seeded: false, make: ({ rows, cols }, _, r, c) => sobel(rows, cols, r, c) },
  gabor: { label: "Gabor", seeded: false, make: (of, _, r, c) => gabor(of, r, c) },
  mean: {
    label: "Mean",
    seeded: false,
    make: ({ depth, rows, cols }) => Math.fround(1 / (depth * rows * cols)),
  },
} satisfies Record<string, Preset>;

export type PresetName = keyof typeof PRESETS;

export function isPreset(name: string): name is PresetName {
  return Object.hasOwn(PRESETS, name);
}

export function fillPreset(name: PresetName, shape: readonly number[], seed: number): Float32Array {
  const lifted: Shape5 = shape.length === 1 ? [1, 1, 1, 1, shape[0]] : lift(shape);
  const [, second, depth, rows, cols] = lifted;
  const next = uniform(seed);
  const out = new Float32Array(size(lifted));
  const { make }: Preset = PRESETS[name];
  for (let which = 0, at = 0; at < out.length; which += 1) {
    const of = { depth, rows, cols, first: Math.floor(which / second), second: which % second, next };
    for (let d = 0; d < depth; d += 1) {
      for (let r = 0; r < rows; r += 1) for (let c = 0; c < cols; c += 1) {
        out[at] = make(of, d, r, c);
        at += 1;
      }
    }
  }
  return out;
}
