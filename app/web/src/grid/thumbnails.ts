/**
 * Planes of a tensor as small pictures to choose from. All of them are on one canvas behind the buttons:
 * every canvas is a layer of its own to the browser, and dozens of them made each frame several times dearer.
 */

import { h } from "../core/dom";
import { computed, effect, onCleanup, type Read, signal } from "../core/signal";
import { theme } from "../state/theme";
import type { Scale } from "./colour";
import { paintImage, type Raster, stamp } from "./raster";
import { screenRatio } from "./ratio";

export interface ThumbnailOptions {
  readonly count: number;
  readonly chosen: Read<number>;
  readonly label: (at: number) => string;
  readonly scale: Read<Scale>;
  readonly plane: (at: number) => Raster;
  /** Whether a plane has cells that are lit. */
  readonly lit: (at: number) => boolean;
  readonly choose: (at: number) => void;
}

/** In pixels: a picture's width, the least and greatest height, and what lies around it and between two. */
const WIDTH = 26;
const [LEAST, MOST] = [8, 52];
const PAD = 3;
const GAP = { across: 6, down: 3 };
const COLUMN = WIDTH + 2 * PAD + GAP.across;

export function thumbnails(options: ThumbnailOptions): HTMLElement {
  const columns = signal(0);
  const height = computed(() => {
    const { rows, cols } = options.plane(0);
    return Math.round(Math.min(MOST, Math.max(LEAST, (WIDTH * rows) / cols)));
  });
  const canvas = h("canvas", { "aria-hidden": "true" });
  const element = h("div", { class: "thumbnails", style: { "--tall": () => `${height()}px` } }, canvas,
    Array.from({ length: options.count }, (_, at) => h("button", {
      type: "button", "aria-label": options.label(at), "aria-pressed": () => String(options.chosen() === at),
      "data-lit": () => (options.lit(at) ? "1" : "0"), onClick: () => options.choose(at),
    }, h("span", { class: "thumbnail" }))));
  effect(() => {
    if (columns() === 0) return;
    const planes = Array.from({ length: options.count }, (_, at) => options.plane(at));
    paintStrip(canvas, planes, options.scale(), columns(), height());
  });
  const observer = new ResizeObserver(([entry]) => columns.set(Math.floor((entry.contentRect.width + GAP.across) / COLUMN)));
  observer.observe(element);
  onCleanup(() => observer.disconnect());
  return element;
}

/** Puts the planes to where the buttons stand. */
function paintStrip(canvas: HTMLCanvasElement, planes: readonly Raster[], scale: Scale, columns: number, tall: number): void {
  const device = (pixels: number) => Math.round(pixels * screenRatio());
  const row = tall + 2 * PAD + GAP.down;
  const [wide, high] = [Math.min(planes.length, columns) * COLUMN - GAP.across, Math.ceil(planes.length / columns) * row - GAP.down];
  const image = new ImageData(device(wide), device(high));
  planes.forEach((plane, at) => {
    const [x, y] = [(at % columns) * COLUMN + PAD, Math.floor(at / columns) * row + PAD];
    stamp(image, { x: device(x), y: device(y), width: device(WIDTH), height: device(tall) }, plane, scale, theme().name);
  });
  paintImage(canvas, image);
  canvas.style.width = `${wide}px`;
  canvas.style.height = `${high}px`;
}
