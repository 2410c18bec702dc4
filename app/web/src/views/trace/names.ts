/** What tensors are called. */

import { MADE, type Made, type Role } from "../../math/layer";

/** Names as they are written. */
export const SYMBOL: Record<Role, string> = {
  x: "X", weight: "W", bias: "b", indices: "I", y: "Y", dy: "dY", dx: "dX", dweight: "dW", dbias: "db",
};

export const IN_WORDS: Record<Role, string> = {
  x: "input", weight: "weights", bias: "bias", indices: "indices", y: "output",
  dy: "output gradient", dx: "input gradient", dweight: "weight gradient", dbias: "bias gradient",
};

export function isMade(role: Role): role is Made {
  return (MADE as readonly string[]).includes(role);
}
