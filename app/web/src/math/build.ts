/** From an operation, its config and the service's geometry to the page's own layer. */

import { adaptiveAxis, type Axes, type Axis, type PaddingMode, plainAxis, slidingAxis } from "./axis";
import { Convolution } from "./convolution";
import type { Given, Layer } from "./layer";
import { Pointwise } from "./pointwise";
import { Pooling } from "./pooling";
import type { PoolRule } from "./reduction";
import { lift, type Shape5, spatial } from "./shape";

/** What the page takes from the service's answer: shapes in N, C, spatial order, and the padding as it is. */
export interface Geometry {
  shapes: Readonly<Record<string, readonly number[]>>;
  padding: readonly (readonly [number, number])[];
  /** Where it is not told, sums are plain. */
  algorithm?: string;
}

type Config = Readonly<Record<string, unknown>>;

/** One entry per lifted axis from an integer, a list, or nothing. */
function perAxis(value: unknown, dims: number, otherwise: readonly number[]): number[] {
  const given = Array.isArray(value) ? value : value === undefined || value === null ? null : value;
  const list = given === null ? otherwise.slice(-dims) : Array.isArray(given) ? given : Array(dims).fill(given);
  return [...Array<number>(3 - dims).fill(1), ...(list as number[])];
}

function pads(padding: Geometry["padding"]): [number, number][] {
  const missing: [number, number][] = Array.from({ length: 3 - padding.length }, () => [0, 0]);
  return [...missing, ...padding.map(([low, high]): [number, number] => [low, high])];
}

function slide(
  config: Config, dims: number, geometry: Geometry, dense: Shape5, windows: Shape5, kernel: number[],
): Axes {
  const stride = perAxis(config.stride, dims, "kernel" in config ? kernel : [1, 1, 1]);
  const dilation = perAxis(config.dilation, dims, [1, 1, 1]);
  const padding = pads(geometry.padding);
  const axis = (at: number): Axis => {
    if (at < 3 - dims) return plainAxis(1);
    return slidingAxis({
      dense: spatial(dense)[at],
      windows: spatial(windows)[at],
      kernel: kernel[at],
      stride: stride[at],
      dilation: dilation[at],
      low: padding[at][0],
      high: padding[at][1],
      mode: (config.padding_mode as PaddingMode | undefined) ?? "zeros",
      flip: config.flip_kernel === true,
    });
  };
  return [axis(0), axis(1), axis(2)];
}

function rule(op: string, config: Config): PoolRule {
  return {
    kind: op.includes("max") ? "max" : op.includes("lp") ? "lp" : "average",
    pad: config.pad_value === "zero" ? 0 : null,
    ties: config.ties === "all" ? "all" : "first",
    divisor: typeof config.divisor_override === "number" ? config.divisor_override : null,
    countPadding: config.count_include_pad !== false,
    p: typeof config.p === "number" ? config.p : 2,
  };
}

export function buildLayer(op: string, config: Config, geometry: Geometry, given: Given): Layer {
  const dims = geometry.shapes.x.length - 2;
  const x = lift(geometry.shapes.x);
  const y = lift(geometry.shapes.y);
  if (op === "conv" || op === "conv_transpose") {
    const weight = lift(geometry.shapes.weight);
    const [dense, windows] = op === "conv" ? [x, y] : [y, x];
    return new Convolution({
      op,
      dims,
      axes: slide(config, dims, geometry, dense, windows, [...spatial(weight)]),
      shapes: { x, weight, y },
      groups: typeof config.groups === "number" ? config.groups : 1,
      activation: config.activation,
      mean: config.grad_reduction === "mean",
      direct: (geometry.algorithm ?? "direct") === "direct",
      given,
    });
  }
  if (op === "max_unpool" || op === "activation") return new Pointwise(op, dims, x, y, config, given);
  const axes: Axes = op.startsWith("adaptive")
    ? [0, 1, 2].map((at) => adaptiveAxis(spatial(x)[at], spatial(y)[at])) as unknown as Axes
    : slide(config, dims, geometry, x, y, perAxis(config.kernel, dims, [1, 1, 1]));
  return new Pooling(op, dims, axes, x, y, rule(op, config), given);
}
