/** Which channels of X and Y meet, and by which plane of the weight: with groups only those of one group do. */

import { SPACE } from "../math/layer";
import type { Cell, Pick } from "./app";
import type { Served } from "./served";
import { isConvolution } from "./spec";

interface Groups {
  readonly count: number;
  /** Channels of X and of Y in each group. */
  readonly c: number;
  readonly o: number;
}

/** Null where each channel is made of the same one of X. */
function groupsOf({ spec, layer }: Served): Groups | null {
  if (!isConvolution(spec.op)) return null;
  const count = typeof spec.config.groups === "number" ? spec.config.groups : 1;
  const { x, y } = layer.shapes;
  return { count, c: x![1] / count, o: y![1] / count };
}

/** The channel of the other side to show beside this one: `other`, or where that is of another group, its place in this one's. */
export function facing(served: Served, side: "c" | "o", channel: number, other: number): number {
  const groups = groupsOf(served);
  if (!groups) return channel;
  const [own, far] = side === "c" ? [groups.c, groups.o] : [groups.o, groups.c];
  return Math.floor(channel / own) * far + (other % far);
}

/** Two channels that meet: these, or where they are of different groups, the one that the chosen cell is of and one beside it. */
export function meeting(served: Served, c: number, o: number, chosen: Cell | null): { readonly c: number; readonly o: number } {
  const space = chosen && SPACE[chosen.role];
  const keeps = space === "y" || (space === "weight" && served.spec.op === "conv") ? "o" : "c";
  return keeps === "o" ? { c: facing(served, "o", o, c), o } : { c, o: facing(served, "c", c, o) };
}

/** First and second index of the weight's plane that a pair of channels meets by; the second is counted within the group. */
export function weightPlane(served: Served, { c, o }: Pick): readonly [number, number] {
  const inner = served.layer.shapes.weight![1];
  return served.spec.op === "conv" ? [o, c % inner] : [c, o % inner];
}

/** Which plane that is, and with groups which channel it belongs to; nothing where the weight has no other. */
export function planeWords(served: Served, pick: Pick): readonly string[] {
  const [outer, inner] = served.layer.shapes.weight!;
  if (outer * inner === 1) return [];
  const [first, second] = weightPlane(served, pick);
  const grouped = groupsOf(served)!.count > 1;
  if (served.spec.op === "conv") return [`o = ${first}, i = ${second}`, ...(grouped ? [`reads X channel ${pick.c}`] : [])];
  return [`i = ${first}, o = ${second}`, ...(grouped ? [`adds to Y channel ${pick.o}`] : [])];
}
