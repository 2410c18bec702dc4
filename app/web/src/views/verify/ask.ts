/** One request of backward for the checks, in either precision, with tensors changed as they need. */

import type { Client } from "../../client";
import type { Given, Role } from "../../math/layer";
import { received, type Served, sentTensors, type Shapes } from "../../state/served";
import type { Spec } from "../../state/spec";

export type Numbers = ArrayLike<number>;
export type Dtype = "float32" | "float64";

const MAKERS = { float32: (data: Numbers) => Float32Array.from(data), float64: (data: Numbers) => Float64Array.from(data) };

export async function ask(
  client: Client, spec: Spec, served: Served, dtype: Dtype, signal: AbortSignal,
): Promise<Partial<Record<Role, Float32Array | Float64Array>>> {
  const given: Given = { ...served.given };
  if (!spec.bias) delete given.bias;
  const wants = ["y", "dx", ...(given.weight ? ["dweight"] : []), ...(given.bias ? ["dbias"] : [])];
  const request = { config: spec.config, tensors: sentTensors(spec, served.shapes, given, MAKERS[dtype]), wants };
  const { tensors } = await client.backward(spec.op, request, { signal });
  return Object.fromEntries(Object.entries(tensors).map(([name, value]) => [name, received(spec, name, value)]));
}

/** y of changed tensors, in float64. */
export async function forward(
  client: Client, spec: Spec, shapes: Shapes, given: Given, signal: AbortSignal,
): Promise<Float32Array | Float64Array> {
  const { dy: _, ...inputs } = given;
  const request = { config: spec.config, tensors: sentTensors(spec, shapes, inputs, MAKERS.float64) };
  const { tensors } = await client.forward(spec.op, request, { signal });
  return received(spec, "y", tensors.y);
}
