/** The valid value nearest to one that was refused, found by asking the service's plan. */

import type { Kind } from "./kinds";

const REACH = 12;

/** Whole numbers by distance from `from`; at equal distance the smaller one first, but 1 before −1. */
function around(from: number, minimum: number): number[] {
  const found: number[] = [];
  for (let step = 1; step <= REACH; step += 1) {
    const both = from > 0 ? [from - step, from + step] : [from + step, from - step];
    found.push(...both.filter((value) => value >= minimum));
  }
  return found;
}

/** Values to try in place of `refused`, nearest first. */
export function candidates(kind: Kind, refused: unknown, otherwise: unknown): unknown[] {
  switch (kind.kind) {
    case "number":
    case "axes": {
      const minimum = kind.minimum === -Infinity ? 1 : kind.minimum;
      if (typeof refused === "number") return around(refused, minimum);
      if (!Array.isArray(refused)) return [otherwise];
      const whole = (refused as unknown[]).map((entry) => (typeof entry === "number" ? entry : minimum));
      const each = whole.flatMap((entry, axis) =>
        around(entry, minimum).map((value) => ({ axis, value, far: Math.abs(value - entry) })),
      );
      each.sort((a, b) => a.far - b.far);
      return each.map(({ axis, value }) => whole.map((entry, at) => (at === axis ? value : entry)));
    }
    case "padding": {
      const numbers = typeof refused === "number" ? around(refused, 0) : [0, 1, 2, 3];
      return [...numbers, ...kind.names.filter((name) => name !== refused)];
    }
    case "choice":
      return kind.options.filter((option) => option !== refused);
    case "flag":
      return [refused !== true];
    default:
      return [otherwise];
  }
}

/** The first of `values` that `accepts`; null where none of them does. */
export async function firstAccepted(
  values: readonly unknown[], accepts: (value: unknown) => Promise<boolean>,
): Promise<{ value: unknown } | null> {
  for (const value of values) if (await accepts(value)) return { value };
  return null;
}
