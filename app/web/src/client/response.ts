/** What an answer of the service says: its body, what went wrong, and how long each stage took. */

import { decode } from "@msgpack/msgpack";
import { ForeignError, GatewayError, type Problem, ProblemError, ProtocolError } from "./errors";

const typeOf = (response: Response) => response.headers.get("content-type") ?? "";

/** Catalogue routes may answer in JSON whatever was asked for; the media type says which it is. */
export function map(response: Response, bytes: Uint8Array): Record<string, unknown> {
  const type = typeOf(response);
  // A proxy's page, or that of a network which wants a login first.
  if (/^text\/|\bhtml\b/.test(type)) throw new ForeignError(`the answer is ${type.split(";")[0]}, as of a proxy or a login page`);
  try {
    const json = type.includes("json");
    const value: unknown = json ? JSON.parse(new TextDecoder().decode(bytes)) : decode(bytes);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch (cause) {
    throw new ProtocolError("the answer cannot be read", { cause });
  }
  throw new ProtocolError("the answer is not a map");
}

/** What a server in front of the service answers for it, where it gets nothing from there: the service's own have a problem's body. */
const GATEWAY = [502, 503, 504];

export function problem(response: Response, bytes: Uint8Array): ProblemError | GatewayError {
  let said: Problem = { title: response.statusText };
  const after = Number(response.headers.get("retry-after") ?? NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  const json = typeOf(response).includes("json");
  if (!json && GATEWAY.includes(response.status)) return new GatewayError(response.status, response.statusText, retryAfter);
  if (json) {
    try {
      said = JSON.parse(new TextDecoder().decode(bytes)) as Problem;
    } catch {
      said = { title: response.statusText, detail: "and its explanation cannot be read" };
    }
  }
  return new ProblemError(response.status, said, retryAfter);
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
