/** Still pictures of a view: PNG by way of a canvas, SVG as text. */

import type { Theme } from "../grid/draw";
import { CanvasPainter, SvgPainter } from "../grid/painter";
import { drawPanels, measure, type Panel } from "./panels";

type Rows = readonly (readonly Panel[])[];

export function toCanvas(rows: Rows, theme: Theme, ratio: number): HTMLCanvasElement {
  const { width, height } = measure(rows);
  const canvas = document.createElement("canvas");
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  drawPanels(new CanvasPainter(context), (x, y) => context.setTransform(ratio, 0, 0, ratio, x * ratio, y * ratio), rows, theme);
  return canvas;
}

export function toPng(rows: Rows, theme: Theme): Promise<Blob> {
  const canvas = toCanvas(rows, theme, 2);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for this browser"))), "image/png");
  });
}

export function toSvg(rows: Rows, theme: Theme): Blob {
  const { width, height } = measure(rows);
  const painter = new SvgPainter();
  drawPanels(painter, (x, y) => painter.moveTo(x, y), rows, theme);
  return new Blob([painter.done(width, height)], { type: "image/svg+xml" });
}
