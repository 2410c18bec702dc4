/** Keeps a canvas equal to a plane and its light. */

import { effect, onCleanup, type Read } from "../core/signal";
import { theme } from "../state/theme";
import { drawPlane, extent, type Plane, type Theme } from "./draw";
import { drawLight, type Light, litBoxes } from "./light";
import { CanvasPainter } from "./painter";
import { resize } from "./raster";
import { screenRatio } from "./ratio";

export interface Painted {
  readonly plane: Read<Plane>;
  readonly light: Read<Light>;
  readonly cell: Read<number>;
}

type Drawn = readonly [plane: Plane, cell: number, theme: Theme, ratio: number];

function size([plane, cell, , ratio]: Drawn): { width: number; height: number } {
  const { width, height } = extent(plane, cell);
  return { width: Math.round(width * ratio), height: Math.round(height * ratio) };
}

/** Gives a canvas the size that it needs, with nothing on it; true where it had another. */
function empty(canvas: HTMLCanvasElement, now: Drawn): boolean {
  const { width, height } = size(now);
  if (resize(canvas, width, height)) return true;
  const context = canvas.getContext("2d")!;
  context.resetTransform();
  context.clearRect(0, 0, width, height);
  return false;
}

/** A plane that is drawn once for each change of its data, to be copied from. */
function sheet(faded: boolean): (now: Drawn) => HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  let drawn: readonly unknown[] = [];
  return (now) => {
    if (now.every((value, at) => value === drawn[at])) return canvas;
    drawn = now;
    const [plane, cell, colours, ratio] = now;
    empty(canvas, now);
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawPlane(new CanvasPainter(context), plane, cell, colours, { faded });
    return canvas;
  };
}

/** Gives a canvas its size on the page. */
function place(canvas: HTMLCanvasElement, [plane, cell]: Drawn): void {
  const { width, height } = extent(plane, cell);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

/** A change of light only copies cells from the two sheets, and lays its marks over them. */
export function paintWhenChanged(canvas: HTMLCanvasElement, { plane, light, cell }: Painted): void {
  const [full, pale] = [sheet(false), sheet(true)];
  const context = canvas.getContext("2d")!;
  let frame = 0;
  const paint = () => {
    frame = 0;
    const now: Drawn = [plane(), cell(), theme(), screenRatio()];
    const { lit } = light();
    if (empty(canvas, now)) place(canvas, now);
    context.drawImage(lit ? pale(now) : full(now), 0, 0);
    context.scale(now[3], now[3]);
    if (lit) {
      context.save();
      context.beginPath();
      for (const box of litBoxes(now[0], lit, now[1])) context.rect(...box);
      context.clip();
      context.resetTransform();
      context.drawImage(full(now), 0, 0);
      context.restore();
    }
    drawLight(new CanvasPainter(context), now[0], light(), now[1], now[2]);
  };
  effect(() => {
    plane();
    light();
    cell();
    theme();
    screenRatio();
    frame ||= requestAnimationFrame(paint);
  });
  onCleanup(() => cancelAnimationFrame(frame));
}
