/** Checks that no single answer can pass by luck: laws that forward and backward obey only together. */

import type { Client } from "../../client";
import { count } from "../../core/format";
import { buildLayer } from "../../math/build";
import { type Layer, type Made, MADE, type Role } from "../../math/layer";
import { size } from "../../math/shape";
import { type Served, valuesOf } from "../../state/served";
import { isConvolution, meanOf } from "../../state/spec";
import { agrees, excused, same } from "../trace/agreement";
import { ask, type Dtype, type Numbers } from "./ask";
import { differences } from "./differences";
import { beyond, finite, HIDDEN, hidden, INFINITE, SHARED, shared } from "./kinks";

export interface Check {
  readonly id: string;
  readonly title: string;
  readonly law: string;
  /** null: shows nothing about this layer and data, for the reason in `note`. */
  readonly passed: boolean | null;
  readonly error: number | null;
  readonly tolerance: number;
  readonly note: string;
  readonly worst: { readonly role: Role; readonly index: number } | null;
  readonly counts?: { readonly sampled: number; readonly nonzero: number; readonly skipped: number };
}

const OWN_TOLERANCE = 1e-5;
export const ADJOINT_TOLERANCE = { float64: 1e-12, float32: 1e-5 } as const;

function dot(a: Numbers, b: Numbers): number {
  let sum = 0;
  // A window that covers nothing is −∞ and has no gradient: it takes no part.
  for (let i = 0; i < a.length; i += 1) if (a[i] !== -Infinity && b[i] !== -Infinity) sum += a[i] * b[i];
  return sum;
}

const norm = (a: Numbers) => Math.sqrt(dot(a, a));

/** Why the adjoint law would say nothing of this layer; null where it holds. */
function lawless(served: Served): string | null {
  if (served.spec.op === "activation") return "An activation alone is not linear; the finite differences below test it.";
  if (hidden(served)) return HIDDEN;
  if (shared(served)) return SHARED;
  return finite(served) ? null : INFINITE;
}

type Answer = Partial<Record<Role, Numbers>>;

/** Whether sums leave the dtype: in float64 the page's own, in float32 where the answer holds no number, and all such by right. */
function leaves(layer: Layer, dtype: Dtype, answer: Answer, roles: readonly Made[]): boolean {
  if (dtype === "float64") return roles.some((role) => beyond(layer.compute(role)));
  let some = false;
  for (const role of roles) {
    const values = answer[role]!;
    for (let i = 0; i < values.length; i += 1) {
      if (Number.isFinite(values[i])) continue;
      const of = layer.explain(role, i);
      // A window that covers nothing is −∞ by right.
      if (of.value === -Infinity) continue;
      if (!agrees(of, values[i])) return false;
      some = true;
    }
  }
  return some;
}

/** In parts of the tensor's size; ∞ where only one of them is a number. */
function distance(own: number, theirs: number, reach: number): number {
  if (same(own, theirs)) return 0;
  const off = Math.abs(own - theirs) / reach;
  return Number.isNaN(off) ? Infinity : off;
}

/** The page's own arithmetic, in float64, against each tensor that the service made. */
export function ownArithmetic(served: Served): Check[] {
  return MADE.filter((role) => role in served.made).map((role) => {
    const own = served.layer.compute(role);
    const theirs = valuesOf(served, role)!;
    // What float32 has no number for is no measure of the others.
    const reach = own.reduce((most, value) => (Number.isFinite(Math.fround(value)) ? Math.max(most, Math.abs(value)) : most), 0) || 1;
    let relative = 0;
    let at = 0;
    let skipped = 0;
    let why = "";
    for (let i = 0; i < own.length; i += 1) {
      const off = distance(own[i], theirs[i], reach);
      if (off <= relative) continue;
      // An explanation takes its time, and only what would be the worst needs one.
      const of = off > OWN_TOLERANCE ? served.layer.explain(role, i) : null;
      if (!of || !agrees(of, theirs[i])) [relative, at] = [off, i];
      else if (excused(of, theirs[i])) [skipped, why] = [skipped + 1, of.doubt!.why];
    }
    return {
      id: `own-${role}`, title: `${NAMES[role]}, cell by cell`,
      law: "The page works out every cell by itself, in float64, and compares.",
      passed: relative <= OWN_TOLERANCE, error: relative, tolerance: OWN_TOLERANCE,
      note: count(own.length, "cell") + (skipped ? `, ${skipped} left out: ${why}.` : ""), worst: relative === 0 ? null : { role, index: at },
    };
  });
}

const NAMES: Record<Made, string> = { y: "Y", dx: "dX", dweight: "dW", dbias: "db" };

/** ⟨dY, Y⟩ = ⟨dX, X⟩ and = ⟨dW, W⟩, without bias and activation, which are not linear. */
export async function adjoint(client: Client, served: Served, dtype: Dtype, signal: AbortSignal): Promise<Check[]> {
  const { spec } = served;
  const base = { tolerance: ADJOINT_TOLERANCE[dtype], worst: null };
  const laws: [Role, Made, string][] = [["x", "dx", "⟨dY, Y⟩ = ⟨dX, X⟩"]];
  if (isConvolution(spec.op)) laws.push(["weight", "dweight", "⟨dY, Y⟩ = ⟨dW, W⟩"]);
  const id = (role: Role) => `adjoint-${role}-${dtype}`;
  const reason = lawless(served);
  if (reason !== null) {
    return laws.map(([role, , law]) => ({
      ...base, id: id(role), title: `Adjoint law, ${dtype}`, law, passed: null, error: null,
      note: reason,
    }));
  }
  const linear = { ...spec, bias: false, config: isConvolution(spec.op) ? { ...spec.config, activation: null, grad_reduction: "sum" } : spec.config };
  const answer = await ask(client, linear, served, dtype, signal);
  const left = dot(served.given.dy!, answer.y!);
  const reach = norm(served.given.dy!) * norm(answer.y!) || 1;
  const { bias: _, ...given } = served.given;
  const layer = buildLayer(linear.op, linear.config, served, given);
  const whole = meanOf(spec);
  const without = [spec.bias && "bias", isConvolution(spec.op) && spec.config.activation && "activation"].filter(Boolean);
  return laws.map(([role, made, law]) => {
    const error = Math.abs(left - dot(answer[made]!, served.given[role]!)) / reach;
    const named = { ...base, id: id(role), title: `Adjoint law, ${dtype}`, law };
    if (leaves(layer, dtype, answer, ["y", made])) return { ...named, passed: null, error: null, note: `Sums leave the range of ${dtype}, which has no law beyond.` };
    return {
      ...named, error, passed: left === 0 && error === 0 ? null : error <= base.tolerance,
      note: left === 0 && error === 0
        ? "Both sides are zero, which proves nothing. Fill X and dY with something else."
        : [
          "relative to ‖dY‖·‖Y‖", without.length > 0 && `without ${without.join(" and ")}`,
          role === "weight" && whole !== null && `dW before its division by N = ${whole}, which “grad_reduction: mean” asks for`,
        ].filter(Boolean).join("; "),
    };
  });
}

export { differences };

/** Every check of the layer, as each becomes known. */
export async function verify(
  client: Client, served: Served, signal: AbortSignal, seed: number, found: (check: Check) => void,
): Promise<void> {
  ownArithmetic(served).forEach(found);
  for (const dtype of ["float64", "float32"] as const) {
    for (const check of await adjoint(client, served, dtype, signal)) found(check);
  }
  for (const role of ["x", "weight", "bias"] as const) {
    if (served.given[role] && size(served.shapes[role]) > 0) {
      found(await differences(client, served, role, signal, seed));
    }
  }
}
