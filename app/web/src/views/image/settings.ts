/** What the Image view is set to, and its filters by name. */

import { PRESETS } from "../../data/presets";

export const SIZES = [48, 64, 96, 128] as const;
export const KERNELS = [3, 5, 7] as const;
export const FILTERS = ["sobelx", "sobely", "laplace", "blur", "sharpen", "gabor0", "gabor1", "gabor2", "gabor3", "drawn"] as const;
export type Filter = (typeof FILTERS)[number];

export const FILTER_LABELS: Record<Filter, string> = {
  sobelx: "Sobel →", sobely: "Sobel ↓", laplace: "Laplace", blur: "Blur", sharpen: "Sharpen",
  gabor0: "Gabor 0°", gabor1: "Gabor 45°", gabor2: "Gabor 90°", gabor3: "Gabor 135°", drawn: "Drawn",
};

export interface Unit {
  readonly stage: "feature" | "pooled";
  readonly channel: number;
  readonly row: number;
  readonly col: number;
}

export interface ImageSettings {
  readonly size: number;
  readonly kernel: number;
  readonly stride: number;
  readonly relu: boolean;
  readonly pool: number;
  readonly filters: readonly Filter[];
  /** The drawn filter's values, row by row. */
  readonly drawn: readonly number[];
  readonly unit: Unit | null;
}

export const FIRST_IMAGE: ImageSettings = {
  size: 64, kernel: 5, stride: 1, relu: true, pool: 2, filters: ["sobelx", "sobely", "laplace", "gabor1"],
  drawn: [], unit: { stage: "pooled", channel: 0, row: 16, col: 22 },
};

type Shape2 = (size: number, r: number, c: number) => number;

const plane = (size: number) => ({ depth: 1, rows: size, cols: size, first: 0, second: 0, next: () => 0 });
const gabor = (which: number): Shape2 => (size, r, c) => PRESETS.gabor.make({ ...plane(size), second: which }, 0, r, c);
const centre = (size: number, r: number, c: number) => (r === (size - 1) / 2 && c === (size - 1) / 2 ? 1 : 0);
const bump = (size: number, r: number, c: number) => {
  const [y, x] = [r - (size - 1) / 2, c - (size - 1) / 2];
  return Math.exp((-(x * x + y * y) * 5) / (size * size));
};

const SHAPES: Record<Exclude<Filter, "drawn">, Shape2> = {
  sobelx: (size, r, c) => PRESETS.sobelx.make(plane(size), 0, r, c),
  sobely: (size, r, c) => PRESETS.sobely.make(plane(size), 0, r, c),
  laplace: (size, r, c) => bump(size, r, c) - 2.2 * bump(size * 0.55, r - size * 0.225, c - size * 0.225),
  blur: bump,
  sharpen: (size, r, c) => 2 * centre(size, r, c) - bump(size, r, c) / 3,
  gabor0: gabor(0), gabor1: gabor(1), gabor2: gabor(2), gabor3: gabor(3),
};

/** Scaled so that their absolute values add up to 2: maps of all filters share one range. */
export function filterValues(settings: ImageSettings, filter: Filter): Float32Array {
  const { kernel, drawn } = settings;
  const cells = kernel * kernel;
  if (filter === "drawn") return Float32Array.from({ length: cells }, (_, at) => drawn[at] ?? 0);
  const raw = Array.from({ length: cells }, (_, at) => SHAPES[filter](kernel, Math.floor(at / kernel), at % kernel));
  // Filters that look for change must not answer to what is flat.
  const mean = filter === "laplace" || filter.startsWith("gabor") ? raw.reduce((a, b) => a + b) / cells : 0;
  const flat = raw.map((value) => value - mean);
  const total = flat.reduce((sum, value) => sum + Math.abs(value), 0) || 1;
  return Float32Array.from(flat, (value) => Math.round((2000 * value) / total) / 1000);
}

export function writeImage(of: ImageSettings): string {
  const unit = of.unit ? `${of.unit.stage[0]}.${of.unit.channel}.${of.unit.row}.${of.unit.col}` : "none";
  return [of.size, of.kernel, of.stride, of.relu ? 1 : 0, of.pool, of.filters.join("."), unit, of.drawn.join(":")].join("~");
}

export function readImage(text: string): ImageSettings | undefined {
  const [size, kernel, stride, relu, pool, filters, unit, drawn = ""] = text.split("~");
  const names = (filters ?? "").split(".") as Filter[];
  const values = drawn === "" ? [] : drawn.split(":").map(Number);
  const at = /^([fp])\.(\d{1,2})\.(\d{1,3})\.(\d{1,3})$/.exec(unit ?? "");
  const good = (SIZES as readonly number[]).includes(Number(size)) && (KERNELS as readonly number[]).includes(Number(kernel)) &&
    ["1", "2"].includes(stride) && ["0", "1"].includes(relu) && ["2", "3"].includes(pool) &&
    names.length >= 1 && names.length <= FILTERS.length && names.every((name) => FILTERS.includes(name)) &&
    values.length <= 49 && values.every((value) => Number.isFinite(value)) && (at !== null || unit === "none");
  if (!good) return undefined;
  return {
    size: Number(size), kernel: Number(kernel), stride: Number(stride), relu: relu === "1", pool: Number(pool), filters: names,
    drawn: values.map(Math.fround),
    unit: at && { stage: at[1] === "f" ? "feature" : "pooled", channel: Number(at[2]), row: Number(at[3]), col: Number(at[4]) },
  };
}
