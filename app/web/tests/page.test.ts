import { encode } from "@msgpack/msgpack";
import { afterEach, describe, expect, it, vi } from "vitest";
import { article, brief, coarse, full, medium, scaled, tiny } from "../src/core/format";
import { inWords, start } from "../src/state/spec";
import { stepsOf } from "../src/export/steps";
import { level, LEVELS, scaleOf, table } from "../src/grid/colour";
import { drawPlane } from "../src/grid/draw";
import { between as stroke } from "../src/grid/pointing";
import { coverage, evenness, plane } from "../src/views/checkerboard/coverage";
import { hex, takeApart } from "../src/views/request/bytes";
import { float, list, python } from "../src/views/request/literal";
import { agrees, verdict } from "../src/views/trace/agreement";
import { belowWords, rowsBelow } from "../src/views/trace/below";
import { derivation } from "../src/views/trace/facts";
import { formulas, sentence } from "../src/views/trace/words";
import { buildLayer } from "../src/math/build";
import type { Explanation, Role } from "../src/math/layer";
import type { Served } from "../src/state/served";
import { sample } from "../src/views/verify/differences";
import { filterValues, FILTERS, FIRST_IMAGE, readImage, writeImage } from "../src/views/image/settings";

describe("colours", () => {
  it("have zero in the middle of a diverging map, in paper, and both ends apart", () => {
    const scale = scaleOf([-1, 3], true);
    expect(scale).toEqual({ map: "diverging", low: -3, high: 3 });
    const colours = table("light", "diverging");
    expect(colours.css[level(scale, 0)]).toBe("rgb(247 246 243)");
    expect(level(scale, -3)).toBe(0);
    expect(level(scale, 3)).toBe(LEVELS - 2);
    expect(level(scaleOf([0, 0], true), 0)).toBe((LEVELS - 2) / 2);
  });

  it("grow steadily darker in the sequential map", () => {
    const { bytes } = table("light", "sequential");
    const light = Array.from({ length: LEVELS - 1 }, (_, i) => bytes[i * 4] + bytes[i * 4 + 1] + bytes[i * 4 + 2]);
    expect(light.every((one, i) => i === 0 || one <= light[i - 1] + 2)).toBe(true);
    expect(scaleOf([2, 5], false)).toEqual({ map: "sequential", low: 0, high: 5 });
    expect(scaleOf([NaN, Infinity], false)).toEqual({ map: "sequential", low: 0, high: 0 });
  });

  it("of what is no number are those of no number", () => {
    for (const map of ["diverging", "sequential", "grey"] as const) {
      const colours = table("dark", map);
      const at = level({ map, low: -1, high: 1 }, NaN);
      expect(colours.css.indexOf(colours.css[at])).toBe(LEVELS - 1);
      expect(colours.css[at]).toBe("rgb(130 80 168)");
    }
  });

  const luminance = (rgb: number[]) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const between = (one: number[], other: number[]) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };

  it("carry text that can be read, 4.5 to 1 or better", () => {
    for (const theme of ["light", "dark"] as const) {
      for (const name of ["diverging", "sequential", "grey"] as const) {
        const colours = table(theme, name);
        for (let at = 0; at < LEVELS; at += 1) {
          const ground = [...colours.bytes.slice(at * 4, at * 4 + 3)];
          const ink = colours.ink(at) === "#ffffff" ? [255, 255, 255] : [0, 0, 0];
          expect(between(ground, ink), `${theme} ${name} ${at}`).toBeGreaterThan(4.5);
        }
      }
    }
  });

  afterEach(() => vi.unstubAllGlobals());

  it("that are pale, since others are lit or they stand in the padding, carry text that can be read as well", async () => {
    vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
    const { setWish, theme } = await import("../src/state/theme");
    const rgb = (css: string) => (css.startsWith("#") ? [1, 3, 5].map((i) => parseInt(css.slice(i, i + 2), 16)) : css.match(/\d+/g)!.map(Number));
    for (const name of ["light", "dark"] as const) {
      setWish(name);
      for (const map of ["diverging", "sequential", "grey"] as const) {
        let ground = rgb(theme().surface);
        const contrasts: number[] = [];
        const painter = {
          rect: (_x: number, _y: number, _w: number, _h: number, fill: string, alpha = 1) => {
            ground = rgb(fill).map((c, i) => Math.round(c * alpha + ground[i] * (1 - alpha)));
          },
          text: (_x: number, _y: number, _text: string, fill: string) => contrasts.push(between(ground, rgb(fill))),
          frame: () => undefined, line: () => undefined, dot: () => undefined, stroke: () => undefined,
        };
        const values = Array.from({ length: LEVELS - 1 }, (_, i) => i);
        const ring = { top: 1, left: 0, bottom: 0, right: 0 };
        const plane = { rows: 1, cols: values.length, values, scale: { map, low: 0, high: LEVELS - 2 }, ring, copies: (_: number, col: number) => col };
        drawPlane(painter, plane, 40, theme(), { faded: true });
        expect(contrasts).toHaveLength(2 * values.length);
        expect(Math.min(...contrasts), `${name} ${map}`).toBeGreaterThan(4.5);
      }
    }
  });
});

it("operations stand in sentences with their article", () => {
  const phrases = ["conv", "avg_pool", "lp_pool", "adaptive_max_pool"].map(inWords).map((words) => `${article(words)} ${words}`);
  expect(phrases).toEqual(["a convolution", "an average pool", "an Lp pool", "an adaptive max pool"]);
});

describe("sentences", () => {
  const of = (op: string, config: object, role: Role, index: number, padding = 0) => {
    const out = (4 + 2 * padding - 3) + 1;
    const shapes = { x: [1, 1, 4], y: [1, 1, out] };
    const given = { x: Float64Array.of(1, 2, 3, 4), dy: new Float64Array(out).fill(1) };
    const layer = buildLayer(op, { kernel: 3, stride: 1, ...config }, { shapes, padding: [[padding, padding]] }, given);
    return sentence({ spec: { op, config } } as unknown as Served, layer.explain(role, index));
  };

  it("count as people do", () => {
    expect(of("max_pool", {}, "dx", 0)).toBe("1 window covers this input; it is the maximum of none, so nothing comes back to it.");
    expect(of("max_pool", {}, "dx", 3)).toBe("1 window covers this input; it is the maximum of 1, and gets its gradient.");
    expect(of("max_pool", {}, "dx", 2)).toBe("2 windows cover this input; it is the maximum of 1, and gets its gradient.");
    expect(of("avg_pool", {}, "dx", 0)).toBe("1 window covers this input. It sends back its gradient divided by its count.");
    expect(of("lp_pool", { p: 3 }, "dx", 1)).toContain("2 windows cover this input. Each sends back dY times ∂y/∂x");
  });

  it("say what padding does", () => {
    expect(of("avg_pool", {}, "y", 0, 1)).toContain("1 tap falls on the padding and counts as 0.");
    expect(of("avg_pool", { count_include_pad: false }, "y", 0, 1)).toContain("1 tap falls on the padding and takes no part.");
    expect(of("avg_pool", { divisor_override: 2 }, "y", 0)).toBe("The sum of what is under the window, divided by 2.");
    expect(of("max_pool", {}, "y", 0, 1)).toContain("takes no part");
    expect(of("max_pool", { pad_value: "zero" }, "y", 0, 1)).toContain("counts as 0");
  });

  it("say why a gradient goes nowhere, and what a divisor of one's own does", () => {
    expect(of("avg_pool", {}, "dy", 0, 3)).toBe("This gradient goes nowhere: its window covers no input.");
    expect(of("max_pool", {}, "dy", 0, 3)).toBe("This gradient goes nowhere: its window covers no input.");
    expect(of("max_pool", { pad_value: "zero" }, "dy", 0, 3)).toBe("This gradient goes nowhere: its maximum is in the padding.");
    expect(of("avg_pool", { divisor_override: -2 }, "y", 0)).toBe("The sum of what is under the window, divided by −2.");
    expect(of("avg_pool", { divisor_override: -2 }, "dx", 0)).toBe("1 window covers this input. It sends back its gradient divided by −2.");
  });

  it("tell an output that no stamp covers", () => {
    const shapes = { x: [1, 1, 2], weight: [1, 1, 1], y: [1, 1, 3] };
    const given = { x: [1, 2], weight: [3], dy: [1, 1, 1] };
    const config = { stride: 2 };
    const layer = buildLayer("conv_transpose", config, { shapes, padding: [[0, 0]] }, given);
    const words = (index: number) => sentence({ spec: { op: "conv_transpose", config } } as unknown as Served, layer.explain("y", index));
    expect(words(1)).toBe("No stamp covers this output: it is 0.");
    expect(words(0)).toContain("The sum of 1 product:");
  });
});

it("the output's size comes about by a formula that gives it, also where a last window is left out", () => {
  const of = (input: number, output: number, config: object, padding: readonly [number, number] = [0, 0]) => derivation({
    spec: { op: "max_pool", config, dims: 1 }, shapes: { x: [1, 1, input], y: [1, 1, output] }, padding: [padding], layer: { shapes: {} },
  } as unknown as Served, 0).text;
  expect(of(8, 2, { kernel: 3, stride: 4 })).toBe("⌊(8 + 0 + 0 − 3) / 4⌋ + 1 = 2");
  expect(of(7, 3, { kernel: 2, stride: 3, ceil_mode: true })).toBe("⌈(7 + 0 + 0 − 2) / 3⌉ + 1 = 3");
  expect(of(8, 2, { kernel: 3, stride: 4, ceil_mode: true })).toBe("⌈(8 + 0 + 0 − 3) / 4⌉ + 1 − 1 = 2");
  expect(of(8, 5, { kernel: 1, stride: 2, dilation: 2, ceil_mode: true }, [1, 1])).toBe("⌈(8 + 1 + 1 − (2·(1 − 1) + 1)) / 2⌉ + 1 − 1 = 5");
  expect(of(6, 6, { kernel: 1, stride: 1, ceil_mode: true }, [0, 2])).toBe("⌈(6 + 0 + 2 − 1) / 1⌉ + 1 − 2 = 6");
});

it("windows are taken off where rounding up would count those beyond the input, and nowhere else", () => {
  const less = (op: string, input: number, output: number, config: object, padding: readonly [number, number] = [0, 0]) => derivation({
    spec: { op, config, dims: 1 }, shapes: { x: [1, 1, input], y: [1, 1, output] }, padding: [padding], layer: { shapes: { weight: op.startsWith("conv") ? [1, 1, 1, 1, 3] : undefined } },
  } as unknown as Served, 0).less;
  expect(less("max_pool", 8, 2, { kernel: 3, stride: 4, ceil_mode: true })).toBe(1);
  expect(less("max_pool", 6, 6, { kernel: 1, stride: 1, ceil_mode: true }, [0, 2])).toBe(2);
  expect(less("max_pool", 7, 3, { kernel: 2, stride: 3, ceil_mode: true })).toBe(0);
  expect(less("max_pool", 7, 2, { kernel: 2, stride: 3 })).toBe(0);
  // Its formula ends with the padding of the far side: (4 − 1)·2 + 3 − 1 − 1 = 7.
  expect(less("conv_transpose", 4, 7, { stride: 2 }, [1, 1])).toBe(0);
});

describe("the page's value and the service's", () => {
  const of = (value: number, scale = Math.abs(value), doubt: Explanation["doubt"] = null) => ({ value, scale, doubt }) as Explanation;

  it("may differ where rounding decides, by as much as it may, and say why", () => {
    const kink = of(-2, 10, { low: -6, high: 6, endless: false, why: "either slope is right" });
    expect(verdict(kink, -8)).toBe("They differ by 6, and may: either slope is right.");
    expect([-8, 4, 1, -2].map((served) => agrees(kink, served))).toEqual([true, true, true, true]);
    expect([-8.1, 4.1, NaN, -Infinity].map((served) => agrees(kink, served))).toEqual([false, false, false, false]);
    expect(verdict(kink, -8.5)).toBe("They differ by 6.5.");
    const range = of(1e20, 1e40, { low: 0, high: 0, endless: true, why: "a sum leaves float32" });
    expect(verdict(range, Infinity)).toBe("They differ, and may: a sum leaves float32.");
    expect([Infinity, NaN, 2e20].map((served) => agrees({ ...range, scale: 1e20 }, served))).toEqual([true, true, false]);
  });

  it("agree within the rounding of float32, and say how far", () => {
    expect([agrees(of(1), 1 + 1e-6), agrees(of(1), 1.001), agrees(of(0, 100), 1e-4)]).toEqual([true, false, true]);
    expect(verdict(of(2), 2)).toBe("They agree.");
    expect(verdict(of(1), 1 + 2 ** -20)).toMatch(/^They agree, but for 9.5e−7\.$/);
    expect(verdict(of(1), 1.5)).toBe("They differ by 0.5.");
  });

  it("agree where float32 ends, and never because one of them is infinite", () => {
    expect(verdict(of(6e38), Infinity)).toBe("They agree: float32 ends at 3.4e38, and beyond is ∞.");
    expect([agrees(of(NaN), NaN), agrees(of(-Infinity), -Infinity), verdict(of(Infinity), Infinity)]).toEqual([true, true, "They agree."]);
    expect([agrees(of(Infinity), 5), agrees(of(5), Infinity), agrees(of(NaN), 0)]).toEqual([false, false, false]);
    expect(verdict(of(Infinity), 5)).toBe("They differ.");
  });
});

describe("numbers", () => {
  it("are short in cells and whole in the inspector", () => {
    expect([0, -0, 2, -1.5, 0.333, 12.34, 123.4, 12345, 0.001, NaN, -Infinity].map(brief)).toEqual(
      ["0", "0", "2", "−1.5", "0.33", "12.3", "123", "1e4", "1e−3", "NaN", "−∞"]);
    expect([0, 2, -2.42, 12.34, 0.04, -3e-9, 12345, -Infinity].map(coarse)).toEqual(["0", "2", "−2.4", "12", "≈0", "≈0", "1e4", "−∞"]);
    expect([1 / 3, 100, -2.5, 1e-7, 3e8].map(full)).toEqual(["0.3333333", "100", "−2.5", "1e−7", "3e8"]);
    expect([1 / 3, -0.0891, 12345.678, 0, 1.23456e-5].map(medium)).toEqual(["0.3333", "−0.0891", "12350", "0", "1.2e−5"]);
    expect([tiny(0), tiny(3.14e-9), scaled(1500, "FLOP"), scaled(12, "B")]).toEqual(["0", "3.1e−9", "1.5 kFLOP", "12 B"]);
  });

  it("are written into programs with no more digits than they need", () => {
    expect([0.1, 1 / 3, -3, 1e-7, NaN].map((v) => float(Math.fround(v)))).toEqual(["0.1", "0.33333334", "-3", "1e-7", "nan"]);
    expect(list([1, 2, 3], "", 5)).toBe("[\n    1, 2,\n    3,\n]");
    expect(python({ a: [true, null, "x"], b: 1.5 })).toBe('{"a": [True, None, "x"], "b": 1.5}');
  });
});

it("rows out of view are counted to the last, and those of which a part is hidden among them", () => {
  expect([414, 413, 400, 391, 46, 0].map((seen) => rowsBelow(18, 414, seen))).toEqual([0, 0, 1, 1, 16, 18]);
  expect(rowsBelow(0, 0, 0)).toBe(0);
  expect([0, 1, 1200].map(belowWords)).toEqual(["", "↓ 1 more row below", "↓ 1,200 more rows below"]);
});

it("a message is taken apart to the last byte", () => {
  const body = encode({ a: [1, -1, 300, 1.5, null, true], text: "x".repeat(40), data: new Uint8Array(300), deep: { dtype: "float32", data: new Uint8Array(4) } });
  const tokens = takeApart(body);
  const end = Math.max(...tokens.map(({ offset, length }) => offset + length));
  expect(end).toBe(body.length);
  expect(tokens.map(({ meaning }) => meaning)).toEqual(expect.arrayContaining(["map of 4", "list of 6", "−1".replace("−", "-"), "300 (uint16)", "1.5 (float64)", "null", "true", "300 bytes of data"]));
  expect(tokens.at(-1)).toMatchObject({ dtype: "float32", payload: 4 });
  expect(hex(body, tokens[0])).toBe("84");
});

it("coverage is even just where the stride divides the kernel", () => {
  expect(coverage(3, 2, 3)).toEqual([1, 1, 2, 1, 2, 1, 1]);
  expect(evenness(4, 2)).toEqual({ least: 2, most: 2, even: true });
  expect(evenness(5, 2)).toEqual({ least: 2, most: 3, even: false });
  expect(plane([1, 2])).toEqual([1, 2, 2, 4]);
});

it("samples are distinct, and a sweep's frames end with the last step", () => {
  expect(new Set(sample(50, 20, 3)).size).toBe(20);
  expect(sample(3, 20, 3).sort()).toEqual([0, 1, 2]);
  expect(stepsOf(9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(stepsOf(1024).length).toBeLessThanOrEqual(401);
  expect(stepsOf(1024).at(-1)).toBe(1024);
});

it("image settings come back from a link, and filters are balanced", () => {
  const settings = { ...FIRST_IMAGE, drawn: [0.5, -0.5], filters: ["drawn" as const], unit: null };
  expect(readImage(writeImage(settings))).toEqual(settings);
  expect(readImage(writeImage(FIRST_IMAGE))).toEqual(FIRST_IMAGE);
  for (const bad of ["", "1~2", "64~5~1~1~2~evil~none", "64~5~1~1~2~blur~x.1.1.1", `64~5~1~1~2~blur~none~${"1:".repeat(60)}`]) {
    expect(readImage(bad), bad).toBeUndefined();
  }
  for (const filter of FILTERS.filter((one) => one !== "drawn")) {
    const total = filterValues(FIRST_IMAGE, filter).reduce((sum, value) => sum + Math.abs(value), 0);
    expect(Math.abs(total - 2)).toBeLessThan(0.05);
  }
});

it("a stroke covers the cells between two that were reported", () => {
  expect(stroke(0, 3, 8)).toEqual([1, 2, 3]);
  expect(stroke(56, 7, 8)).toEqual([49, 42, 35, 28, 21, 14, 7]);
  expect(stroke(0, 20, 8)).toEqual([9, 10, 19, 20]);
  expect(stroke(9, 9, 8)).toEqual([]);
});

describe("the formulas above the grids", () => {
  const of = (op: string, config: object, bias = false) => Object.values(formulas({ ...start(op), config: { ...config }, bias })).join("; ");

  it("are those of the plain layers", () => {
    expect(of("conv", { stride: 2 })).toBe("Y = W ⋆ X; dX = Wᵀ dY,  dW = dY ⋆ X");
    expect(of("conv_transpose", {})).toBe("Y = Wᵀ X; dX = W ⋆ dY,  dW = X ⋆ dY");
    expect(of("avg_pool", { kernel: 2 })).toBe("Y = mean over each window of X; dX = Σ dY / count");
  });

  it("have the division of a mean over samples", () => {
    expect(of("conv", { grad_reduction: "mean" }, true)).toBe("Y = W ⋆ X + b; dX = Wᵀ dY,  dW = (dY ⋆ X) / N,  db = (Σ dY) / N");
    expect(of("conv_transpose", { grad_reduction: "mean", activation: "tanh" })).toBe("Y = φ(Wᵀ X); dX = W ⋆ (dY·φ′),  dW = (X ⋆ (dY·φ′)) / N");
  });

  it("have the bias, the activation with its slope, and the sign of a flipped kernel", () => {
    expect(of("conv", {}, true)).toBe("Y = W ⋆ X + b; dX = Wᵀ dY,  dW = dY ⋆ X,  db = Σ dY");
    expect(of("conv", { activation: "relu" })).toBe("Y = φ(W ⋆ X); dX = Wᵀ(dY·φ′),  dW = (dY·φ′) ⋆ X");
    expect(of("conv", { activation: { name: "elu", alpha: 2 }, flip_kernel: true }, true))
      .toBe("Y = φ(W ∗ X + b); dX = Wᵀ(dY·φ′),  dW = X ⋆ (dY·φ′),  db = Σ dY·φ′");
    expect(of("conv_transpose", { activation: "tanh", flip_kernel: true }, true))
      .toBe("Y = φ(Wᵀ X + b); dX = W ∗ (dY·φ′),  dW = (dY·φ′) ⋆ X,  db = Σ dY·φ′");
    expect(of("conv", { activation: "identity", flip_kernel: false })).toBe("Y = W ⋆ X; dX = Wᵀ dY,  dW = dY ⋆ X");
  });
});
