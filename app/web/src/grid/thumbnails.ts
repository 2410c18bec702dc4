/** Planes of a tensor as small pictures to choose from. */

import { h } from "../core/dom";
import { effect, type Read } from "../core/signal";
import { theme } from "../state/theme";
import { level, type Scale, table } from "./colour";

export interface Raster {
  readonly rows: number;
  readonly cols: number;
  readonly base: number;
  readonly values: ArrayLike<number>;
}

export function paintRaster(canvas: HTMLCanvasElement, raster: Raster, scale: Scale): void {
  const { rows, cols, base, values } = raster;
  if (canvas.width !== cols) canvas.width = cols;
  if (canvas.height !== rows) canvas.height = rows;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(cols, rows);
  const { bytes } = table(theme().name, scale.map);
  for (let i = 0; i < rows * cols; i += 1) {
    const at = level(scale, values[base + i]) * 3;
    image.data[i * 4] = bytes[at];
    image.data[i * 4 + 1] = bytes[at + 1];
    image.data[i * 4 + 2] = bytes[at + 2];
    image.data[i * 4 + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

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

export function thumbnails(options: ThumbnailOptions): HTMLElement {
  return h("div", { class: "thumbnails" }, Array.from({ length: options.count }, (_, at) => {
    const canvas = h("canvas", { "aria-hidden": "true" });
    effect(() => {
      const raster = options.plane(at);
      paintRaster(canvas, raster, options.scale());
      canvas.style.setProperty("aspect-ratio", `${raster.cols} / ${raster.rows}`);
    });
    return h("button", {
      type: "button", "aria-label": options.label(at), "aria-pressed": () => String(options.chosen() === at),
      "data-lit": () => (options.lit(at) ? "1" : "0"), onClick: () => options.choose(at),
    }, canvas);
  }));
}
