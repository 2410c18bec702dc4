/**
 * A client of Convoke's HTTP contract in msgpack. Depends on `@msgpack/msgpack` alone; copy this folder
 * into another frontend and it works there.
 *
 *     const convoke = new Client("https://example.org/");
 *     const { tensors } = await convoke.forward("conv", { config: { stride: 2 }, tensors: { x, weight } });
 *     tensors.y.data   // a Float32Array
 */

import { encode } from "@msgpack/msgpack";
import { AbortedError, NetworkError, ProtocolError } from "./errors";
import { map, problem, stages } from "./response";
import { fromWire, isWire, type Tensor, toWire } from "./tensor";

export const MSGPACK = "application/vnd.msgpack";

export type Action = "forward" | "backward";

export interface Request {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly tensors: Readonly<Record<string, Tensor>>;
  /** backward only; absent: every gradient that the given tensors allow. */
  readonly wants?: readonly string[];
}

export interface Info {
  readonly operation: string;
  readonly action: string;
  readonly algorithm: string;
  readonly padding: readonly (readonly [number, number])[];
  readonly batch: { readonly requests: number; readonly rows: number };
}

export interface Answer {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly info: Info;
  readonly transfer: Transfer;
}

export interface Transfer {
  readonly requestId: string | null;
  /** The service's own stages in milliseconds, from `Server-Timing`. */
  readonly stages: Readonly<Record<string, number>>;
  /** From call to decoded answer, in milliseconds. */
  readonly elapsed: number;
  readonly sent: number;
  readonly received: number;
}

export interface Plan {
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly padding: readonly (readonly [number, number])[];
  readonly receptive_field: readonly number[];
  readonly flops: { readonly forward: number; readonly backward: number };
  readonly bytes: { readonly inputs: number; readonly outputs: number; readonly workspace: number };
  readonly algorithm: string;
}

export interface PlanRequest {
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: Readonly<Record<string, readonly number[]>>;
  readonly dtype: string;
}

export interface Options {
  readonly signal?: AbortSignal;
  /** The service drops or stops the work after this many milliseconds. */
  readonly deadlineMs?: number;
}

export interface ClientOptions {
  /** Sent with every request; a function is asked for it each time. */
  readonly key?: string | (() => string | null);
  readonly fetch?: typeof fetch;
}

/** The body of a request, byte for byte as it is sent. */
export function encodeRequest({ config, tensors, wants }: Request): Uint8Array<ArrayBuffer> {
  const body: Record<string, unknown> = config ? { config } : {};
  for (const [name, value] of Object.entries(tensors)) body[name] = toWire(value);
  if (wants) body.wants = wants;
  return encode(body, { ignoreUndefined: true });
}

export class Client {
  private readonly base: string;
  private readonly fetch: typeof fetch;

  /** @param base where the service's root is; a missing slash at its end is added. */
  constructor(base: string, private readonly options: ClientOptions = {}) {
    this.base = base.endsWith("/") ? base : `${base}/`;
    this.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  forward(operation: string, request: Request, options?: Options): Promise<Answer> {
    return this.compute(operation, "forward", request, options);
  }

  backward(operation: string, request: Request, options?: Options): Promise<Answer> {
    return this.compute(operation, "backward", request, options);
  }

  async plan(operation: string, request: PlanRequest, options?: Options): Promise<Plan> {
    const { value } = await this.send(this.path(operation, "plan"), encode(request), options);
    return value as unknown as Plan;
  }

  async operations(options?: Options): Promise<Record<string, unknown>> {
    return (await this.send("v1/operations", null, options)).value;
  }

  async limits(options?: Options): Promise<Record<string, unknown>> {
    return (await this.send("v1/limits", null, options)).value;
  }

  async version(options?: Options): Promise<Record<string, unknown>> {
    return (await this.send("version", null, options)).value;
  }

  private path(operation: string, action: string): string {
    return `v1/${encodeURIComponent(operation)}/${action}`;
  }

  private async compute(
    operation: string, action: Action, request: Request, options?: Options,
  ): Promise<Answer> {
    const { value, transfer } = await this.send(
      this.path(operation, action), encodeRequest(request), options,
    );
    const { info, ...rest } = value;
    if (typeof info !== "object" || info === null) throw new ProtocolError("the answer has no info");
    const tensors: Record<string, Tensor> = {};
    for (const [name, entry] of Object.entries(rest)) {
      if (!isWire(entry)) throw new ProtocolError(`${name} of the answer is no tensor`);
      tensors[name] = fromWire(entry);
    }
    return { tensors, info: info as Info, transfer };
  }

  private async send(
    path: string, body: Uint8Array<ArrayBuffer> | null, options: Options = {},
  ): Promise<{ value: Record<string, unknown>; transfer: Transfer }> {
    const started = performance.now();
    let response: Response;
    let bytes: Uint8Array;
    try {
      response = await this.fetch(this.base + path, {
        method: body ? "POST" : "GET",
        headers: this.headers(body !== null, options),
        body,
        signal: options.signal,
      });
      bytes = new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      if (options.signal?.aborted) throw new AbortedError("the call was ended", { cause });
      throw new NetworkError("the service did not answer", { cause });
    }
    if (!response.ok) throw problem(response, bytes);
    const transfer: Transfer = {
      requestId: response.headers.get("x-request-id"),
      stages: stages(response.headers.get("server-timing")),
      elapsed: performance.now() - started,
      sent: body?.byteLength ?? 0,
      received: bytes.byteLength,
    };
    return { value: map(response, bytes), transfer };
  }

  private headers(hasBody: boolean, options: Options): Record<string, string> {
    const headers: Record<string, string> = { accept: MSGPACK };
    if (hasBody) headers["content-type"] = MSGPACK;
    const key = typeof this.options.key === "function" ? this.options.key() : this.options.key;
    if (key) headers.authorization = `Bearer ${key}`;
    if (options.deadlineMs) headers["x-deadline-ms"] = String(Math.ceil(options.deadlineMs));
    return headers;
  }
}
