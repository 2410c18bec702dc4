/** Where a layer has no gradient in the strict sense: ties, kinks, values that are written over. */

import { activation } from "../../math/activation";
import { size } from "../../math/shape";
import type { Served } from "../../state/served";
import { isConvolution } from "../../state/spec";

export const HIDDEN = "Some indices repeat: only the last input is written, yet each gets the gradient, as in PyTorch. That is no transpose.";

export const INFINITE = "The tensors hold numbers that are not finite.";

/** Whether the page's own numbers leave even float64, but for −∞, which a window that covers nothing is by right. */
export function beyond(values: ArrayLike<number>): boolean {
  return Array.from(values).some((value) => Number.isNaN(value) || value === Infinity);
}

export function finite({ given }: Served): boolean {
  return Object.values(given).every((values) => Array.from(values).every(Number.isFinite));
}

/** Whether unpooling writes another input over this one. */
function hiddenAt(served: Served, x: number): boolean {
  const { layer } = served;
  const [y] = layer.explain("x", x).lit.y;
  return !layer.explain("y", y).lit.x.has(x);
}

export function hidden(served: Served): boolean {
  if (served.spec.op !== "max_unpool") return false;
  return Array.from({ length: size(served.shapes.x) }, (_, x) => x).some((x) => hiddenAt(served, x));
}

export const SHARED = "Some maxima tie, and each of them gets the whole gradient, as “ties: all” asks. That is no transpose.";

/** Whether a window sends its gradient to more than one maximum. */
export function shared({ layer, shapes }: Served): boolean {
  return Array.from({ length: size(shapes.y) }, (_, y) => layer.winners(y)?.length ?? 0).some((winners) => winners > 1);
}

/** Whether moving x by h could change which input is a window's maximum. */
function nearTie(served: Served, index: number, h: number): boolean {
  const { layer, given: { x }, spec } = served;
  for (const term of layer.explain("x", index).terms) {
    const window = layer.explain("y", term.into!.index);
    const others = window.terms.map((one) => one.parts[0].index).filter((one) => one !== index).map((one) => x![one]);
    if (window.padding > 0 && spec.config.pad_value === "zero") others.push(0);
    if (others.some((other) => Math.abs(x![index] - other) <= 2 * h && other >= Math.max(...others) - 4 * h)) return true;
  }
  return false;
}

/** Whether a coordinate is too near to a kink, where a difference is no gradient. */
export function skips(served: Served, role: "x" | "weight" | "bias", index: number, h: number): boolean {
  const { op, config } = served.spec;
  const { x } = served.given;
  if (role === "x" && op.includes("max") && !op.includes("unpool")) return nearTie(served, index, h);
  if (op === "max_unpool") return hiddenAt(served, index);
  if (op === "lp_pool") return Math.abs(x![index]) <= 2 * h;
  const kinks = activation(op === "activation" ? config : isConvolution(op) ? config.activation : null)?.kinks ?? [];
  const near = (z: number, room: number) => kinks.some((kink) => Math.abs(z - kink) <= room);
  if (op === "activation") return near(x![index], 2 * h);
  if (kinks.length === 0) return false;
  return [...moves(served, role, index, h)].some(([y, by]) => near(served.layer.explain("y", y).total, Math.max(1e-3, 2 * by)));
}

/** How far a step moves each output before its activation. */
function moves(served: Served, role: "x" | "weight" | "bias", index: number, h: number): Map<number, number> {
  const found = new Map<number, number>();
  for (const { parts, into } of served.layer.explain(role, index).terms) {
    const partner = parts.find((part) => part.role !== role)?.value ?? 1;
    found.set(into!.index, (found.get(into!.index) ?? 0) + h * Math.abs(partner));
  }
  return found;
}
