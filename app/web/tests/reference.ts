/**
 * The layers by definition, in plain loops over samples, channels, outputs and taps, written without a
 * look at the page's lists: padding is a real, larger array here, and gradients are scattered.
 */

import { flat, size, unravel } from "../src/math/shape";

export interface Case {
  op: string;
  dims: number;
  config: Record<string, unknown>;
  shapes: Record<"x" | "y", number[]> & { weight?: number[] };
  padding: [number, number][];
  given: { x: Float64Array; dy: Float64Array; weight?: Float64Array; bias?: Float64Array };
}

function* cells(shape: number[]): Generator<number[]> {
  for (let i = 0; i < size(shape); i += 1) yield unravel(shape, i);
}

/** For each cell of the padded array: the flat index in x that it copies, or -1. */
function padded(one: Case): { shape: number[]; from: number[] } {
  const { x } = one.shapes;
  const shape = [x[0], x[1], ...x.slice(2).map((n, a) => n + one.padding[a][0] + one.padding[a][1])];
  const from = [...cells(shape)].map(([n, c, ...p]) => {
    const at = p.map((v, a) => wrap(v - one.padding[a][0], x[a + 2], String(one.config.padding_mode ?? "zeros")));
    return at.includes(-1) ? -1 : flat(x, [n, c, ...at]);
  });
  return { shape, from };
}

function wrap(p: number, n: number, mode: string): number {
  if (p >= 0 && p < n) return p;
  if (mode === "circular") return (p + n * 8) % n;
  if (mode === "replicate") return Math.min(n - 1, Math.max(0, p));
  if (mode === "reflect") return p < 0 ? -p : 2 * (n - 1) - p;
  return -1;
}

export function convolve(one: Case) {
  const { config, shapes, given } = one;
  const [stride, dilation] = [config.stride as number[], config.dilation as number[]];
  const groups = config.groups as number;
  const transposed = one.op === "conv_transpose";
  const weightShape = shapes.weight!;
  const weight = given.weight!;
  const taps = weightShape.slice(2);
  const outPerGroup = shapes.y[1] / groups;
  const inPerGroup = shapes.x[1] / groups;
  const y = new Float64Array(size(shapes.y));
  const dx = new Float64Array(given.x.length);
  const dweight = new Float64Array(weight.length);
  const dbias = new Float64Array(shapes.y[1]);
  const share = config.grad_reduction === "mean" ? 1 / shapes.x[0] : 1;
  const ext = padded(transposed ? { ...one, shapes: { x: shapes.x, y: shapes.y }, padding: one.padding.map(() => [0, 0]) } : one);

  const meet = (xi: number, wi: number, yi: number) => {
    y[yi] += given.x[xi] * weight[wi];
    dx[xi] += given.dy[yi] * weight[wi];
    dweight[wi] += given.dy[yi] * given.x[xi] * share;
  };
  const flipped = (k: number[]) => (config.flip_kernel ? k.map((v, a) => taps[a] - 1 - v) : k);

  for (const [n, o, ...q] of cells(shapes.y)) {
    const yi = flat(shapes.y, [n, o, ...q]);
    y[yi] += given.bias![o];
    dbias[o] += given.dy[yi] * share;
    if (transposed) continue;
    const group = Math.floor(o / outPerGroup);
    for (let i = 0; i < inPerGroup; i += 1) {
      for (const k of cells(taps)) {
        const p = q.map((v, a) => v * stride[a] + k[a] * dilation[a]);
        const xi = ext.from[flat(ext.shape, [n, group * inPerGroup + i, ...p])];
        if (xi >= 0) meet(xi, flat(weightShape, [o, i, ...flipped(k)]), yi);
      }
    }
  }
  if (transposed) {
    for (const [n, c, ...q] of cells(shapes.x)) {
      const group = Math.floor(c / inPerGroup);
      for (let j = 0; j < outPerGroup; j += 1) {
        for (const k of cells(taps)) {
          const p = q.map((v, a) => v * stride[a] + k[a] * dilation[a] - one.padding[a][0]);
          if (p.some((v, a) => v < 0 || v >= shapes.y[a + 2])) continue;
          const yi = flat(shapes.y, [n, group * outPerGroup + j, ...p]);
          meet(flat(shapes.x, [n, c, ...q]), flat(weightShape, [c, j, ...flipped(k)]), yi);
        }
      }
    }
  }
  return { y, dx, dweight, dbias };
}

export function pool(one: Case) {
  const { config, shapes, given } = one;
  const [kernel, stride, dilation] = ["kernel", "stride", "dilation"].map((f) => config[f] as number[]);
  const { shape, from } = padded({ ...one, config: {} });
  const y = new Float64Array(size(shapes.y));
  const dx = new Float64Array(given.x.length);
  for (const [n, c, ...q] of cells(shapes.y)) {
    const yi = flat(shapes.y, [n, c, ...q]);
    const window: { value: number; x: number }[] = [];
    for (const k of cells(kernel)) {
      const p = q.map((v, a) => v * stride[a] + k[a] * dilation[a]);
      if (p.some((v, a) => v >= shape[a + 2])) continue;
      const x = from[flat(shape, [n, c, ...p])];
      window.push({ value: x < 0 ? 0 : given.x[x], x });
    }
    const dy = given.dy[yi];
    if (one.op === "max_pool") {
      const compete = config.pad_value === "zero" ? window : window.filter((e) => e.x >= 0);
      y[yi] = compete.length ? Math.max(...compete.map((e) => e.value)) : -Infinity;
      const best = compete.filter((e) => e.value === y[yi]);
      for (const e of config.ties === "all" ? best : best.slice(0, 1)) if (e.x >= 0) dx[e.x] += dy;
    } else if (one.op === "avg_pool") {
      const real = window.filter((e) => e.x >= 0).length;
      const divisor = (config.divisor_override as number | null) ?? (config.count_include_pad ? window.length : real);
      for (const e of window) {
        y[yi] += e.value / divisor;
        if (e.x >= 0) dx[e.x] += dy / divisor;
      }
    } else {
      const p = config.p as number;
      y[yi] = window.reduce((sum, e) => sum + Math.abs(e.value) ** p, 0) ** (1 / p);
      for (const e of window) {
        if (e.x < 0 || e.value === 0 || y[yi] === 0) continue;
        dx[e.x] += dy * Math.sign(e.value) * Math.abs(e.value) ** (p - 1) * y[yi] ** (1 - p);
      }
    }
  }
  return { y, dx };
}
