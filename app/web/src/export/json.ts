/** The whole layer as a file: the state as in a link, and every tensor's numbers, given and made. */

import { fill } from "../data/fill";
import { size } from "../math/shape";
import type { App } from "../state/app";
import { apply } from "../state/address";
import { valuesOf } from "../state/served";
import { CAPS, type Editable, givenShapes } from "../state/spec";
import { linkedOf, readHash, writeHash } from "../state/url";
import { MADE, type Role } from "../math/layer";

const GIVEN: readonly Editable[] = ["x", "weight", "bias", "indices", "dy"];

interface Saved {
  readonly shape: readonly number[];
  readonly data: readonly (number | string)[];
}

function words(value: number): number | string {
  return Number.isFinite(value) ? value : Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

export function toJson(app: App): Blob {
  const served = app.session.served()!;
  const tensors: Record<string, Saved> = {};
  for (const role of [...GIVEN, ...MADE] as Role[]) {
    const values = valuesOf(served, role);
    const shape = served.shapes[role] ?? served.shapes[role.slice(1)];
    if (values && shape) tensors[role] = { shape, data: Array.from(values, words) };
  }
  const whole = { operation: served.spec.op, config: served.spec.config, state: writeHash(linkedOf(app, served.spec)), tensors };
  return new Blob([JSON.stringify(whole, null, 1)], { type: "application/json" });
}

/** Reads such a file back; false where it is none. */
export async function openJson(app: App, file: Blob): Promise<boolean> {
  try {
    const whole = JSON.parse(await file.text()) as { state?: unknown; tensors?: Record<string, Saved> };
    if (typeof whole.state !== "string") return false;
    const linked = readHash(whole.state);
    const shapes = givenShapes(linked.spec);
    const fills = { ...linked.spec.fills };
    for (const name of GIVEN) {
      const data = whole.tensors?.[name]?.data;
      const expected = shapes[name] ? size(shapes[name]) : data?.length;
      if (name === "indices" || !Array.isArray(data) || data.length !== expected || data.length > CAPS.cells) continue;
      fills[name] = { ...fill("zeros"), data: Float32Array.from(data, Number) };
    }
    app.leap(() => apply(app, { ...linked, spec: { ...linked.spec, fills } }));
    return true;
  } catch {
    return false;
  }
}
