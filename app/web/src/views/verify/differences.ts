/**
 * Finite differences: (L(v + h) − L(v − h)) / 2h against the service's gradient, for L = ⟨dY, Y⟩, in
 * float64. A linear layer has no error of its own at any h, so h is large; others take a small one.
 */

import type { Client } from "../../client";
import { uniform } from "../../data/rng";
import type { Role } from "../../math/layer";
import { size } from "../../math/shape";
import type { Served } from "../../state/served";
import { isConvolution, meanOf } from "../../state/spec";
import { ask, forward, type Numbers } from "./ask";
import type { Check } from "./checks";
import { beyond, finite, INFINITE, skips } from "./kinks";

/** What a sum in float64 may lose, in parts of the size of its terms; they are many. */
const ROUNDING = 8 * 2 ** -52;
/** A check that allows more error than this would show nothing. */
const MOST_TOLERANCE = 1e-3;
const MOST_X = 24;
const MOST_PARAMETERS = 8;
const GRADIENT = { x: "dx", weight: "dweight", bias: "dbias" } as const;
const NAMES = { x: "dX", weight: "dW", bias: "db" } as const;

interface Method {
  readonly h: number;
  readonly tolerance: number;
}

/** Piecewise linear layers are as good as linear ones away from their kinks. */
function method(served: Served): Method {
  const { op, config } = served.spec;
  const smooth = op === "lp_pool" || op === "activation" || (isConvolution(op) && config.activation);
  return smooth ? { h: 1e-5, tolerance: 1e-6 } : { h: 1e-2, tolerance: 1e-9 };
}

/** Distinct coordinates, in an order that the seed decides. */
export function sample(count: number, most: number, seed: number): number[] {
  const next = uniform(seed);
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = 0; i < Math.min(most, count); i += 1) {
    const j = i + Math.floor(next() * (count - i));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order.slice(0, most);
}

/** Half of the coordinates are drawn where the gradient is not zero: elsewhere there is little to get wrong. */
function draw(gradient: Numbers, most: number, seed: number): number[] {
  const live = Array.from(gradient, (value, index) => (value === 0 ? -1 : index)).filter((index) => index >= 0);
  const first = sample(live.length, Math.ceil(most / 2), seed).map((at) => live[at]);
  const others = sample(gradient.length, most, seed + 1).filter((index) => !first.includes(index));
  return [...first, ...others].slice(0, Math.min(most, gradient.length));
}

/** L where one number is another, for each such change: copies of x travel as samples of one request, others one by one. */
async function losses(client: Client, served: Served, role: "x" | "weight" | "bias", changes: [number, number][], signal: AbortSignal): Promise<number[]> {
  const { spec, shapes, given } = served;
  const dy = given.dy!;
  const changed = (index: number, to: number) => {
    const copy = Float64Array.from(given[role]!);
    copy[index] = to;
    return copy;
  };
  const loss = (y: Numbers, from: number) => {
    let sum = 0;
    for (let i = 0; i < dy.length; i += 1) if (y[from + i] !== -Infinity) sum += dy[i] * y[from + i];
    return sum;
  };
  if (role === "x") {
    const many = { ...spec, samples: spec.samples * changes.length };
    const cells = size(shapes.x);
    const stacked = new Float64Array(cells * changes.length);
    changes.forEach(([index, to], at) => stacked.set(changed(index, to), at * cells));
    const tall = (shape: readonly number[]) => [shape[0] * changes.length, ...shape.slice(1)];
    const indices = given.indices && Float64Array.from({ length: stacked.length }, (_, i) => given.indices![i % cells]);
    const y = await forward(client, many, { ...shapes, x: tall(shapes.x), ...(indices ? { indices: tall(shapes.x) } : {}) },
      { ...given, x: stacked, ...(indices ? { indices } : {}) }, signal);
    return changes.map((_, at) => loss(y, at * dy.length));
  }
  const found: number[] = [];
  for (const [index, to] of changes) {
    found.push(loss(await forward(client, spec, shapes, { ...given, [role]: changed(index, to) }, signal), 0));
  }
  return found;
}

/** Why differences would say nothing of this layer and data, whatever the service answers; and else how exact they can be. */
function bounds(served: Served, role: "x" | "weight" | "bias", h: number): { reason: string } | { reach: number; rounding: number } {
  if (!finite(served)) return { reason: INFINITE };
  // The page's own sums: a wrong answer must not widen what is allowed.
  const [y, own] = [served.layer.compute("y"), served.layer.compute(GRADIENT[role])];
  if (beyond(y) || beyond(own)) return { reason: "Sums leave the range of float64." };
  const terms = y.reduce((sum, value, at) => (value === -Infinity ? sum : sum + Math.abs(value * served.given.dy![at])), 0);
  const lost = (ROUNDING * terms) / h;
  // Where the gradient is zero everywhere, what a step may lose is all there is to measure by.
  const reach = own.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || (2 * lost) / MOST_TOLERANCE || 1e-300;
  const rounding = lost / reach;
  if (rounding > MOST_TOLERANCE) return { reason: `The numbers are so large that what a step of ±${h} changes is lost in rounding.` };
  return { reach, rounding };
}

/** The largest error among coordinates, and where it is. */
function farthest(kept: readonly number[], slopes: readonly number[], gradient: Numbers, reach: number): { error: number; worst: number } {
  let error = 0;
  let worst = -1;
  kept.forEach((index, at) => {
    const off = Math.abs(slopes[at] - gradient[index]) / reach;
    if (!(off <= error)) [error, worst] = [Number.isNaN(off) ? Infinity : off, index];
  });
  return { error, worst };
}

export async function differences(
  client: Client, served: Served, role: "x" | "weight" | "bias", signal: AbortSignal, seed: number,
): Promise<Check> {
  const { h, tolerance: exact } = method(served);
  const mean = role === "x" ? null : meanOf(served.spec);
  const law = `Move one ${role === "x" ? "input" : role} by ±${h} and see how ⟨dY, Y⟩ changes${
    mean === null ? "" : `, divided by N = ${mean} as “grad_reduction: mean” asks`}.`;
  const named = { id: `differences-${role}`, title: `Finite differences of ${NAMES[role]}`, law };
  const gradient = (await ask(client, served.spec, served, "float64", signal))[GRADIENT[role]]!;
  const allowed = bounds(served, role, h);
  if ("reason" in allowed) return { ...named, passed: null, error: null, tolerance: exact, note: allowed.reason, worst: null };
  const { reach, rounding } = allowed;
  const tolerance = exact + rounding;
  const chosen = draw(gradient, role === "x" ? MOST_X : MOST_PARAMETERS, seed);
  const [up, down] = [1, -1].map((sign) => (index: number) => served.given[role]![index] + sign * h);
  // Beside a number too large for it a step is none.
  const kept = chosen.filter((index) => up(index) > down(index) && !skips(served, role, index, h));
  const changes = kept.flatMap((index): [number, number][] => [[index, up(index)], [index, down(index)]]);
  const values = changes.length > 0 ? await losses(client, served, role, changes, signal) : [];
  const slopes = kept.map((index, at) => (values[2 * at] - values[2 * at + 1]) / (up(index) - down(index)) / (mean ?? 1));
  const { error, worst } = farthest(kept, slopes, gradient, reach);
  const nonzero = kept.filter((index) => gradient[index] !== 0).length;
  const skipped = chosen.length - kept.length;
  const made: Role = GRADIENT[role];
  return {
    ...named, passed: !(error <= tolerance) ? false : nonzero > 0 ? true : null, error: kept.length > 0 ? error : null, tolerance,
    note: nonzero > 0 ? "" : "No gradient among them differs from zero, so this shows nothing. Try other contents or another seed.",
    worst: worst < 0 ? null : { role: made, index: worst },
    counts: { sampled: kept.length, nonzero, skipped },
  };
}
