/** How many of the screen's pixels a canvas has to one of the page's: others after a zoom, and on another screen. */

import { type Read, signal } from "../core/signal";

/** More than three nobody sees. */
const measured = () => Math.min(3, window.devicePixelRatio || 1);

const now = signal(measured());
const measure = () => now.set(measured());

/** A window that is moved to another screen keeps its size; such a query tells of the first change away from what it names. */
function follow(): void {
  matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`).addEventListener("change", () => {
    measure();
    follow();
  }, { once: true });
}

follow();
addEventListener("resize", measure);

export const screenRatio: Read<number> = () => now();
