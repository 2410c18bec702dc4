/** The picture through the layer and back, request by request, all by the service. */

import { type Client, tensor, type Tensor } from "../../client";
import { filterValues, type ImageSettings, type Unit } from "./settings";
import type { Grey } from "./source";

/** A stack of maps: [channels, rows, cols] without the sample axis. */
export interface Maps {
  readonly channels: number;
  readonly rows: number;
  readonly cols: number;
  readonly values: Float32Array;
}

export interface Passed {
  readonly settings: ImageSettings;
  readonly image: Grey;
  readonly weight: Tensor<Float32Array>;
  readonly feature: Maps;
  readonly pooled: Maps;
  readonly unpooled: Maps;
  readonly rebuilt: Maps;
}

export interface Traced {
  /** What the unit is a unit of. */
  readonly of: Passed;
  readonly unit: Unit;
  readonly value: number;
  readonly dx: Float32Array;
}

function maps({ data, shape }: Tensor): Maps {
  return { channels: shape[1], rows: shape[2], cols: shape[3], values: data as Float32Array };
}

const input = ({ size, values }: Grey) => tensor(values, [1, 1, size, size]);

function convolution(settings: ImageSettings): Record<string, unknown> {
  return { padding: "same", padding_mode: "replicate", stride: settings.stride, ...(settings.relu ? { activation: "relu" } : {}) };
}

const pooling = (settings: ImageSettings) => ({ kernel: settings.pool, stride: 2 });

export async function pass(client: Client, settings: ImageSettings, image: Grey, signal: AbortSignal): Promise<Passed> {
  const { kernel, filters, stride, size } = settings;
  const bank = new Float32Array(filters.length * kernel * kernel);
  filters.forEach((filter, at) => bank.set(filterValues(settings, filter), at * kernel * kernel));
  const weight = tensor(bank, [filters.length, 1, kernel, kernel]);
  const first = await client.forward("conv", { config: convolution(settings), tensors: { x: input(image), weight } }, { signal });
  const y = first.tensors.y;
  const second = await client.forward("max_pool", { config: { ...pooling(settings), return_indices: true }, tensors: { x: y } }, { signal });
  const { y: pooled, indices } = second.tensors;
  const third = await client.forward("max_unpool", { config: { output_size: y.shape.slice(2) }, tensors: { x: pooled, indices } }, { signal });
  // The convolution's weight, O by I, is just what the transposed one reads as I by O.
  const config = { stride, padding: first.info.padding, output_size: [size, size] };
  const fourth = await client.forward("conv_transpose", { config, tensors: { x: third.tensors.y, weight } }, { signal });
  return {
    settings, image, weight, feature: maps(y), pooled: maps(pooled), unpooled: maps(third.tensors.y), rebuilt: maps(fourth.tensors.y),
  };
}

/** One-hot at the unit, back through the pool where the unit is behind it, and through the convolution. */
export async function trace(client: Client, passed: Passed, unit: Unit, signal: AbortSignal): Promise<Traced> {
  const stage = unit.stage === "feature" ? passed.feature : passed.pooled;
  const at = (unit.channel * stage.rows + unit.row) * stage.cols + unit.col;
  const hot = new Float32Array(stage.values.length);
  hot[at] = 1;
  const stack = (of: Maps, values: Float32Array) => tensor(values, [1, of.channels, of.rows, of.cols]);
  let dy = stack(stage, hot);
  if (unit.stage === "pooled") {
    const tensors = { x: stack(passed.feature, passed.feature.values), dy };
    const back = await client.backward("max_pool", { config: pooling(passed.settings), tensors }, { signal });
    dy = back.tensors.dx as Tensor<Float32Array>;
  }
  const tensors = { x: input(passed.image), weight: passed.weight, dy };
  const back = await client.backward("conv", { config: convolution(passed.settings), tensors, wants: ["dx"] }, { signal });
  return { of: passed, unit, value: stage.values[at], dx: back.tensors.dx.data as Float32Array };
}

/** Keeps a unit inside maps that may have become smaller. */
export function inside(unit: Unit, passed: Passed): Unit {
  const { channels, rows, cols } = unit.stage === "feature" ? passed.feature : passed.pooled;
  return { ...unit, channel: Math.min(unit.channel, channels - 1), row: Math.min(unit.row, rows - 1), col: Math.min(unit.col, cols - 1) };
}
