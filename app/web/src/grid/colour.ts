/**
 * Colour maps, interpolated in OKLab so that equal steps of value look like equal steps of colour.
 * Diverging: blue below zero, orange above, paper at zero, for eyes of every kind. Sequential: paper to ink.
 * Grey: as pictures are, whatever the theme.
 */

type Triple = readonly [number, number, number];

export type MapName = "diverging" | "sequential" | "grey";

const STOPS: Record<"light" | "dark", Record<MapName, readonly string[]>> = {
  light: {
    diverging: ["#0b3c7d", "#2f74bf", "#8fb9e3", "#f7f6f3", "#f2b478", "#d2691e", "#7d2f06"],
    sequential: ["#f7f6f3", "#cfdcd9", "#8fb5b3", "#4b8488", "#1d4f5b", "#0a2733"],
    grey: ["#0c0d0f", "#fbfaf8"],
  },
  dark: {
    diverging: ["#b9dcff", "#5fa3ea", "#2b5c98", "#1f2226", "#96501c", "#e58d3f", "#ffdcae"],
    sequential: ["#1f2226", "#25464d", "#327079", "#52a0a3", "#93cbc4", "#e6f7ee"],
    grey: ["#0c0d0f", "#fbfaf8"],
  },
};

const linear = (c: number) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const gamma = (c: number) => (c <= 0.0031308 ? c * 12.92 : 1.055 * c ** (1 / 2.4) - 0.055);

function hexToLinear(hex: string): Triple {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255].map((c) => linear(c / 255)) as unknown as Triple;
}

/** Björn Ottosson's OKLab matrices. */
function toLab([r, g, b]: Triple): Triple {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function toBytes([L, a, b]: Triple): Triple {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const rgb = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return rgb.map((c) => Math.round(255 * gamma(Math.min(1, Math.max(0, c))))) as unknown as Triple;
}

export const LEVELS = 256;

/** Relative luminance as WCAG has it, and where black and white stand out from it alike: 4.58 to 1. */
const luminance = ([r, g, b]: Triple) =>
  0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const EVEN = Math.sqrt(1.05 * 0.05) - 0.05;

/** What is no number has a colour of its own, which no number has. */
const NOT_A_NUMBER = { level: LEVELS - 1, colour: "#8250a8" };

/** Levels 0 to 254 are numbers: an odd count, so that zero is in the middle of a diverging map. */
export class Table {
  /** Red, green, blue and opaque; and the same bytes as one number for each level, as pixels are copied. */
  readonly bytes = new Uint8Array(LEVELS * 4).fill(255);
  readonly pixels = new Uint32Array(this.bytes.buffer);
  readonly css: string[] = [];
  private readonly light: boolean[] = [];

  constructor(stops: readonly string[]) {
    const labs = stops.map((stop) => toLab(hexToLinear(stop)));
    for (let level = 0; level < LEVELS; level += 1) {
      const place = (Math.min(level, LEVELS - 2) / (LEVELS - 2)) * (labs.length - 1);
      const at = Math.min(Math.floor(place), labs.length - 2);
      const mix = (axis: 0 | 1 | 2) => labs[at][axis] + (labs[at + 1][axis] - labs[at][axis]) * (place - at);
      const lab: Triple = level === NOT_A_NUMBER.level ? toLab(hexToLinear(NOT_A_NUMBER.colour)) : [mix(0), mix(1), mix(2)];
      const rgb = toBytes(lab);
      this.bytes.set(rgb, level * 4);
      this.css.push(`rgb(${rgb.join(" ")})`);
      this.light.push(luminance(rgb) > EVEN);
    }
  }

  /** The colour of text that can be read on a level. */
  ink(level: number): string {
    return this.light[level] ? "#000000" : "#ffffff";
  }
}

const tables = new Map<string, Table>();

export function table(theme: "light" | "dark", name: MapName): Table {
  const key = `${theme} ${name}`;
  let found = tables.get(key);
  if (!found) tables.set(key, (found = new Table(STOPS[theme][name])));
  return found;
}

/** How numbers become levels of a map. */
export interface Scale {
  readonly map: MapName;
  readonly low: number;
  readonly high: number;
}

export function level(scale: Scale, value: number): number {
  if (Number.isNaN(value)) return NOT_A_NUMBER.level;
  const span = scale.high - scale.low;
  const part = span > 0 ? (value - scale.low) / span : scale.map === "diverging" ? 0.5 : 0;
  return Math.round(Math.min(1, Math.max(0, part)) * (LEVELS - 2));
}

/** Symmetric about zero for gradients, weights and whatever has both signs; otherwise from the least up. */
export function scaleOf(values: ArrayLike<number>, signed: boolean): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [0, 0];
  if (signed || low < 0) {
    const reach = Math.max(Math.abs(low), Math.abs(high));
    return { map: "diverging", low: -reach, high: reach };
  }
  return { map: "sequential", low: Math.min(0, low), high };
}
