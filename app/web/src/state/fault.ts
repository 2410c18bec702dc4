/** Which part of a request a problem is about, in words of the page. */

import type { Issue } from "../client";
import { sentLetters } from "./layout";
import type { Spec } from "./spec";

const AXES = ["", "w", "hw", "dhw"];
const LETTERS: Readonly<Record<string, string>> = { N: "samples", C: "channels", O: "channels out", I: "channels in" };
/** A link may have any number of fields that there are not. */
const MOST = 3;

function axisOf(spec: Spec, name: string, axis: number): string {
  const letter = sentLetters(spec, name)?.[axis];
  return letter === undefined ? `axis ${axis}` : (LETTERS[letter] ?? `axis ${letter.toLowerCase()}`);
}

/** `stride, axis w` of a config, `x, channels` of a tensor's shape; empty where the problem names nothing. */
function placeOf(spec: Spec, [part, ...rest]: Issue["loc"]): string {
  if (part === undefined) return "";
  if (part !== "config") return [String(part), ...rest.slice(1).map((axis) => axisOf(spec, String(part), Number(axis)))].join(", ");
  const [name, axis, side] = rest;
  const found = [String(name ?? part)];
  if (typeof axis === "number") found.push(`axis ${AXES[spec.dims][axis] ?? axis}`);
  else if (axis !== undefined) found.push(axis);
  if (side !== undefined) found.push(name === "padding" ? (side === 0 ? "low" : "high") : String(side));
  return found.join(", ");
}

function one(spec: Spec, { loc, msg, expected }: Issue): string {
  const place = placeOf(spec, Array.isArray(loc) ? loc : []);
  const wanted = expected === undefined || expected === null ? "" : ` (${String(expected)})`;
  return `${place ? `${place}: ` : ""}${msg}${wanted}`;
}

/** What a service that refused `spec` has against it: each field with its reason and what was expected. */
export function faults(spec: Spec, issues: readonly Issue[]): string {
  const more = issues.length > MOST ? `; and ${issues.length - MOST} more` : "";
  return issues.slice(0, MOST).map((issue) => one(spec, issue)).join("; ") + more;
}
