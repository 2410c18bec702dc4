/**
 * The output's shape before the service has said it, so that a layer's first picture takes one request and not two.
 * Nothing is drawn from a guess: the gradient that is sent has this shape, and the service refuses one that is wrong.
 */

import { size } from "../math/shape";
import { CAPS, givenShapes, isConvolution, type Spec } from "./spec";

/** One axis's entry of a value that may stand for all axes. */
function along(value: unknown, axis: number, otherwise: number): number {
  const one: unknown = Array.isArray(value) ? value[axis] : value;
  return typeof one === "number" ? one : otherwise;
}

/** Low and high padding of an axis; NaN where it is given by a name that says no number. */
function pads(padding: unknown, axis: number, reach: number): readonly [number, number] {
  if (padding === "full") return [reach - 1, reach - 1];
  if (padding === "causal") return [reach - 1, 0];
  if (typeof padding === "string") return padding === "valid" ? [0, 0] : [NaN, NaN];
  const pair: unknown = Array.isArray(padding) ? padding[axis] : null;
  return Array.isArray(pair) ? [along(pair, 0, NaN), along(pair, 1, NaN)] : [along(padding, axis, 0), along(padding, axis, 0)];
}

function extent({ op, config, ...spec }: Spec, axis: number): number {
  const input = spec.size[axis];
  if (op === "activation") return input;
  if (op === "max_unpool" || op.startsWith("adaptive")) return along(config.output_size, axis, input);
  const kernel = isConvolution(op) ? spec.kernel[axis] : along(config.kernel, axis, NaN);
  const stride = along(config.stride, axis, isConvolution(op) ? 1 : kernel);
  const reach = along(config.dilation, axis, 1) * (kernel - 1) + 1;
  const same = config.padding === "same" || config.padding === "same_lower";
  const [low, high] = pads(config.padding, axis, reach);
  if (op === "conv_transpose") {
    const plain = same ? input * stride : (input - 1) * stride + reach - low - high + along(config.output_padding, axis, 0);
    return along(config.output_size, axis, plain);
  }
  if (same) return Math.ceil(input / stride);
  const steps = (input + low + high - reach) / stride;
  if (!config.ceil_mode) return Math.floor(steps) + 1;
  // Windows start inside the input or its low padding only.
  return Math.min(Math.ceil(steps) + 1, Math.ceil((input + low) / stride));
}

/** In the page's own order of axes; null where it is not plain, and the service's plan has to say. */
export function guessOutput(spec: Spec): readonly number[] | null {
  const { x, weight } = givenShapes(spec);
  const groups = along(spec.config.groups, 0, 1);
  const channels = !weight ? x[1] : spec.op === "conv" ? weight[0] : weight[1] * groups;
  const shape = [x[0], channels, ...spec.size.map((_, axis) => extent(spec, axis))];
  return shape.every((one) => Number.isInteger(one) && one > 0) && size(shape) <= CAPS.cells ? shape : null;
}
