/** Pictures: the bundled sample, which is drawn by arithmetic, and the user's own, which stays in the browser. */

import { mustRead } from "../../core/readback";
import { uniform } from "../../data/rng";

/** Grey values from 0 to 1, row by row; the picture is square. */
export interface Grey {
  readonly size: number;
  readonly values: Float32Array;
}

/** A harbour of simple shapes: edges in every direction, fine stripes, smooth shade, some grain. */
export function sample(size: number): Grey {
  const grain = uniform(7);
  const values = Float32Array.from({ length: size * size }, (_, at) => {
    const [u, v] = [((at % size) + 0.5) / size, (Math.floor(at / size) + 0.5) / size];
    return Math.round(250 * Math.min(1, Math.max(0, scene(u, v) + (grain() - 0.5) * 0.02))) / 250;
  });
  return { size, values };
}

function scene(u: number, v: number): number {
  const sun = Math.hypot(u - 0.74, v - 0.25);
  if (sun < 0.13) return 0.96;
  if (v > 0.8) return 0.3 + 0.14 * Math.sin(70 * v + 9 * Math.sin(6 * u));
  const roof = Math.abs(u - 0.28) < (v - 0.2) * 0.75 && v < 0.42;
  if (roof) return 0.22;
  if (u > 0.12 && u < 0.44 && v >= 0.42) {
    const door = u > 0.24 && u < 0.33 && v > 0.6;
    const window = Math.hypot(u - 0.185, v - 0.53) < 0.038 || Math.hypot(u - 0.38, v - 0.53) < 0.038;
    return door || window ? 0.12 : 0.78;
  }
  const mast = Math.abs(u - 0.7) < 0.011 && v > 0.36;
  if (mast) return 0.1;
  const sail = u > 0.715 && u - 0.715 < (v - 0.4) * 0.62 && v > 0.4 && v < 0.68;
  if (sail) return 0.62 + 0.3 * (Math.floor((v - 0.4) * 36) % 2);
  const hull = v > 0.71 && v < 0.8 && Math.abs(u - 0.72) < 0.2 - (v - 0.71) * 0.8;
  if (hull) return 0.2;
  return 0.5 + 0.3 * v;
}

/** The middle square of a picture, made smaller and grey. Nothing is sent anywhere but to the service's own address. */
export async function fromBlob(blob: Blob, size: number): Promise<Grey> {
  mustRead();
  const bitmap = await createImageBitmap(blob);
  const side = Math.min(bitmap.width, bitmap.height);
  // To a half, and again, every browser takes the mean; of larger steps some take one pixel in many, and fine detail turns to stripes.
  let wide = size;
  while (wide * 2 <= Math.min(side, LARGEST)) wide *= 2;
  let context = square(wide);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, wide, wide);
  context.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, wide, wide);
  bitmap.close();
  for (; wide > size; wide /= 2) {
    const half = square(wide / 2);
    half.drawImage(context.canvas, 0, 0, wide / 2, wide / 2);
    context = half;
  }
  const { data } = context.getImageData(0, 0, size, size);
  const values = Float32Array.from({ length: size * size }, (_, i) =>
    (0.2126 * data[i * 4] + 0.7152 * data[i * 4 + 1] + 0.0722 * data[i * 4 + 2]) / 255);
  return { size, values };
}

/** Of the first step's canvas: a telephone's browser has room for it. */
const LARGEST = 2048;

function square(side: number): CanvasRenderingContext2D {
  const canvas = document.createElement("canvas");
  canvas.width = side;
  canvas.height = side;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.imageSmoothingQuality = "high";
  return context;
}

/** The first picture among what was dropped or pasted. */
export function pictureIn(items: DataTransfer | null): File | null {
  return Array.from(items?.files ?? []).find((file) => file.type.startsWith("image/")) ?? null;
}
