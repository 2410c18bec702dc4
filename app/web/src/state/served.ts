/** From a layer's spec to the service's answer, and the two together as one value. */

import { type Client, type Info, numbers, type Plan, tensor, type Tensor, type Transfer } from "../client";
import { realise, realiseIndices } from "../data/fill";
import { buildLayer } from "../math/build";
import type { Given, Layer, Made, Role } from "../math/layer";
import { ownShape, sentShape, toOwn, toSent } from "./layout";
import { givenShapes, type Spec } from "./spec";

export type Shapes = Readonly<Record<string, readonly number[]>>;

/** Everything a picture is made of: asked and answered, consistent with itself. */
export interface Served {
  readonly spec: Spec;
  /** As it was resolved: one pair for each spatial axis. */
  readonly padding: Info["padding"];
  /** In the page's own order of axes. */
  readonly shapes: Shapes;
  readonly given: Given;
  readonly made: Readonly<Partial<Record<Made, Float32Array>>>;
  readonly layer: Layer;
  readonly read: Uint8Array;
  readonly info: Info;
  readonly transfer: Transfer;
}

export type Action = "forward" | "backward";

/** Config as it is sent with a request of backward: what only forward's answer has is left out. */
export function sentConfig(spec: Spec): Record<string, unknown> {
  return { ...spec.config };
}

export function planRequest(spec: Spec) {
  const shapes: Record<string, number[]> = {};
  for (const [name, shape] of Object.entries(givenShapes(spec))) shapes[name] = sentShape(spec, name, shape);
  return { config: sentConfig(spec), shapes, dtype: "float32" };
}

export async function askPlan(client: Client, spec: Spec, signal: AbortSignal): Promise<Plan> {
  return client.plan(spec.op, planRequest(spec), { signal });
}

/** The output's shape, in the page's order. */
export function plannedOutput(spec: Spec, plan: Plan): readonly number[] {
  return ownShape(spec, "y", plan.shapes.y);
}

/** Numbers of the given tensors, in the page's order. */
export function realiseAll(spec: Spec, shapes: Shapes): Given {
  const given: Given = {
    x: realise(spec.fills.x, shapes.x),
    dy: realise(spec.fills.dy, shapes.dy),
  };
  if (shapes.weight) given.weight = realise(spec.fills.weight, shapes.weight);
  if (shapes.bias) given.bias = realise(spec.fills.bias, shapes.bias);
  if (shapes.indices) given.indices = realiseIndices(spec.fills.indices, shapes.x, shapes.y.slice(2));
  return given;
}

type Float = Float32Array | Float64Array;

/** The tensors as they are sent: `indices` as int64, axes in the layout that was chosen. */
export function sentTensors(
  spec: Spec, shapes: Shapes, given: Given, convert: (data: ArrayLike<number>) => Float = (data) => Float32Array.from(data),
): Record<string, Tensor> {
  const sent: Record<string, Tensor> = {};
  for (const [name, values] of Object.entries(given)) {
    const data = name === "indices"
      ? BigInt64Array.from(Array.from(values as ArrayLike<number>, BigInt))
      : convert(values as ArrayLike<number>);
    sent[name] = tensor(toSent(spec, name, data, shapes[name]), sentShape(spec, name, shapes[name]));
  }
  return sent;
}

/** An answer's tensor in the page's order; int64 becomes plain numbers. */
export function received(spec: Spec, name: string, value: Tensor): Float {
  const { data } = value;
  const floats = data instanceof Float32Array || data instanceof Float64Array ? data : numbers(data);
  return toOwn(spec, name, floats, value.shape);
}

export function wanted(spec: Spec): Made[] {
  const made: Made[] = ["y", "dx"];
  if (givenShapes(spec).weight) made.push("dweight");
  if (spec.bias && givenShapes(spec).bias) made.push("dbias");
  return made;
}

/**
 * Unpooling's gradient needs no x, but its output does.
 *
 * @param output the shape of y, which the service refuses where it is not the layer's.
 */
export async function serve(client: Client, spec: Spec, output: readonly number[], signal: AbortSignal): Promise<Served> {
  const shapes: Shapes = { ...givenShapes(spec), y: output, dy: output };
  const given = realiseAll(spec, shapes);
  const request = { config: sentConfig(spec), tensors: sentTensors(spec, shapes, given), wants: wanted(spec) };
  const { tensors, info, transfer } = await client.backward(spec.op, request, { signal });
  const made: Partial<Record<Made, Float32Array>> = {};
  for (const name of wanted(spec)) {
    made[name] = Float32Array.from(received(spec, name, tensors[name]));
  }
  const layer = buildLayer(spec.op, spec.config, { shapes, padding: info.padding, algorithm: info.algorithm }, given);
  return { spec, padding: info.padding, shapes, given, made, layer, read: layer.read(), info, transfer };
}

/** Any role's numbers. */
export function valuesOf(served: Served, role: Role): ArrayLike<number> | undefined {
  return served.given[role] ?? (role in served.made ? served.made[role as Made] : undefined);
}
