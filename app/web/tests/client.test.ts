import { decode, encode } from "@msgpack/msgpack";
import { describe, expect, it } from "vitest";
import {
  AbortedError, Client, encodeRequest, ForeignError, fromWire, GatewayError, NetworkError, numbers, ProblemError, ProtocolError,
  stages, tensor, toWire, type WireTensor,
} from "../src/client";

const INFO = { operation: "conv", action: "forward", algorithm: "direct", padding: [[0, 0]], batch: {} };

interface Seen {
  url: string;
  init: RequestInit;
}

/** A fetch that answers with `body` and keeps what it was asked. */
function answering(body: BodyInit, init: ResponseInit = {}, seen: Seen[] = []): typeof fetch {
  return (async (url: string, request: RequestInit) => {
    seen.push({ url, init: request });
    request.signal?.throwIfAborted();
    return new Response(body, { headers: { "content-type": "application/vnd.msgpack" }, ...init });
  }) as typeof fetch;
}

describe("tensors", () => {
  it("come back equal from the wire, whatever their dtype", () => {
    const arrays = [
      Float32Array.of(1.5, NaN, -Infinity), Float64Array.of(Math.PI), Int8Array.of(-1, 2),
      Int16Array.of(-300), Int32Array.of(7), BigInt64Array.of(-5n), Uint8Array.of(255),
      Uint16Array.of(9), Uint32Array.of(2 ** 31), BigUint64Array.of(1n),
    ];
    for (const array of arrays) {
      const back = fromWire(decode(encode(toWire(tensor(array, [array.length])))) as WireTensor);
      expect(back.data).toEqual(array);
      expect(back.shape).toEqual([array.length]);
    }
  });

  it("are read from any alignment", () => {
    const bytes = new Uint8Array(4 * 3 + 1);
    bytes.set(new Uint8Array(Float32Array.of(1, 2, 3).buffer), 1);
    const back = fromWire({ dtype: "float32", shape: [3], data: bytes.subarray(1) });
    expect([...(back.data as Float32Array)]).toEqual([1, 2, 3]);
  });

  it("send only the part of a buffer that they are a view of", () => {
    const part = new Float32Array([0, 1, 2, 3]).subarray(1, 3);
    expect(toWire(tensor(part, [2])).data.byteLength).toBe(8);
  });

  it("read float16 and int64 as numbers", () => {
    const half = new Uint8Array(Uint16Array.of(0x3c00, 0xc000, 0x7c00, 0x0001).buffer);
    const back = fromWire({ dtype: "float16", shape: [4], data: half });
    expect([...(back.data as Float32Array)]).toEqual([1, -2, Infinity, 2 ** -24]);
    expect([...numbers(BigInt64Array.of(3n, -1n))]).toEqual([3, -1]);
  });

  it("refuse a shape that does not fit", () => {
    expect(() => tensor(Float32Array.of(1), [2])).toThrow("shape [2] has 2 cells, the data 1");
    expect(() => fromWire({ dtype: "complex64", shape: [0], data: new Uint8Array() })).toThrow(
      ProtocolError,
    );
  });
});

describe("client", () => {
  const x = tensor(Float32Array.of(1, 2), [1, 1, 2]);

  it("posts msgpack under the contract's path and reads the answer", async () => {
    const seen: Seen[] = [];
    const body = encode({ y: toWire(x), info: INFO });
    const fetch = answering(body, {
      headers: {
        "content-type": "application/vnd.msgpack", "x-request-id": "r1",
        "server-timing": "decode;dur=0.25, compute;dur=3",
      },
    }, seen);
    const client = new Client("http://host/base", { fetch, key: "k" });
    const answer = await client.forward("conv", { config: { stride: 1 }, tensors: { x } }, { deadlineMs: 9.5 });
    expect(seen[0].url).toBe("http://host/base/v1/conv/forward");
    expect(seen[0].init.headers).toEqual({
      accept: "application/vnd.msgpack", "content-type": "application/vnd.msgpack",
      authorization: "Bearer k", "x-deadline-ms": "10",
    });
    expect(answer.tensors.y.data).toEqual(x.data);
    expect(answer.info.algorithm).toBe("direct");
    expect(answer.transfer).toMatchObject({
      requestId: "r1", stages: { decode: 0.25, compute: 3 }, received: body.length,
    });
  });

  it("asks for a key that changes with each request", async () => {
    const seen: Seen[] = [];
    const keys = ["first", "second", null];
    const client = new Client("/", { fetch: answering(encode({}), {}, seen), key: () => keys.shift() ?? null });
    for (let i = 0; i < 3; i += 1) await client.limits();
    expect(seen.map(({ init }) => (init.headers as Record<string, string>).authorization)).toEqual(["Bearer first", "Bearer second", undefined]);
  });

  it("turns a problem into a typed error with its issues and Retry-After", async () => {
    const said = { title: "Busy", detail: "queue full", errors: [{ loc: ["x"], msg: "no" }] };
    const headers = { "content-type": "application/problem+json", "retry-after": "2" };
    const client = new Client("/", { fetch: answering(JSON.stringify(said), { status: 503, headers }) });
    const error = await client.forward("conv", { tensors: { x } }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({ status: 503, retryAfter: 2, temporary: true, message: "queue full" });
    expect((error as ProblemError).issues[0].loc).toEqual(["x"]);
  });

  it("tells a lost connection, an ended call and nonsense apart", async () => {
    const lost = new Client("/", { fetch: () => Promise.reject(new TypeError("fetch failed")) });
    await expect(lost.limits()).rejects.toBeInstanceOf(NetworkError);
    const ended = new Client("/", { fetch: answering("") });
    await expect(ended.limits({ signal: AbortSignal.abort() })).rejects.toBeInstanceOf(AbortedError);
    for (const body of [new Uint8Array([0xc1]), encode([1]), encode({ y: 3, info: INFO }), encode({})]) {
      const odd = new Client("/", { fetch: answering(body) });
      await expect(odd.forward("conv", { tensors: {} })).rejects.toBeInstanceOf(ProtocolError);
    }
  });

  it("tells a server on the way, and a page of somebody else's, from the service", async () => {
    const html = { "content-type": "text/html; charset=utf-8" };
    for (const status of [502, 503, 504]) {
      const client = new Client("/", { fetch: answering("<h1>Bad</h1>", { status, statusText: "Bad", headers: { ...html, "retry-after": "3" } }) });
      const error = await client.limits().catch((e: unknown) => e);
      expect(error).toBeInstanceOf(GatewayError);
      expect(error).toBeInstanceOf(NetworkError);
      expect(error).toMatchObject({ retryAfter: 3, message: `a server on the way to it says ${status} Bad` });
    }
    const own = new Client("/", { fetch: answering("{}", { status: 502, headers: { "content-type": "application/problem+json" } }) });
    await expect(own.limits()).rejects.toBeInstanceOf(ProblemError);
    const page = new Client("/", { fetch: answering("<h1>Log in</h1>", { headers: html }) });
    const foreign = await page.limits().catch((e: unknown) => e);
    expect(foreign).toBeInstanceOf(ForeignError);
    expect(foreign).toMatchObject({ message: "the answer is text/html, as of a proxy or a login page" });
    const damaged = await new Client("/", { fetch: answering("<") }).limits().catch((e: unknown) => e);
    expect(damaged).not.toBeInstanceOf(ForeignError);
  });

  it("encodes a request as one map of config, tensors and wants", () => {
    const body = decode(encodeRequest({ config: { groups: 2 }, tensors: { x }, wants: ["dx"] }));
    expect(body).toMatchObject({
      config: { groups: 2 }, wants: ["dx"], x: { dtype: "float32", shape: [1, 1, 2] },
    });
  });

  it("reads Server-Timing however it is spaced", () => {
    expect(stages("a;dur=1 ,b; desc=x; dur=2,c")).toEqual({ a: 1, b: 2 });
    expect(stages(null)).toEqual({});
  });
});
