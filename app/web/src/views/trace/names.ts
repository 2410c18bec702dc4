/** What tensors are called. */

import { MADE, type Made, type Role, SPACE } from "../../math/layer";
import { position } from "../../math/shape";
import type { App } from "../../state/app";

/** Names as they are written. */
export const SYMBOL: Record<Role, string> = {
  x: "X", weight: "W", bias: "b", indices: "I", y: "Y", dy: "dY", dx: "dX", dweight: "dW", dbias: "db",
};

export const IN_WORDS: Record<Role, string> = {
  x: "input", weight: "weights", bias: "bias", indices: "indices", y: "output",
  dy: "output gradient", dx: "input gradient", dweight: "weight gradient", dbias: "bias gradient",
};

/** `[0, 1, 2, 2]` with as many places as the tensor has. */
export function placeOf(app: App, role: Role, index: number): string {
  const shape = app.shapes()[role]!;
  const dims = app.session.served()!.spec.dims;
  return SPACE[role] === "bias" ? `${index}` : position(shape, index, dims).join(", ");
}

export function isMade(role: Role): role is Made {
  return (MADE as readonly string[]).includes(role);
}
