/** Still pictures of a view: PNG by way of a canvas, SVG as text. */

import { mustRead } from "../core/readback";
import type { Theme } from "../grid/draw";
import { CanvasPainter, SvgPainter } from "../grid/painter";
import { drawSheet, measure, type Sheet } from "./panels";

export function toCanvas(sheet: Sheet, theme: Theme, ratio: number): HTMLCanvasElement {
  const { width, height } = measure(sheet);
  const canvas = document.createElement("canvas");
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  drawSheet(new CanvasPainter(context), (x, y) => context.setTransform(ratio, 0, 0, ratio, x * ratio, y * ratio), sheet, theme);
  return canvas;
}

export function toPng(sheet: Sheet, theme: Theme): Promise<Blob> {
  mustRead();
  const canvas = toCanvas(sheet, theme, 2);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for this browser"))), "image/png");
  });
}

export function toSvg(sheet: Sheet, theme: Theme): Blob {
  const { width, height } = measure(sheet);
  const painter = new SvgPainter();
  drawSheet(painter, (x, y) => painter.moveTo(x, y), sheet, theme);
  return new Blob([painter.done(width, height)], { type: "image/svg+xml" });
}
