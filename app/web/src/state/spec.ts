/** A layer as the user set it: operation, config as it is sent, sizes, and recipes for the tensors. */

import { FINITE, type Wanted } from "../data/block";
import { type Fill, fill } from "../data/fill";
import type { Role } from "../math/layer";
import { type Shape5, size, spatial } from "../math/shape";

export type Config = Readonly<Record<string, unknown>>;
export type Editable = Extract<Role, "x" | "weight" | "bias" | "indices" | "dy">;

export interface Spec {
  readonly op: string;
  readonly dims: number;
  readonly samples: number;
  readonly channels: number;
  /** Output channels of the convolutions. */
  readonly outputs: number;
  readonly size: readonly number[];
  /** Taps of the convolutions; pools have theirs in the config. */
  readonly kernel: readonly number[];
  readonly bias: boolean;
  readonly config: Config;
  readonly fills: Readonly<Record<Editable, Fill>>;
}

/** What the page lets anyone ask for, well inside the service's own limits. */
export const CAPS = { samples: 4, channels: 16, size: [0, 64, 64, 12], kernel: 11, cells: 1 << 17 };

export const OPERATIONS: Readonly<Record<string, string>> = {
  conv: "Convolution",
  conv_transpose: "Transposed convolution",
  max_pool: "Max pool",
  avg_pool: "Average pool",
  lp_pool: "Lp pool",
  adaptive_max_pool: "Adaptive max pool",
  adaptive_avg_pool: "Adaptive average pool",
  max_unpool: "Max unpool",
  activation: "Activation",
};

/** The operation in the middle of a sentence. */
export function inWords(op: string): string {
  return OPERATIONS[op].replace(/^[A-Z](?=[a-z]{2})/, (letter) => letter.toLowerCase());
}

interface Start {
  readonly size: number;
  readonly channels: number;
  readonly outputs?: number;
  readonly config: Config;
}

const STARTS: Readonly<Record<string, Start>> = {
  conv: { size: 7, channels: 2, outputs: 2, config: { stride: 2 } },
  conv_transpose: { size: 4, channels: 1, outputs: 1, config: { stride: 2 } },
  max_pool: { size: 7, channels: 1, config: { kernel: 3, stride: 2 } },
  avg_pool: { size: 7, channels: 1, config: { kernel: 3, stride: 2 } },
  lp_pool: { size: 7, channels: 1, config: { kernel: 3, stride: 2 } },
  adaptive_max_pool: { size: 7, channels: 1, config: { output_size: 3 } },
  adaptive_avg_pool: { size: 7, channels: 1, config: { output_size: 3 } },
  max_unpool: { size: 3, channels: 1, config: { output_size: 7 } },
  activation: { size: 5, channels: 1, config: { name: "gelu" } },
};

export const isConvolution = (op: string): boolean => op === "conv" || op === "conv_transpose";

/** By how many samples the gradients of the parameters are divided; null where they are sums over them. */
export const meanOf = ({ config, samples }: Spec): number | null => (config.grad_reduction === "mean" ? samples : null);

export function start(op: string, dims = 2): Spec {
  const { size, channels, outputs = 1, config } = STARTS[op];
  const repeat = (value: number): number[] => Array<number>(dims).fill(value);
  // Unpooling has no default for its output's size, and wants it per axis.
  const settled = op === "max_unpool" ? { output_size: repeat(7) } : config;
  const extent = dims === 3 ? Math.min(size, 5) : dims === 1 ? size + 4 : size;
  return {
    op,
    dims,
    samples: 1,
    channels,
    outputs,
    size: repeat(op === "max_unpool" ? 3 : extent),
    kernel: repeat(3),
    bias: false,
    config: settled,
    fills: {
      x: fill("integers", 66),
      weight: fill("integers", 31),
      bias: fill("integers", 4),
      indices: fill("integers", 2),
      dy: fill("integers", isConvolution(op) ? 9 : 60),
    },
  };
}

/** Shapes of the tensors that are given, in N C or O I order, as the sizes ask for. */
export function givenShapes(spec: Spec): Record<string, number[]> {
  const x = [spec.samples, spec.channels, ...spec.size];
  if (spec.op === "max_unpool") return { x, indices: x };
  if (!isConvolution(spec.op)) return { x };
  const groups = typeof spec.config.groups === "number" ? spec.config.groups : 1;
  const share = (channels: number) => Math.max(1, Math.floor(channels / groups));
  const transposed = spec.op === "conv_transpose";
  const weight = transposed
    ? [spec.channels, share(spec.outputs), ...spec.kernel]
    : [spec.outputs, share(spec.channels), ...spec.kernel];
  const outputs = transposed ? share(spec.outputs) * groups : spec.outputs;
  return { x, weight, ...(spec.bias ? { bias: [outputs] } : {}) };
}

/** What a cell takes. Indices are cells of the output's plane; all other tensors hold float32. */
export function wantedBy(role: Editable, output: Shape5): Wanted {
  if (role !== "indices") return FINITE;
  const last = size(spatial(output)) - 1;
  return { words: `a whole number from 0 to ${last}`, test: (value) => Number.isInteger(value) && value >= 0 && value <= last };
}

/** A field's value set, or taken out where it is what the service takes for granted anyway. */
export function withField(spec: Spec, field: string, value: unknown, otherwise: unknown): Spec {
  const config = { ...spec.config, [field]: value };
  if (JSON.stringify(value) === JSON.stringify(otherwise)) delete (config as Record<string, unknown>)[field];
  return { ...spec, config };
}
