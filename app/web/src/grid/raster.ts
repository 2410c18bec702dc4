/** Planes as pixels, one for each cell. */

import { level, type Scale, table } from "./colour";

export interface Raster {
  readonly rows: number;
  readonly cols: number;
  readonly base: number;
  readonly values: ArrayLike<number>;
}

/** Planes of one size below each other, in the colours of `scale`. */
export function rasterImage(planes: readonly Raster[], scale: Scale, theme: "light" | "dark"): ImageData {
  const { rows, cols } = planes[0];
  const image = new ImageData(cols, rows * planes.length);
  const { bytes } = table(theme, scale.map);
  let to = 0;
  for (const { base, values } of planes) {
    for (let i = 0; i < rows * cols; i += 1) {
      const at = level(scale, values[base + i]) * 3;
      image.data[to] = bytes[at];
      image.data[to + 1] = bytes[at + 1];
      image.data[to + 2] = bytes[at + 2];
      image.data[to + 3] = 255;
      to += 4;
    }
  }
  return image;
}

/** Makes a canvas the size of its content, which CSS may enlarge. */
export function paintImage(canvas: HTMLCanvasElement, image: ImageData): void {
  if (canvas.width !== image.width) canvas.width = image.width;
  if (canvas.height !== image.height) canvas.height = image.height;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}
