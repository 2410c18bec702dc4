/** The three pictures of this view, from the service. */

import { type Client, tensor } from "../../client";
import { fillPreset } from "../../data/presets";
import type { Board } from "../../state/app";

/** Side of the small input. */
export const SIDE = 6;

export interface Picture {
  readonly side: number;
  readonly values: Float32Array;
}

export interface Pictures {
  readonly board: Board;
  readonly transposed: Picture;
  readonly gradient: Picture;
  readonly resized: Picture;
}

const ones = (side: number) => tensor(new Float32Array(side * side).fill(1), [1, 1, side, side]);

function picture(data: unknown, shape: readonly number[]): Picture {
  return { side: shape[2], values: data as Float32Array };
}

export async function pictures(client: Client, board: Board, signal: AbortSignal): Promise<Pictures> {
  const { kernel, stride, padding } = board;
  const preset = board.weights === "ones" ? "ones" : "random";
  const weight = tensor(fillPreset(preset, [1, 1, kernel, kernel], 5), [1, 1, kernel, kernel]);
  const config = { stride, padding };
  const options = { signal };
  const x = ones(SIDE);
  const { y } = (await client.forward("conv_transpose", { config, tensors: { x, weight } }, options)).tensors;
  // A convolution of an input as large as y has outputs as large as x, so its dX is a picture like y.
  const input = tensor(new Float32Array(y.data.length), y.shape);
  const tensors = { x: input, weight, dy: x };
  const { dx } = (await client.backward("conv", { config, tensors, wants: ["dx"] }, options)).tensors;
  // Each pixel repeated: the transposed convolution whose windows just touch.
  const repeat = await client.forward("conv_transpose", { config: { stride }, tensors: { x, weight: ones(stride) } }, options);
  const smooth = await client.forward("conv", { config: { padding: "same" }, tensors: { x: repeat.tensors.y, weight } }, options);
  return {
    board,
    transposed: picture(y.data, y.shape),
    gradient: picture(dx.data, dx.shape),
    resized: picture(smooth.tensors.y.data, smooth.tensors.y.shape),
  };
}
