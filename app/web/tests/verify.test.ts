import { describe, expect, it } from "vitest";
import { type Client, tensor, type Tensor } from "../src/client";
import { buildLayer } from "../src/math/build";
import type { Given, Made, Role } from "../src/math/layer";
import { size } from "../src/math/shape";
import type { Served } from "../src/state/served";
import { start } from "../src/state/spec";
import { agrees } from "../src/views/trace/agreement";
import { adjoint, differences, ownArithmetic } from "../src/views/verify/checks";
import { skips } from "../src/views/verify/kinks";
import { random } from "./random";

type Config = Record<string, unknown>;
type Tensors = Record<string, Tensor>;
/** What a service that is wrong makes of a right answer. */
type Harm = (name: string, values: Float64Array) => void;

const RIGHT: Harm = () => undefined;

/** Windows of 3×3, a step apart. */
function output({ x, weight }: Record<string, readonly number[]>): number[] {
  return [x[0], weight ? weight[0] : x[1], ...x.slice(2).map((extent) => extent - 2)];
}

/** A service that is the page's own arithmetic in float64, rounded to what it was asked in. */
function service(harm: Harm): Client {
  const answer = (op: string, config: Config, tensors: Tensors, wants: readonly string[]) => {
    const shapes = Object.fromEntries(Object.entries(tensors).map(([name, { shape }]) => [name, shape]));
    const given = Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data])) as unknown as Given;
    const layer = buildLayer(op, config, { shapes: { ...shapes, y: output(shapes) }, padding: [[0, 0], [0, 0]] }, given);
    const Maker = tensors.x.data.constructor as Float64ArrayConstructor;
    return {
      tensors: Object.fromEntries(wants.map((name) => {
        const values = layer.compute(name as Made);
        harm(name, values);
        return [name, tensor(Maker.from(values), name === "y" ? output(shapes) : shapes[name.slice(1)])];
      })),
    };
  };
  return {
    forward: async (op: string, { config, tensors }: { config: Config; tensors: Tensors }) => answer(op, config, tensors, ["y"]),
    backward: async (op: string, { config, tensors, wants }: { config: Config; tensors: Tensors; wants: string[] }) => answer(op, config, tensors, wants),
  } as unknown as Client;
}

const X = [1, 1, 5, 5];

/** A layer on show, with what a service in float32 made of it. */
function served(op: string, config: Config, x: Record<number, number>, harm = RIGHT, weight = Array.from({ length: 9 }, random(3))): Served {
  const conv = op === "conv";
  const shapes: Record<string, number[]> = { x: X, y: [1, 1, 3, 3], dy: [1, 1, 3, 3], ...(conv ? { weight: [1, 1, 3, 3] } : {}) };
  const fresh = random(8);
  const given: Given = {
    x: Float32Array.from({ length: 25 }, (_, i) => x[i] ?? fresh() * 2 - 1), dy: Float32Array.from({ length: 9 }, (_, i) => i - 4.5),
    ...(conv ? { weight: Float32Array.from(weight) } : {}),
  };
  const padding: [number, number][] = [[0, 0], [0, 0]];
  const layer = buildLayer(op, config, { shapes, padding }, given);
  const made = Object.fromEntries((["y", "dx", ...(conv ? ["dweight"] : [])] as Made[]).map((role) => {
    const values = layer.compute(role);
    harm(role, values);
    return [role, Float32Array.from(values)];
  }));
  const spec = { ...start(op), channels: 1, outputs: 1, config };
  return { spec, shapes, padding, given, made, layer, read: layer.read() } as unknown as Served;
}

const never = new AbortController().signal;
const of = (one: Served, role: "x" | "weight" = "x", harm = RIGHT) => differences(service(harm), one, role, never, 1);
const at = (index: number, by: number, role: Role = "dx"): Harm => (name, values) => {
  if (name === role) values[index] += by;
};

describe("finite differences", () => {
  it("pass at numbers of every size that leave room for a step, and still fail for a wrong gradient", async () => {
    for (const large of [1, 1e3, 1e6]) {
      for (const [op, config] of [["conv", {}], ["avg_pool", { kernel: 3, stride: 1 }], ["conv", { activation: "silu" }]] as const) {
        const one = served(op, config, { 6: large });
        const check = await of(one);
        expect(check, `${op} ${large}`).toMatchObject({ passed: true });
        expect(check.tolerance).toBeLessThan(1e-3);
        const wrong = await of(one, "x", (name, values) => name === "dx" && values.forEach((v, i) => (values[i] = 1.01 * v)));
        expect(wrong, `${op} ${large}`).toMatchObject({ passed: false });
      }
    }
  });

  it("say why they show nothing where a step is lost in rounding, or a number is not finite", async () => {
    expect(await of(served("conv", {}, { 6: 1e20 }))).toMatchObject({ passed: null, error: null, note: expect.stringContaining("lost in rounding") });
    for (const odd of [Infinity, NaN]) {
      for (const role of ["x", "weight"] as const) {
        expect(await of(served("conv", {}, { 6: odd }), role)).toMatchObject({ passed: null, note: "The tensors hold numbers that are not finite." });
      }
    }
    expect(await of(served("lp_pool", { kernel: 3, stride: 1, p: 10 }, { 6: 1e38 }))).toMatchObject({ passed: null, note: "Sums leave the range of float64." });
  });

  it("are not widened, nor silenced, by a service that answers with large numbers or none", async () => {
    const one = served("conv", {}, {});
    for (const value of [1e20, Infinity, NaN]) {
      for (const role of ["y", "dx"]) {
        const harm: Harm = (name, values) => name === role && values.fill(value, 0, 5);
        const check = await of(one, "x", harm);
        expect(check.passed, `${role} ${value}`).toBe(false);
      }
    }
  });

  it("are measured by the page's gradient: a huge wrong cell that is not drawn hides no other error", async () => {
    const one = served("conv", {}, {});
    const harm: Harm = (name, values) => name === "dx" && values.forEach((v, i) => (values[i] = 1.01 * v));
    const { worst } = await of(one, "x", harm);
    const errors = await Promise.all(Array.from({ length: 25 }, async (_, index) => {
      if (index === worst!.index) return Infinity;
      const check = await of(one, "x", (name, values) => (harm(name, values), name === "dx" && (values[index] = 1e20)));
      expect(check.passed).toBe(false);
      return check.error!;
    }));
    // Of 25 coordinates 24 are drawn.
    expect(errors.filter((error) => error < 1)).toHaveLength(1);
  });

  it("take a gradient that is zero everywhere but for rounding", async () => {
    const none = served("conv", {}, {}, RIGHT, Array<number>(9).fill(0));
    expect((await of(none)).passed).toBe(null);
    expect((await of(none, "x", at(3, 1))).passed).toBe(false);
  });
});

it("a mean over samples is said to be divided by, where laws are of sums", async () => {
  const [mean, sum] = ["mean", "sum"].map((grad_reduction) => served("conv", { grad_reduction }, {}));
  for (const dtype of ["float32", "float64"] as const) {
    const [x, weight] = await adjoint(service(RIGHT), mean, dtype, never);
    expect(weight).toMatchObject({ passed: true, note: "relative to ‖dY‖·‖Y‖; dW before its division by N = 1, which “grad_reduction: mean” asks for" });
    expect(x.note).toBe("relative to ‖dY‖·‖Y‖");
    expect((await adjoint(service(RIGHT), sum, dtype, never))[1].note).toBe("relative to ‖dY‖·‖Y‖");
  }
  expect((await of(mean, "weight")).law).toBe("Move one weight by ±0.01 and see how ⟨dY, Y⟩ changes, divided by N = 1 as “grad_reduction: mean” asks.");
  expect((await of(mean)).law).toBe((await of(sum)).law);
  expect((await of(sum, "weight")).law).toBe("Move one weight by ±0.01 and see how ⟨dY, Y⟩ changes.");
});

describe("the adjoint law", () => {
  it("has nothing to say where sums leave float32, and fails where only the service's do", async () => {
    const huge = served("conv", {}, { 12: 3e38 }, RIGHT, [1, 1, 1, 1, 10, 1, 1, 1, 1]);
    for (const check of await adjoint(service(RIGHT), huge, "float32", never)) {
      expect(check).toMatchObject({ passed: null, error: null, note: expect.stringContaining("leave the range of float32") });
    }
    for (const check of await adjoint(service(RIGHT), huge, "float64", never)) expect(check.passed).toBe(true);
    for (const value of [Infinity, NaN, -Infinity]) {
      const harm: Harm = (name, values) => name === "y" && values.fill(value, 2, 3);
      for (const check of await adjoint(service(harm), served("conv", {}, {}), "float32", never)) expect(check.passed, String(value)).toBe(false);
      // The range of float32 is no excuse in float64.
      for (const check of await adjoint(service(harm), huge, "float64", never)) expect(check.passed, String(value)).toBe(false);
    }
  });

  it("says nothing of a norm that leaves float64 too", async () => {
    const norm = served("lp_pool", { kernel: 3, stride: 1, p: 10 }, { 6: 1e38 });
    for (const dtype of ["float64", "float32"] as const) {
      for (const check of await adjoint(service(RIGHT), norm, dtype, never)) expect(check).toMatchObject({ passed: null, note: expect.stringContaining(dtype) });
    }
  });

  it("is silent only about the tensors that leave float32", async () => {
    const steep = served("conv", {}, { 12: 3e38 }, RIGHT, Array<number>(9).fill(1e-3));
    const [x, weight] = await adjoint(service(RIGHT), steep, "float32", never);
    expect(x).toMatchObject({ id: "adjoint-x-float32", passed: true });
    expect(weight).toMatchObject({ id: "adjoint-weight-float32", passed: null });
  });
});

describe("the page's own arithmetic", () => {
  // z of the first output is 1 − 1 with the rounding of 0.1, and the service's is on the other side of the kink.
  const weight = [1, -3, 0, 0, 0, 0, 0, 0, 0];
  const kink = (harm: Harm) => served("conv", { activation: "relu" }, { 0: 0.3, 1: 0.1 }, harm, weight);
  const own = (one: Served, role: Role) => ownArithmetic(one).find(({ id }) => id === `own-${role}`)!;
  const z = kink(RIGHT).layer.explain("y", 0).total;
  // Which of the two slopes the page has taken, the service takes the other.
  const other = (z > 0 ? -1 : 1) * -4.5;

  it("leaves out what differs by the other slope of a kink, and says how many", () => {
    expect(Math.abs(z)).toBeLessThan(1e-7);
    expect(z).not.toBe(0);
    const one = kink((name, values) => {
      if (name === "dx") [values[0], values[1]] = [values[0] + other, values[1] - 3 * other];
    });
    expect(own(one, "dx")).toMatchObject({ passed: true, note: "25 cells, 2 left out: some z is at a kink within rounding, where either slope is right." });
    expect(own(kink(RIGHT), "dx").note).toBe("25 cells");
  });

  it("hides nothing else there: neither a larger difference nor one at another cell", () => {
    expect(own(kink(at(0, 3 * other)), "dx").passed).toBe(false);
    expect(own(kink(at(0, NaN)), "dx").passed).toBe(false);
    expect(own(kink(at(7, other)), "dx").passed).toBe(false);
    expect(own(kink(at(0, 0.1, "y")), "y").passed).toBe(false);
    // The same differences without an activation, or far from its kink.
    expect(own(served("conv", {}, { 0: 0.3, 1: 0.1 }, at(0, other), weight), "dx").passed).toBe(false);
    expect(own(served("conv", { activation: "relu" }, { 0: 0.3, 1: 0.2 }, at(0, other), weight), "dx").passed).toBe(false);
  });

  const exact = [1, -1, 0, 0, 0, 0, 0, 0, 0];

  it("takes no wrong slope where z is exact, or no number", () => {
    const conv = (x: Record<number, number>, harm: Harm) => served("conv", { activation: "relu" }, x, harm, exact);
    const whole = Object.fromEntries(Array.from({ length: 25 }, (_, i) => [i, i % 7]));
    const zero = conv({ ...whole, 0: 2, 1: 2 }, at(0, -4.5));
    expect(zero.layer.explain("y", 0).total).toBe(0);
    expect(own(zero, "dx").passed).toBe(false);
    expect(own(conv({ ...whole, 0: 0.5, 1: 0.5 }, at(0, -4.5)), "dx").passed).toBe(true);
    const tiled = buildLayer("conv", { activation: "relu" }, { shapes: zero.shapes, padding: zero.padding, algorithm: "winograd" }, zero.given);
    expect(tiled.explain("dx", 0).doubt).toMatchObject({ low: -4.5, high: 0 });
    for (const odd of [Infinity, -Infinity]) {
      const dweight = conv({ 0: odd, 12: 3 }, (name, values) => name === "dweight" && (values[0] = NaN));
      expect(dweight.layer.explain("dweight", 0).doubt, String(odd)).toBe(null);
    }
  });

  it("allows for a kink's other slope to its own side only", () => {
    expect(own(kink(at(0, other)), "dx").passed).toBe(true);
    expect(own(kink(at(0, -other)), "dx").passed).toBe(false);
    // Terms that cancel leave any z within their rounding, and elu has another slope at each.
    const elu = (slope: number) => served("conv", { activation: "elu" }, { 0: 1e6, 1: 1e6 + 1 }, (name, values) => name === "dx" && (values[0] = slope * -4.5), exact.map((w) => w * 0.9));
    expect([1, Math.exp(-8), 1.5].map((slope) => own(elu(slope * 0.9), "dx").passed)).toEqual([true, true, false]);
  });

  it("measures by what float32 has numbers for", () => {
    const beyond = (harm: Harm) => served("conv", {}, { 0: 1e30 }, harm, [1e30, 1, 1, 1, 1, 1, 1, 1, 1]);
    expect(own(beyond(RIGHT), "y").passed).toBe(true);
    const far = own(beyond((name, values) => name === "y" && (values[8] *= 1.01)), "y");
    expect(far).toMatchObject({ passed: false, worst: { role: "y", index: 8 } });
  });

  it("fails no cell of which Trace says that both agree, and names no worst that may differ", () => {
    // The first output is the difference of large numbers, and they are the largest there is.
    const large = (by: number) => served("conv", {}, Object.fromEntries(Array.from({ length: 25 }, (_, i) => [i, 1e4])), at(0, by, "y"), [1, -1, 1, -1, 1, -1, 1, -1, 0]);
    expect(own(large(0.05), "y").passed).toBe(true);
    expect(own(large(5), "y").passed).toBe(false);
    const both = kink((name, values) => {
      if (name === "dx") [values[1], values[24]] = [values[1] - 3 * other, values[24] + 0.1];
    });
    expect(own(both, "dx")).toMatchObject({ passed: false, worst: { role: "dx", index: 24 } });
    const after = kink((name, values) => {
      if (name === "dx") [values[0], values[1]] = [values[0] + 30, values[1] - 3 * other];
    });
    expect(own(after, "dx").worst).toEqual({ role: "dx", index: 0 });
    const small = kink((name, values) => {
      if (name === "dx") [values[0], values[1]] = [values[0] - 0.1 * other, values[1] - 3 * other];
    });
    expect(own(small, "dx").worst).toEqual({ role: "dx", index: 0 });
  });

  it("allows in a steep norm for no number and for zero, and for nothing else", () => {
    const steep = (value: number) => served("lp_pool", { kernel: 3, stride: 1, p: 3 }, { 0: 1e20 }, (name, values) => name === "dx" && (values[0] = value));
    expect([NaN, 0].map((value) => own(steep(value), "dx").passed)).toEqual([true, true]);
    expect([4.5, -9].map((value) => own(steep(value), "dx").passed)).toEqual([false, false]);
    // A root is not measured by the powers under it.
    const norm = (by: number) => served("lp_pool", { kernel: 3, stride: 1, p: 4 }, { 0: 1e3 }, at(0, by, "y"));
    expect([agrees(norm(0).layer.explain("y", 0), 1001), agrees(norm(0).layer.explain("y", 0), 1000.001)]).toEqual([false, true]);
    expect(own(norm(1), "y").passed).toBe(false);
  });

  it("has no overflow in a maximum, which sums nothing", () => {
    const ties = served("max_pool", { kernel: 3, stride: 1, ties: "all" }, { 0: 3e38, 1: 3e38 }, (name, values) => name === "y" && (values[0] = Infinity));
    expect(own(ties, "y").passed).toBe(false);
  });

  it("allows for sums that leave float32 in a norm and a mean, and for nothing else", () => {
    const infinite = (role: Role): Harm => (name, values) => name === role && (values[0] = Infinity);
    const pools = [["lp_pool", 1e20], ["avg_pool", 3e38]] as const;
    for (const [op, large] of pools) {
      const config = { kernel: 3, stride: 1 };
      expect(own(served(op, config, { 0: large, 1: large }, infinite("y")), "y"), op).toMatchObject({ passed: true, note: "9 cells, 1 left out: a sum on the way leaves float32, which ends at 3.4e38." });
      expect(own(served(op, config, { 0: large, 1: large }, at(0, large / 10, "y")), "y").passed, op).toBe(false);
      expect(own(served(op, config, {}, infinite("y")), "y").passed, op).toBe(false);
    }
  });
});

it("coordinates are left out beside a kink, wherever an activation has it", () => {
  const flat = (name: string, x: number) => {
    const config = { name };
    const shapes = { x: X, y: X };
    const given: Given = { x: new Float32Array(size(X)).fill(x), dy: new Float32Array(size(X)) };
    const layer = buildLayer("activation", config, { shapes, padding: [[0, 0], [0, 0]] }, given);
    return skips({ spec: { ...start("activation"), config }, shapes, given, layer } as unknown as Served, "x", 0, 1e-5);
  };
  expect([flat("relu", 0), flat("relu", 1), flat("hard_sigmoid", 2.5), flat("hard_sigmoid", -2.5), flat("hard_sigmoid", 0), flat("tanh", 0)])
    .toEqual([true, false, true, true, false, false]);
});

it("coordinates are left out where a step would move an output over a kink", () => {
  const near = (weight: number) => skips(served("conv", { activation: "relu" }, { 0: 0.01 }, RIGHT, [weight, 0, 0, 0, 0, 0, 0, 0, 0]), "x", 0, 1e-5);
  expect([near(1), near(1e4)]).toEqual([false, false]);
  const beside = (weight: number) => skips(served("conv", { activation: "relu" }, { 0: 1.5e-5 }, RIGHT, [weight, 0, 0, 0, 0, 0, 0, 0, 0]), "x", 0, 1e-5);
  expect(beside(1e4)).toBe(true);
  expect(skips(served("conv", { activation: "silu" }, { 0: 0 }), "x", 0, 1e-5)).toBe(false);
});
