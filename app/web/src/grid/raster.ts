/** Planes as pixels. */

import { level, type Scale, table } from "./colour";

export interface Raster {
  readonly rows: number;
  readonly cols: number;
  /** Where its first cell is among the values; absent: they begin with it. */
  readonly base?: number;
  readonly values: ArrayLike<number>;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Writes a plane's cells over the pixels of a box, each pixel that of the cell under its middle. */
export function stamp(image: ImageData, box: Box, { rows, cols, base = 0, values }: Raster, scale: Scale, theme: "light" | "dark"): void {
  const { pixels } = table(theme, scale.map);
  const out = new Uint32Array(image.data.buffer);
  const columns = Int32Array.from({ length: box.width }, (_, at) => Math.floor(((at + 0.5) * cols) / box.width));
  for (let row = 0; row < box.height; row += 1) {
    const from = base + Math.floor(((row + 0.5) * rows) / box.height) * cols;
    const to = (box.y + row) * image.width + box.x;
    for (let at = 0; at < box.width; at += 1) out[to + at] = pixels[level(scale, values[from + columns[at]])];
  }
}

/** A plane with one pixel for each cell. */
export function rasterImage(plane: Raster, scale: Scale, theme: "light" | "dark"): ImageData {
  const image = new ImageData(plane.cols, plane.rows);
  stamp(image, { x: 0, y: 0, width: plane.cols, height: plane.rows }, plane, scale, theme);
  return image;
}

const pictures = new WeakMap<Raster, { scale: Scale; theme: string; canvas: HTMLCanvasElement }>();

/** The same to draw from, made once for all that draw the plane. */
export function picture(plane: Raster, scale: Scale, theme: "light" | "dark"): HTMLCanvasElement {
  const known = pictures.get(plane);
  if (known?.scale === scale && known.theme === theme) return known.canvas;
  const canvas = document.createElement("canvas");
  paintImage(canvas, rasterImage(plane, scale, theme));
  pictures.set(plane, { scale, theme, canvas });
  return canvas;
}

/** Gives a canvas a size, which empties it; one that has it already is left alone, since that is dear. */
export function resize(canvas: HTMLCanvasElement, width: number, height: number): boolean {
  if (canvas.width === width && canvas.height === height) return false;
  Object.assign(canvas, { width, height });
  return true;
}

/** Makes a canvas the size of its content, which CSS may enlarge. */
export function paintImage(canvas: HTMLCanvasElement, image: ImageData): void {
  resize(canvas, image.width, image.height);
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}
