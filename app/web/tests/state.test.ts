import { afterEach, describe, expect, it, vi } from "vitest";
import { Client, type ConvokeError, ForeignError, GatewayError, NetworkError, ProblemError, ProtocolError } from "../src/client";
import { edited as editedAll, type Fill, fill, placed, realise, realiseIndices, within } from "../src/data/fill";
import { MOST_BYTES, packNumbers } from "../src/data/pack";
import { fillPreset, PRESETS } from "../src/data/presets";
import { isPacked, packFill, readFill, unpackFill, writeFill } from "../src/data/text";
import { fieldsOf, kindOf, WHOLE } from "../src/form/kinds";
import { candidates, firstAccepted } from "../src/form/nearest";
import { redimensioned, switched } from "../src/state/change";
import { keyFor, readKey } from "../src/state/key";
import { faults } from "../src/state/fault";
import { Latest } from "../src/state/latest";
import { permute, sentShape, toOwn, toSent } from "../src/state/layout";
import { Session } from "../src/state/session";
import { givenShapes, OPERATIONS, start, withField } from "../src/state/spec";
import { type Linked, readHash, writeHash } from "../src/state/url";

const LARGE = [16, 16, 8, 8];
const edited = (of: Fill, index: number, value: number, shape = LARGE) => editedAll(of, new Map([[index, value]]), shape);
/** As a link brings it: flat in whichever shape it is asked for. */
const plain = ({ shapes: _, ...rest }: Fill): Fill => rest;

describe("contents", () => {
  it("come back from their text, edits and raw numbers included", () => {
    const some = edited(edited(fill("random", 12), 3, -0.1), 0, 1e-9);
    expect(readFill(writeFill(some))).toEqual(plain(some));
    const raw = { ...fill("zeros"), data: Float32Array.of(1.1, NaN, -0) };
    expect([...realise(readFill(writeFill(raw))!, [1, 1, 3])].map(Object.is.bind(null, -0))).toEqual([false, false, true]);
    for (const bad of ["", "nope.1", "ones.x", "ones.1~a:b", "ones.1~-1:2", "raw:***", "raw:abc"]) {
      expect(readFill(bad), bad).toBeNull();
    }
  });

  it("come back from their text with every bit", () => {
    let some = fill("ones", 7);
    const values = [-0, 0.1, 1 / 3, 16777217, 3e-45, -1e38, Infinity];
    values.forEach((value, at) => {
      some = edited(some, at, value);
    });
    const read = readFill(writeFill(some))!;
    values.forEach((value, at) => expect(Object.is(read.edits.get(at), Math.fround(value)), String(value)).toBe(true));
    expect(writeFill(edited(fill("ones"), 3, 0.1))).toBe("ones.1~3:0.1");
    const both = edited({ ...fill("zeros"), data: Float32Array.of(1, 2, 3) }, 1, 9, [1, 1, 3]);
    expect([...realise(readFill(writeFill(both))!, [1, 1, 3])]).toEqual([1, 9, 3]);
  });

  it("are packed where they are many, and unpacked to the same bits", async () => {
    const data = fillPreset("random", [16, 16, 8, 8], 3);
    data[5] = NaN;
    data[6] = -0;
    const painted = [...Array(3000).keys()].reduce((of, at) => edited(of, 5000 - at, at < 5 ? 0.1 * at : 1), fill("ramp", 4));
    const some = [{ ...fill("zeros"), data }, painted, edited({ ...fill("zeros"), data }, 70, -0), { ...painted, data }];
    for (const of of some) {
      const text = await packFill(of);
      expect(isPacked(text)).toBe(true);
      expect(readFill(text)).toBeNull();
      expect(text.length).toBeLessThan(writeFill(of).length * 0.7);
      const read = (await unpackFill(text))!;
      expect([read.preset, read.seed]).toEqual(of.data ? ["zeros", 1] : [of.preset, of.seed]);
      const bits = (values: Float32Array) => new Uint32Array(values.slice().buffer);
      expect(bits(realise(read, [16, 16, 8, 8]))).toEqual(bits(realise(of, [16, 16, 8, 8])));
    }
    expect((await packFill(painted)).length).toBeLessThan(300);
    expect(await packFill(edited(fill("ones"), 1, 2))).toBe("ones.1~1:2");
  });

  it("that claim to be packed are refused where they are damaged, or too large", async () => {
    const good = await packFill({ ...fill("zeros"), data: fillPreset("random", [400], 3) });
    const bomb = await packNumbers(new Float32Array(MOST_BYTES / 4 + 1));
    expect(bomb.length).toBeLessThan(4000);
    const edits = await packFill([...Array(300).keys()].reduce((of, at) => edited(of, at * 7, at), fill("ones")));
    for (const bad of ["z:", "z:***", good.slice(0, -9), `z:${bomb}`, `nope.1~${edits.split("~")[1]}`, `ones.1~${good}`, `${good}~x`, `ones.1~z:${bomb}`, `${good}~z:`]) {
      expect(await unpackFill(bad), bad.slice(0, 40)).toBeNull();
    }
    expect(await unpackFill(`z:${await packNumbers(new Float32Array(MOST_BYTES / 4))}`)).not.toBeNull();
  });

  it("are the same bits for the same seed, and differ for others", () => {
    expect([...fillPreset("integers", [1, 1, 1, 6], 66)]).toEqual([-2, -3, -2, 2, 1, 3]);
    expect(fillPreset("random", [8], 1)).not.toEqual(fillPreset("random", [8], 2));
    for (const name of Object.keys(PRESETS) as (keyof typeof PRESETS)[]) {
      for (const shape of [[2, 3, 5], [2, 1, 4, 3], [1, 1, 2, 3, 3], [4]]) {
        const values = fillPreset(name, shape, 1);
        expect(values.length).toBe(shape.reduce((a, b) => a * b));
        expect(values.every(Number.isFinite)).toBe(true);
      }
    }
    expect([...fillPreset("sobelx", [1, 1, 3, 3], 1)]).toEqual([-1, 0, 1, -2, 0, 2, -1, 0, 1]);
  });

  it("keep the places of their cells in every shape; what is outside of one comes back with the next", () => {
    const typed = editedAll(fill("zeros"), new Map([[0, 1], [3, 2], [6, 3], [9, 4]]), [1, 2, 3, 2]);
    expect([...realise(typed, [1, 2, 3, 2])]).toEqual([1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0]);
    expect([...realise(typed, [1, 2, 2, 3])]).toEqual([1, 0, 0, 0, 2, 0, 3, 0, 0, 0, 4, 0]);
    expect([...realise(typed, [2, 1, 2, 2])]).toEqual([1, 0, 0, 2, 0, 0, 0, 0]);
    const more = editedAll(typed, new Map([[1, 8], [3, 9]]), [2, 1, 1, 2]);
    expect([...realise(more, [2, 1, 1, 2])]).toEqual([1, 8, 0, 9]);
    expect([...realise(more, [1, 2, 3, 2])]).toEqual([1, 8, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0]);
    expect([...realise(more, [2, 2, 1, 2])]).toEqual([1, 8, 3, 0, 0, 9, 0, 0]);
  });

  it("given as numbers keep their places, over the preset, under what is typed later", () => {
    const given = placed({ ...fill("ramp"), data: Float32Array.of(10, 11, 12, 13) }, [1, 1, 2, 2]);
    expect([...realise(given, [1, 1, 3, 3])]).toEqual([10, 11, 2, 12, 13, 5, 6, 7, 8]);
    expect([...realise(given, [1, 1, 1, 2])]).toEqual([10, 11]);
    const typed = editedAll(given, new Map([[3, 1], [8, 2]]), [1, 1, 3, 3]);
    expect([...realise(typed, [1, 1, 3, 3])]).toEqual([10, 11, 2, 1, 13, 5, 6, 7, 2]);
    expect([...realise(typed, [1, 1, 2, 2])]).toEqual([10, 11, 1, 13]);
    expect([...realise(placed({ ...fill("ones"), data: Float32Array.of(7) }, [1, 1, 2]), [1, 1, 1])]).toEqual([1]);
  });

  it("are written as what a shape shows, and nothing else", () => {
    const typed = edited(placed({ ...fill("ramp"), data: Float32Array.of(4, 5) }, [1, 1, 2]), 2, 6, [1, 1, 3]);
    for (const shape of [[1, 1, 1], [1, 1, 2], [1, 1, 3], [2, 1, 4]]) {
      const read = readFill(writeFill(within(typed, shape)))!;
      expect(realise(read, shape)).toEqual(realise(typed, shape));
      expect(within(read, shape)).toBe(read);
      expect(within(typed, shape)).toBe(within(typed, shape));
    }
    expect(writeFill(within(edited(fill("ones"), 5, 2, [1, 1, 2, 3]), [1, 1, 1, 3]))).toBe("ones.1");
  });

  it("typed as indices stay in their places, and the numbers that they are", () => {
    const typed = edited(fill("integers", 5), 3, 20, [1, 1, 2, 2]);
    expect(realiseIndices(typed, [1, 1, 3, 3], [7, 7])[4]).toBe(20);
    expect(realiseIndices(typed, [1, 1, 2, 2], [5, 5])[3]).toBe(20);
    expect(realiseIndices(typed, [1, 1, 2, 2], [4, 4])).toEqual(realiseIndices(fill("integers", 5), [1, 1, 2, 2], [4, 4]));
  });

  it("of indices point to distinct places inside the plane", () => {
    const indices = [...realiseIndices(fill("integers", 5), [1, 1, 3, 3], [7, 7])];
    expect(new Set(indices).size).toBe(9);
    expect(indices.every((index) => index >= 0 && index < 49)).toBe(true);
  });
});

describe("links", () => {
  const first = readHash("");
  const round = (linked: Linked) => readHash(writeHash(linked));

  it("bring back every part of the state", () => {
    for (const op of Object.keys(OPERATIONS)) {
      for (const dims of [1, 2, 3]) expect(round({ ...first, spec: start(op, dims) }).spec).toEqual(start(op, dims));
    }
    const changed: Linked = {
      ...first, view: "request", pinned: null, direction: "forward", step: 3,
      pick: { n: 1, c: 2, o: 0, xd: 0, yd: 1, kd: 0 }, board: { kernel: 5, stride: 3, padding: 1, weights: "random" },
      spec: { ...first.spec, bias: true, config: { stride: [2, 1], padding: "same" }, fills: { ...first.spec.fills, x: plain(edited(fill("ramp"), 2, 0.5)) } },
    };
    expect(round(changed)).toEqual(changed);
    expect(writeHash(first).length).toBeLessThan(40);
  });

  it("with invalid parts give the first state for those, and name them", () => {
    const hash = "#v=9&view=x&op=toString&dims=7&n=0&size=9999.1&config=[1]&x=zzz&cell=dx.1&pick=1&step=-1&board=9.9&image=no&way=up";
    const read = readHash(hash);
    expect({ ...read, ignored: [] }).toEqual({ ...first, ignored: [] });
    expect([...read.ignored].sort()).toEqual(
      ["v", "view", "op", "dims", "n", "size", "config", "x", "cell", "pick", "step", "board", "image", "way"].sort());
    expect(readHash(`#config={"__proto__":1,"a b":2,"stride":3}`).spec.config).toEqual({ stride: 3 });
  });
});

describe("another layer from this one", () => {
  it("keeps a value for each axis where the number of axes changes", () => {
    const pool = { ...start("max_pool"), config: { kernel: [2, 3], stride: 2, padding: [[0, 1], [1, 0]], layout: "NHWC" } };
    expect(redimensioned(pool, 3).config).toEqual({ kernel: [2, 2, 3], stride: 2, padding: [[0, 1], [0, 1], [1, 0]] });
    expect(redimensioned(pool, 1).config).toEqual({ kernel: [3], stride: 2, padding: [[1, 0]] });
    const adaptive = { ...start("adaptive_avg_pool"), config: { output_size: [2, null] } };
    expect(redimensioned(adaptive, 1).config).toEqual({ output_size: [null] });
    expect(redimensioned(start("max_unpool"), 3).config).toEqual({ output_size: [7, 7, 7] });
  });

  it("leaves out what would make it impossible", () => {
    const transposed = { ...start("conv_transpose"), config: { stride: 2, output_size: 10 } };
    expect(redimensioned(transposed, 1).config).toEqual({ stride: 2 });
    const wide = { ...start("max_pool"), channels: 3, config: { kernel: 7, stride: 1 } };
    expect(redimensioned(wide, 3)).toEqual({ ...start("max_pool", 3), channels: 3 });
    const small = { ...start("max_pool"), size: [2, 2], config: { kernel: 2 } };
    expect(switched(small, "avg_pool").size).toEqual([7, 7]);
    expect(switched(small, "adaptive_avg_pool").size).toEqual([2, 2]);
  });
});

describe("layouts", () => {
  it("permute to the wire and back", () => {
    const spec = { ...start("conv"), config: { layout: "NHWC" } };
    const shape = [1, 2, 3, 4];
    const data = Float32Array.from({ length: 24 }, (_, i) => i);
    expect(sentShape(spec, "x", shape)).toEqual([1, 3, 4, 2]);
    const sent = toSent(spec, "x", data, shape);
    expect([...sent.slice(0, 4)]).toEqual([0, 12, 1, 13]);
    expect(toOwn(spec, "x", sent, [1, 3, 4, 2])).toEqual(data);
    expect(sentShape(spec, "weight", [5, 2, 3, 1])).toEqual([3, 1, 2, 5]);
    expect(sentShape({ ...spec, config: { weight_layout: "HWIO" } }, "bias", [5])).toEqual([5]);
    expect([...permute(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3], [1, 0])]).toEqual([1, 4, 2, 5, 3, 6]);
  });

  it("shapes follow groups, each way round", () => {
    const conv = { ...start("conv"), channels: 4, outputs: 6, config: { groups: 2 }, bias: true };
    expect(givenShapes(conv)).toMatchObject({ weight: [6, 2, 3, 3], bias: [6] });
    expect(givenShapes({ ...conv, op: "conv_transpose" })).toMatchObject({ weight: [4, 3, 3, 3], bias: [6] });
    expect(withField(conv, "groups", 1, 1).config).toEqual({});
  });
});

describe("forms", () => {
  const integer = { type: "integer", minimum: 1 };

  it("know a field's kind from its schema alone", () => {
    const pair = { type: "array", items: { anyOf: [integer, { type: "array", items: integer }] } };
    expect(kindOf({ anyOf: [integer, { type: "array", items: integer }] })).toEqual({ kind: "axes", minimum: 1, nullable: false });
    expect(kindOf({ anyOf: [integer, pair, { enum: ["same"] }] })).toEqual({ kind: "padding", names: ["same"] });
    expect(kindOf({ enum: ["a", "b"] })).toEqual({ kind: "choice", options: ["a", "b"], nullable: false });
    expect(kindOf({ type: "boolean" })).toEqual({ kind: "flag" });
    expect(kindOf({ anyOf: [{ type: "number", exclusiveMinimum: 0 }, { type: "null" }] })).toMatchObject({ kind: "number", nullable: true, minimum: 0 });
    const named = { type: "object", description: "d", properties: { name: { const: "elu" }, alpha: { type: "number" } } };
    expect(kindOf({ anyOf: [{ enum: ["elu"] }, named] })).toMatchObject({ kind: "named", options: [{ name: "elu" }] });
    expect(fieldsOf({ config: { oneOf: [named] } })[0]).toMatchObject({ name: WHOLE, kind: { kind: "named" } });
    expect(kindOf({})).toEqual({ kind: "other" });
  });

  it("offer the nearest value that is accepted", async () => {
    const kind = { kind: "number", integer: true, minimum: 1, nullable: false } as const;
    expect(candidates(kind, 3, 1).slice(0, 4)).toEqual([2, 4, 1, 5]);
    expect(candidates({ ...kind, minimum: -9 }, 0, null).slice(0, 4)).toEqual([1, -1, 2, -2]);
    const accepts = async (value: unknown) => (value as number) % 4 === 0;
    expect(await firstAccepted(candidates(kind, 6, 1), accepts)).toEqual({ value: 4 });
    expect(await firstAccepted([1], accepts)).toBeNull();
    expect(candidates({ kind: "axes", minimum: 0, nullable: false }, [1, 5], 1)[0]).toEqual([0, 5]);
  });
});

describe("a service in trouble is asked again", () => {
  const session = () => new Session(new Client("http://nowhere/"), start("conv"));
  const wait = (of: Session, error: ConvokeError) => {
    of.report(error, () => undefined, of);
    return of.trouble()!.retryAt! - Date.now();
  };

  it("when it says, and later each time where it does not say", () => {
    vi.useFakeTimers();
    try {
      expect(wait(session(), new ProblemError(503, {}, 120))).toBe(120_000);
      expect(wait(session(), new ProblemError(429, {}, 0))).toBe(1000);
      expect(wait(session(), new ProblemError(503, {}, 1e9))).toBe(600_000);
      const one = session();
      const told = session();
      for (const one of [new ProblemError(401, {}, null), new ProblemError(403, { type: "/convoke/problems/forbidden" }, null)]) {
        told.report(one, () => undefined, told);
        expect(told.trouble()).toMatchObject({ kind: "key", retryAt: null });
      }
      told.report(new ProblemError(403, {}, null), () => undefined, told);
      expect(told.trouble()).toMatchObject({ kind: "problem", retryAt: null });
      expect(wait(session(), new GatewayError(503, "Unavailable", 7))).toBe(7000);
      for (const [error, kind] of [[new GatewayError(502, "Bad Gateway", null), "gateway"], [new ForeignError("a page"), "foreign"]] as const) {
        expect(wait(session(), error)).toBe(500);
        told.report(error, () => undefined, told);
        expect(told.trouble()).toMatchObject({ kind });
      }
      told.report(new ProtocolError("the answer is not a map"), () => undefined, told);
      expect(told.trouble()).toMatchObject({ kind: "problem", retryAt: null });
      expect([1, 2, 3, 4, 5, 6].map(() => wait(one, new NetworkError("gone")))).toEqual([500, 1000, 2000, 4000, 8000, 8000]);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("what was refused", () => {
  it("is named by its field, its axis and what was expected there", () => {
    const of = (loc: (string | number)[], config = {}) => faults({ ...start("conv", 2), config }, [{ loc, msg: "no", expected: 4 }]);
    expect(of(["config", "stride"])).toBe("stride: no (4)");
    expect(of(["config", "stride", 1])).toBe("stride, axis w: no (4)");
    expect(of(["config", "padding", 0, 1])).toBe("padding, axis h, high: no (4)");
    expect(of(["config", "activation", "alpha"])).toBe("activation, alpha: no (4)");
    expect(of(["x", "shape", 1])).toBe("x, channels: no (4)");
    expect(of(["x", "shape", 1], { layout: "NHWC" })).toBe("x, axis h: no (4)");
    expect(of(["weight", "shape", 1])).toBe("weight, channels in: no (4)");
    expect(of(["bias", "shape"])).toBe("bias: no (4)");
    expect(of([])).toBe("no (4)");
  });

  it("has all its fields, but for those of a long list", () => {
    const issue = (name: string) => ({ loc: ["config", name], msg: "no such field" });
    expect(faults(start("conv"), ["a", "b"].map(issue))).toBe("a: no such field; b: no such field");
    expect(faults(start("conv"), [..."abcde"].map(issue))).toMatch(/^a: .*; c: no such field; and 2 more$/);
    expect(faults(start("conv"), [])).toBe("");
  });

  const problem = { status: 422, errors: [{ loc: ["config", "stride"], msg: "no" }] };

  it("is settled by the value that there is, which is not asked for again", async () => {
    let asked = 0;
    const refusing = async () => {
      asked += 1;
      return Response.json(problem, { status: 422, headers: { "content-type": "application/problem+json" } });
    };
    const session = new Session(new Client("http://nowhere/", { fetch: refusing }), start("conv"));
    session.change((spec) => ({ ...spec, config: { stride: 3 } }), "stride");
    await vi.waitFor(() => expect(session.refusal()?.field).toBe("stride"));
    const before = asked;
    session.change((spec) => ({ ...spec, config: { stride: 3 } }), "stride");
    expect([session.refusal(), asked]).toEqual([null, before]);
    session.change((spec) => ({ ...spec, fills: { ...spec.fills, x: fill("ones") } }), "x");
    expect(asked).toBe(before + 1);
  });

  it("is told of no longer than to the next wish; that the page asks once more is none", () => {
    const session = new Session(new Client("http://nowhere/", { fetch: () => new Promise(() => undefined) }), start("conv"));
    let wishes = 0;
    session.onWish = () => (wishes += 1);
    session.want(start("max_pool"));
    session.change((spec) => ({ ...spec, samples: 2 }));
    session.change((spec) => ({ ...spec, samples: 2 }));
    session.retry();
    session.tryNow();
    expect(wishes).toBe(3);
  });
});

describe("a key", () => {
  it("that is missing says nothing of a layer: what would be accepted is not asked on and on", async () => {
    const refusing = async () => Response.json({}, { status: 401, headers: { "content-type": "application/problem+json" } });
    const session = new Session(new Client("http://nowhere/", { fetch: refusing }), start("conv"));
    await expect(session.accepts(start("conv"), new AbortController().signal)).rejects.toMatchObject({ status: 401 });
  });

  afterEach(() => vi.unstubAllGlobals());
  const storage = () => {
    const kept = new Map<string, string>();
    return {
      kept, getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value), removeItem: (name: string) => void kept.delete(name),
    };
  };

  it("is read as it is typed, with or without the header's word before it", () => {
    expect(["abc", "  a-b_c+d/e=  ", "Bearer abc", "bearer  abc\n"].map(readKey)).toEqual(["abc", "a-b_c+d/e=", "abc", "abc"]);
    // The header could not carry the others: the browser would throw, and it would look like no answer.
    for (const text of ["", "  ", "two words", "schlüssel", "a\nb", "−", "k".repeat(4097)]) expect(readKey(text), text).toBeNull();
  });

  it("stays in the tab under the service's path, and nothing of it when it is forgotten", () => {
    const tab = storage();
    vi.stubGlobal("sessionStorage", tab);
    const key = keyFor("/convoke/");
    expect(key()).toBeNull();
    key.set("abc");
    expect([...tab.kept]).toEqual([["convoke-key /convoke/", "abc"]]);
    expect([keyFor("/convoke/")(), keyFor("/other/")()]).toEqual(["abc", null]);
    key.set(null);
    expect([key(), tab.kept.size]).toEqual([null, 0]);
  });

  it("that no header can carry is not taken from the tab either", () => {
    const tab = storage();
    vi.stubGlobal("sessionStorage", tab);
    tab.kept.set("convoke-key /", "a\nb");
    expect(keyFor("/")()).toBeNull();
  });

  it("is used even where the browser keeps nothing", () => {
    vi.stubGlobal("sessionStorage", undefined);
    const key = keyFor("/");
    key.set("abc");
    expect([key(), key.peek()]).toEqual(["abc", "abc"]);
  });
});

describe("one at a time", () => {
  it("keeps the newest of those that wait", async () => {
    const latest = new Latest();
    const log: string[] = [];
    let release = () => {};
    const first = new Promise<void>((resolve) => {
      release = resolve;
    });
    latest.submit(async () => {
      log.push("a");
      await first;
    });
    latest.submit(async () => void log.push("b"));
    const ended = new Promise<void>((resolve) => latest.submit(async () => {
      log.push("c");
      resolve();
    }));
    expect(latest.busy).toBe(true);
    release();
    await ended;
    expect(log).toEqual(["a", "c"]);
  });

  it("ends a job that has been at it too long when another waits", async () => {
    const latest = new Latest();
    const ended = new Promise<boolean>((resolve) => latest.submit((signal) => new Promise((done) => {
      signal.addEventListener("abort", () => {
        resolve(true);
        done();
      });
    })));
    latest.submit(async () => {});
    expect(await ended).toBe(true);
  });
});
