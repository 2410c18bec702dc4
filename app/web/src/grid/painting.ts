/** Keeps a canvas equal to a plane and its light. */

import { effect, onCleanup, type Read } from "../core/signal";
import { theme } from "../state/theme";
import { drawPlane, extent, type Plane, type Theme } from "./draw";
import { drawLight, type Light, litBoxes } from "./light";
import { CanvasPainter } from "./painter";

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

/** A plane that is drawn once for each change of its data, to be copied from. */
function sheet(faded: boolean): (now: Drawn) => HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  let drawn: readonly unknown[] = [];
  return (now) => {
    if (now.every((value, at) => value === drawn[at])) return canvas;
    drawn = now;
    const [plane, cell, colours, ratio] = now;
    Object.assign(canvas, size(now));
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawPlane(new CanvasPainter(context), plane, cell, colours, { faded });
    return canvas;
  };
}

/** Gives a canvas the size that it needs, which also empties it. */
function fit(canvas: HTMLCanvasElement, now: Drawn): void {
  const { width, height } = size(now);
  if (canvas.width === width && canvas.height === height) {
    canvas.getContext("2d")!.clearRect(0, 0, width, height);
    return;
  }
  const onPage = extent(now[0], now[1]);
  Object.assign(canvas, { width, height });
  canvas.style.width = `${onPage.width}px`;
  canvas.style.height = `${onPage.height}px`;
}

/** A change of light only copies cells from the two sheets, and lays its marks over them. */
export function paintWhenChanged(canvas: HTMLCanvasElement, { plane, light, cell }: Painted): void {
  const [full, pale] = [sheet(false), sheet(true)];
  const context = canvas.getContext("2d")!;
  let frame = 0;
  const paint = () => {
    frame = 0;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const now: Drawn = [plane(), cell(), theme(), ratio];
    const { lit } = light();
    context.resetTransform();
    fit(canvas, now);
    context.drawImage(lit ? pale(now) : full(now), 0, 0);
    context.scale(ratio, ratio);
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
    frame ||= requestAnimationFrame(paint);
  });
  onCleanup(() => cancelAnimationFrame(frame));
}
