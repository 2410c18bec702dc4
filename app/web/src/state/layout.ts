/** Orders of axes. The page thinks in N C and O I (I O when transposed); a chosen layout is met at the wire. */

import type { Spec } from "./spec";

const SPATIAL = ["", "W", "HW", "DHW"];

interface Orders {
  /** Letters in the page's own order, and in the order that is sent. */
  readonly own: string;
  readonly sent: string;
}

function orders(spec: Pick<Spec, "op" | "dims" | "config">, name: string): Orders | null {
  const spatial = SPATIAL[spec.dims];
  const last = spec.config.layout === `N${spatial}C`;
  if (["x", "y", "dx", "dy", "indices"].includes(name)) {
    return { own: `NC${spatial}`, sent: last ? `N${spatial}C` : `NC${spatial}` };
  }
  if (name !== "weight" && name !== "dweight") return null;
  const own = (spec.op === "conv_transpose" ? "IO" : "OI") + spatial;
  const chosen = spec.config.weight_layout;
  return { own, sent: typeof chosen === "string" ? chosen : last ? `${spatial}IO` : own };
}

/** Letters of a tensor's axes as it is sent; undefined where they have none. */
export function sentLetters(spec: Spec, name: string): string | undefined {
  return orders(spec, name)?.sent;
}

function order(from: string, to: string): number[] | null {
  if (from === to || [...from].sort().join() !== [...to].sort().join()) return null;
  return [...to].map((letter) => from.indexOf(letter));
}

export function sentShape(spec: Spec, name: string, shape: readonly number[]): number[] {
  const letters = orders(spec, name);
  const axes = letters && order(letters.own, letters.sent);
  return axes ? axes.map((axis) => shape[axis]) : [...shape];
}

export function ownShape(spec: Spec, name: string, shape: readonly number[]): number[] {
  const letters = orders(spec, name);
  const axes = letters && order(letters.sent, letters.own);
  return axes ? axes.map((axis) => shape[axis]) : [...shape];
}

type Array32 = Float32Array | Float64Array | BigInt64Array;

/** `data` of shape `shape` with its axes in another order. */
export function permute<A extends Array32>(data: A, shape: readonly number[], axes: readonly number[]): A {
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  const moved = axes.map((axis) => ({ extent: shape[axis], stride: strides[axis] }));
  const out = data.slice() as A;
  const at = new Array<number>(axes.length).fill(0);
  let from = 0;
  for (let to = 0; to < out.length; to += 1) {
    out[to] = data[from];
    for (let axis = axes.length - 1; axis >= 0; axis -= 1) {
      at[axis] += 1;
      from += moved[axis].stride;
      if (at[axis] < moved[axis].extent) break;
      from -= moved[axis].stride * moved[axis].extent;
      at[axis] = 0;
    }
  }
  return out;
}

/** From the page's order to the one that is sent. */
export function toSent<A extends Array32>(spec: Spec, name: string, data: A, own: readonly number[]): A {
  const letters = orders(spec, name);
  const axes = letters && order(letters.own, letters.sent);
  return axes ? permute(data, own, axes) : data;
}

/** From the order that came back to the page's own. */
export function toOwn<A extends Array32>(spec: Spec, name: string, data: A, sent: readonly number[]): A {
  const letters = orders(spec, name);
  const axes = letters && order(letters.sent, letters.own);
  return axes ? permute(data, sent, axes) : data;
}
