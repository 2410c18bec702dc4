/** What an answer of the service says: its body, what went wrong, and how long each stage took. */

import { decode } from "@msgpack/msgpack";
import { type Problem, ProblemError, ProtocolError } from "./errors";

/** Catalogue routes may answer in JSON whatever was asked for; the media type says which it is. */
export function map(response: Response, bytes: Uint8Array): Record<string, unknown> {
  try {
    const json = response.headers.get("content-type")?.includes("json");
    const value: unknown = json ? JSON.parse(new TextDecoder().decode(bytes)) : decode(bytes);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch (cause) {
    throw new ProtocolError("the answer cannot be read", { cause });
  }
  throw new ProtocolError("the answer is not a map");
}

export function problem(response: Response, bytes: Uint8Array): ProblemError {
  let said: Problem = { title: response.statusText };
  if (response.headers.get("content-type")?.includes("json")) {
    try {
      said = JSON.parse(new TextDecoder().decode(bytes)) as Problem;
    } catch {
      said = { title: response.statusText, detail: "and its explanation cannot be read" };
    }
  }
  const after = Number(response.headers.get("retry-after") ?? NaN);
  return new ProblemError(response.status, said, Number.isFinite(after) ? after : null);
}

/** `decode;dur=0.1, queue;dur=0.5` as milliseconds by name. */
export function stages(header: string | null): Record<string, number> {
  const found: Record<string, number> = {};
  for (const entry of header?.split(",") ?? []) {
    const [name, ...parameters] = entry.split(";").map((part) => part.trim());
    const duration = parameters.find((part) => part.startsWith("dur="));
    if (name && duration) found[name] = Number(duration.slice(4));
  }
  return found;
}
