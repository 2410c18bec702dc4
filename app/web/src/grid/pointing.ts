/** Pointers on a grid: choosing a cell, and painting over cells with a mouse, a pen or a finger. */

import { batch } from "../core/signal";
import { cellAt } from "./draw";
import type { GridOptions } from "./view";

export type OpenEditor = (index: number, text: string) => void;

/** The value that painting sets; null where the grid is not to be painted on. */
export function brushOf(options: GridOptions): number | null {
  return options.onEdit ? (options.brush?.() ?? null) : null;
}

/** Cells of a plane of `cols` columns on the straight line between two of them, the first left out. */
export function between(from: number, to: number, cols: number): number[] {
  const [r, c] = [Math.floor(from / cols), from % cols];
  const [down, right] = [Math.floor(to / cols) - r, (to % cols) - c];
  const steps = Math.max(Math.abs(down), Math.abs(right));
  return Array.from({ length: steps }, (_, at) => {
    const part = (at + 1) / steps;
    return (r + Math.round(down * part)) * cols + c + Math.round(right * part);
  });
}

/**
 * While there is a brush the style sheet keeps a finger's drag from scrolling (`touch-action`), or the browser would
 * take the drag for itself after a few pixels. The stroke's pointer is captured, so that the stroke goes on beside the grid.
 */
export function pointing(element: HTMLElement, canvas: HTMLCanvasElement, options: GridOptions, open: OpenEditor): void {
  const find = (event: PointerEvent | MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return cellAt(options.plane(), options.cell(), event.clientX - box.left, event.clientY - box.top);
  };
  let last = -1;
  /** The stroke under way: whose it is, and the cell that it has come to. */
  let stroke: { pointer: number; at: number } | null = null;
  const paint = (cells: readonly number[]) => {
    const brush = brushOf(options);
    if (brush !== null) batch(() => cells.forEach((index) => options.onEdit!(index, brush)));
  };
  element.addEventListener("pointermove", (event) => {
    if (stroke && stroke.pointer !== event.pointerId) return;
    const index = find(event);
    if (index === last) return;
    last = index;
    if (stroke && index >= 0) {
      // A quick stroke reports few of the cells that it crosses; one that comes back in begins anew there.
      paint(stroke.at < 0 ? [index] : between(stroke.at, index, options.plane().cols));
    }
    if (stroke) stroke.at = index;
    options.onHover?.(index);
  });
  element.addEventListener("pointerleave", () => {
    last = -1;
    options.onHover?.(-1);
  });
  element.addEventListener("pointerdown", (event) => {
    const index = find(event);
    if (index < 0 || stroke) return;
    options.onSelect?.(index);
    options.onPress?.(index);
    if (brushOf(options) === null || event.button !== 0) return;
    event.preventDefault();
    // Which the line above keeps the browser from doing: the grid that was painted on is the one that keys go to.
    element.focus({ preventScroll: true });
    element.setPointerCapture(event.pointerId);
    stroke = { pointer: event.pointerId, at: index };
    paint([index]);
  });
  // Comes after the pointer's up and after its cancel alike.
  element.addEventListener("lostpointercapture", () => {
    stroke = null;
  });
  element.addEventListener("dblclick", (event) => {
    const index = find(event);
    if (index >= 0 && options.onEdit) open(index, "");
  });
}
