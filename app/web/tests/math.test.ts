import { describe, expect, it } from "vitest";
import { activation, erfc } from "../src/math/activation";
import { source } from "../src/math/axis";
import { buildLayer } from "../src/math/build";
import type { Layer, Role } from "../src/math/layer";
import { size } from "../src/math/shape";
import { integer, random, type Random } from "./random";
import { convolve, pool, type Case } from "./reference";

function fill(rng: Random, length: number): Float64Array {
  return Float64Array.from({ length }, () => rng() * 2 - 1);
}

function close(actual: ArrayLike<number>, expected: ArrayLike<number>): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i += 1) {
    expect(Math.abs(actual[i] - expected[i])).toBeLessThan(1e-9 * (1 + Math.abs(expected[i])));
  }
}

/** Every cell's own terms, summed, make the whole tensor. */
function termsAgree(layer: Layer, role: Role, whole: ArrayLike<number>): void {
  close(Array.from(whole, (_, index) => layer.explain(role, index).value), whole);
}

function randomConvolution(seed: number, op: "conv" | "conv_transpose"): Case {
  const rng = random(seed);
  const dims = integer(rng, 1, 3);
  const axes = <T>(make: () => T) => Array.from({ length: dims }, make);
  const groups = integer(rng, 1, 2);
  const config = {
    stride: axes(() => integer(rng, 1, 3)),
    dilation: axes(() => integer(rng, 1, 2)),
    groups,
    flip_kernel: rng() < 0.3,
    grad_reduction: rng() < 0.5 ? "mean" : "sum",
    ...(op === "conv" ? { padding_mode: ["zeros", "reflect", "replicate", "circular"][integer(rng, 0, 3)] } : {}),
  };
  const kernel = axes(() => integer(rng, 1, 3));
  const padding = axes(() => [integer(rng, 0, 2), integer(rng, 0, 2)] as [number, number]);
  const x = axes(() => integer(rng, 5, 7));
  const channels = groups * integer(rng, 1, 2);
  const per = integer(rng, 1, 2);
  const extent = kernel.map((k, a) => config.dilation[a] * (k - 1) + 1);
  const y = x.map((n, a) =>
    op === "conv"
      ? Math.floor((n + padding[a][0] + padding[a][1] - extent[a]) / config.stride[a]) + 1
      : (n - 1) * config.stride[a] + extent[a] - padding[a][0] - padding[a][1],
  );
  const weight = op === "conv"
    ? [groups * per, channels / groups, ...kernel]
    : [channels, per, ...kernel];
  const n = integer(rng, 1, 2);
  const shapes = { x: [n, channels, ...x], weight, y: [n, groups * per, ...y] };
  const given = {
    x: fill(rng, size(shapes.x)), weight: fill(rng, size(weight)),
    bias: fill(rng, groups * per), dy: fill(rng, size(shapes.y)),
  };
  return { op, dims, config, shapes, padding, given };
}

describe("convolution and its transpose", () => {
  for (const op of ["conv", "conv_transpose"] as const) {
    it(`${op}: terms and whole tensors equal plain loops, forward and backward`, () => {
      for (let seed = 1; seed <= 40; seed += 1) {
        const one = randomConvolution(seed, op);
        const layer = buildLayer(op, one.config, one, one.given);
        const expected = convolve(one);
        for (const role of ["y", "dx", "dweight", "dbias"] as const) {
          close(layer.compute(role), expected[role]);
          termsAgree(layer, role, expected[role]);
        }
      }
    });
  }

  it("light up the cells that a one-hot gradient reaches, and no others", () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const one = randomConvolution(seed, seed % 2 ? "conv" : "conv_transpose");
      one.given.weight = one.given.weight!.map((w) => Math.abs(w) + 0.1) as Float64Array;
      const hot = integer(random(seed), 0, one.given.dy.length - 1);
      one.given.dy = one.given.dy.map((_, i) => (i === hot ? 1 : 0));
      const layer = buildLayer(one.op, one.config, one, one.given);
      const support = [...convolve(one).dx.entries()].filter(([, v]) => v !== 0).map(([i]) => i);
      const lit = [...layer.explain("dy", hot).lit.x].sort((a, b) => a - b);
      expect(lit).toEqual(support);
    }
  });

  it("lists whole products under a mean over samples, and divides their sum", () => {
    const shapes = { x: [2, 1, 1], weight: [1, 1, 1], y: [2, 1, 1] };
    const given = { x: Float64Array.of(3, 5), weight: Float64Array.of(1), bias: Float64Array.of(0), dy: Float64Array.of(2, 4) };
    const layer = buildLayer("conv", { grad_reduction: "mean" }, { shapes, padding: [[0, 0]] }, given);
    const of = layer.explain("dweight", 0);
    expect(of.terms.map(({ parts, value }) => [parts.length, value])).toEqual([[2, 6], [2, 20]]);
    expect(of).toMatchObject({ total: 26, after: [{ label: "÷ 2 samples", value: 13 }], value: 13, scale: 13 });
    expect(layer.explain("dbias", 0)).toMatchObject({ total: 6, value: 3 });
  });

  it("splits into sweep steps that add up", () => {
    const one = randomConvolution(3, "conv");
    const layer = buildLayer("conv", one.config, one, one.given);
    const area = size(one.shapes.y.slice(2));
    close(layer.compute("dx", area), layer.compute("dx"));
    expect(layer.compute("dx", 0).every((v) => v === 0)).toBe(true);
  });

  it("has neighbours' counts by hand: 5×5, kernel 3", () => {
    const shapes = { x: [1, 1, 5, 5], weight: [1, 1, 3, 3], y: [1, 1, 3, 3] };
    const given = { x: fill(random(1), 25), weight: fill(random(2), 9), dy: fill(random(3), 9) };
    const layer = buildLayer("conv", {}, { shapes, padding: [[0, 0], [0, 0]] }, given);
    const counts = [[2, 2], [0, 2], [0, 0]].map(([r, c]) => layer.explain("dx", r * 5 + c).terms.length);
    expect(counts).toEqual([9, 3, 1]);
  });

  it("marks 11 of 36 cells as unread at 6×6, kernel 3, stride 2, and 65 of 81 when dilated", () => {
    const unread = (n: number, out: number, dilation: number, low: number) => {
      const shapes = { x: [1, 1, n, n], weight: [1, 1, 3, 3], y: [1, 1, out, out] };
      const given = { x: new Float64Array(n * n), weight: new Float64Array(9), dy: new Float64Array(out * out) };
      const padding: [number, number][] = [[low, low], [low, low]];
      const layer = buildLayer("conv", { stride: 2, dilation }, { shapes, padding }, given);
      return layer.read().filter((seen) => seen === 0).length;
    };
    expect(unread(6, 2, 1, 0)).toBe(11);
    expect(unread(9, 4, 2, 1)).toBe(65);
  });

  it("has dY, the slope and z apart in the terms of an activation's gradients", () => {
    const shapes = { x: [1, 1, 2], weight: [1, 1, 1], y: [1, 1, 2] };
    const given = { x: Float64Array.of(1, 2), weight: Float64Array.of(3), bias: Float64Array.of(-4), dy: Float64Array.of(5, 7) };
    const layer = buildLayer("conv", { activation: { name: "leaky_relu", alpha: 0.5 } }, { shapes, padding: [[0, 0]] }, given);
    const factors = (role: Role, index: number) => layer.explain(role, index).terms.map(({ parts, value }) =>
      [...parts.map((part) => [part.role, part.value, ...(part.of ? [part.label, part.of.name, part.of.value] : [])]), value]);
    expect(factors("dx", 0)).toEqual([[["dy", 5], ["factor", 0.5, "φ′", "z", -1], ["weight", 3], 7.5]]);
    expect(factors("dweight", 0)).toEqual([
      [["dy", 5], ["factor", 0.5, "φ′", "z", -1], ["x", 1], 2.5], [["dy", 7], ["factor", 1, "φ′", "z", 2], ["x", 2], 14],
    ]);
    expect(factors("dbias", 0)).toEqual([[["dy", 5], ["factor", 0.5, "φ′", "z", -1], 2.5], [["dy", 7], ["factor", 1, "φ′", "z", 2], 7]]);
    expect(factors("dy", 1)).toEqual([[["dy", 7], ["factor", 1, "φ′", "z", 2], ["weight", 3], 21]]);
  });

  it("carries an activation through: dy after it, dz before it", () => {
    const names = ["relu", "leaky_relu", "elu", "selu", "gelu", { name: "gelu", approximate: true }, "silu",
      "sigmoid", "hard_sigmoid", "tanh", "softplus", "exponential", { name: "affine", slope: 3 }];
    for (const activation of names) {
      const one = randomConvolution(11, "conv");
      const at = (x: ArrayLike<number>) =>
        buildLayer("conv", { ...one.config, activation }, one, { ...one.given, x });
      const base = at(one.given.x);
      const loss = (layer: Layer) =>
        layer.compute("y").reduce((sum, y, i) => sum + y * one.given.dy[i], 0);
      const dx = base.compute("dx");
      for (const index of [0, 7, dx.length - 1]) {
        const moved = (by: number) => one.given.x.map((v, i) => (i === index ? v + by : v));
        const slope = (loss(at(moved(1e-5))) - loss(at(moved(-1e-5)))) / 2e-5;
        expect(Math.abs(slope - dx[index])).toBeLessThan(1e-6 * (1 + Math.abs(slope)));
      }
      termsAgree(base, "dx", dx);
      termsAgree(base, "y", base.compute("y"));
    }
  });
});

describe("pools", () => {
  it("equal plain loops for random windows, forward and backward", () => {
    for (let seed = 1; seed <= 120; seed += 1) {
      const rng = random(seed);
      const op = ["max_pool", "avg_pool", "lp_pool"][seed % 3];
      const dims = integer(rng, 1, 3);
      const axes = <T>(make: () => T) => Array.from({ length: dims }, make);
      const config = {
        kernel: axes(() => integer(rng, 2, 3)), stride: axes(() => integer(rng, 1, 3)),
        dilation: axes(() => integer(rng, 1, 2)), pad_value: rng() < 0.3 ? "zero" : "lowest",
        ties: rng() < 0.5 ? "all" : "first", count_include_pad: rng() < 0.5, p: [1, 2, 3.5][integer(rng, 0, 2)],
        divisor_override: rng() < 0.3 ? 5 : null,
      };
      const padding = axes(() => [integer(rng, 0, 1), integer(rng, 0, 1)] as [number, number]);
      const x = axes(() => integer(rng, 5, 7));
      const ceil = rng() < 0.5;
      const y = x.map((n, a) => {
        const span = n + padding[a][0] + padding[a][1] - config.dilation[a] * (config.kernel[a] - 1) - 1;
        const out = (ceil ? Math.ceil : Math.floor)(span / config.stride[a]) + 1;
        return (out - 1) * config.stride[a] >= n + padding[a][0] ? out - 1 : out;
      });
      const shapes = { x: [1, 2, ...x], y: [1, 2, ...y] };
      const given = {
        x: Float64Array.from({ length: size(shapes.x) }, () => integer(rng, -3, 3)),
        dy: fill(rng, size(shapes.y)),
      };
      const one: Case = { op, dims, config, shapes, padding, given };
      const layer = buildLayer(op, config, one, given);
      const expected = pool(one);
      for (const role of ["y", "dx"] as const) {
        close(layer.compute(role), expected[role]);
        termsAgree(layer, role, expected[role]);
      }
    }
  });

  it("average: a window that covers only padding, which does not count, is 0 like the service's", () => {
    const shapes = { x: [1, 1, 2], y: [1, 1, 4] };
    const given = { x: Float64Array.of(3, 5), dy: Float64Array.of(1, 1, 1, 1) };
    const layer = buildLayer("avg_pool", { kernel: 1, count_include_pad: false }, { shapes, padding: [[1, 1]] }, given);
    expect([...layer.compute("y")]).toEqual([0, 3, 5, 0]);
    expect([...layer.compute("dx")]).toEqual([1, 1]);
    expect(layer.explain("y", 0)).toMatchObject({ value: 0, padding: 1, terms: [] });
  });

  it("max: a peak under overlapping windows collects each gradient; ties go to the first", () => {
    const peak = Float64Array.from({ length: 49 }, (_, i) => (i === 16 ? 9 : 0));
    const shapes = { x: [1, 1, 7, 7], y: [1, 1, 3, 3] };
    const given = { x: peak, dy: new Float64Array(9).fill(1) };
    const config = { kernel: 3, stride: 2 };
    const layer = buildLayer("max_pool", config, { shapes, padding: [[0, 0], [0, 0]] }, given);
    const dx = layer.compute("dx");
    expect(dx[16]).toBe(4);
    expect(dx.reduce((a, b) => a + b)).toBe(9);
  });

  it("adaptive windows cover everything, and unpooling goes where the indices say", () => {
    const shapes = { x: [1, 1, 5], y: [1, 1, 3] };
    const given = { x: Float64Array.of(1, 2, 3, 4, 5), dy: Float64Array.of(1, 1, 1) };
    const layer = buildLayer("adaptive_avg_pool", { output_size: 3 }, { shapes, padding: [[0, 0]] }, given);
    expect([...layer.compute("y")]).toEqual([1.5, 3, 4.5]);
    const back = { x: [1, 1, 2], y: [1, 1, 5] };
    const unpool = buildLayer("max_unpool", { output_size: [5] }, { shapes: back, padding: [[0, 0]] }, {
      x: Float64Array.of(7, 8), indices: [3, 0], dy: Float64Array.of(1, 2, 3, 4, 5),
    });
    expect([...unpool.compute("y")]).toEqual([8, 0, 0, 7, 0]);
    expect([...unpool.compute("dx")]).toEqual([4, 1]);
    expect([...unpool.explain("y", 3).lit.x]).toEqual([0]);
  });
});

describe("pieces", () => {
  it("erfc to double precision, in both tails", () => {
    const known: [number, number][] = [
      [0, 1], [0.1, 0.8875370839817152], [0.5, 0.4795001221869535], [1, 0.15729920705028513], [1.9, 0.007209570764742524],
      [2, 0.004677734981047266], [3, 2.209049699858544e-5], [5, 1.5374597944280347e-12], [9, 4.13703174651381e-37],
    ];
    for (const [z, value] of known) {
      expect(Math.abs(erfc(z) / value - 1), `${z}`).toBeLessThan(5e-14);
      expect(erfc(-z)).toBeCloseTo(2 - value, 14);
    }
  });

  it("slopes with all their digits where they are all but constant", () => {
    expect(activation("tanh")!.slope(9) * Math.cosh(9) ** 2).toBeCloseTo(1, 13);
    expect(activation("sigmoid")!.slope(30) * Math.exp(30)).toBeCloseTo(1, 12);
    expect(activation("gelu")!.slope(-7.5) / -1.7938314830426e-12).toBeCloseTo(1, 11);
  });

  it("padding modes copy the right cells", () => {
    const row = (mode: "reflect" | "replicate" | "circular") =>
      [-2, -1, 0, 3, 4, 5].map((p) => source(p, 4, mode));
    expect(row("reflect")).toEqual([2, 1, 0, 3, 2, 1]);
    expect(row("replicate")).toEqual([0, 0, 0, 3, 3, 3]);
    expect(row("circular")).toEqual([2, 3, 0, 3, 0, 1]);
  });
});
