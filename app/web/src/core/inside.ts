/** Moves what is laid over the page sideways so that no part of it is outside the window. */
export function keepInside(panel: HTMLElement): void {
  panel.style.setProperty("translate", "0 0");
  const box = panel.getBoundingClientRect();
  const over = Math.max(0, box.right - document.documentElement.clientWidth + 8);
  const under = Math.max(0, 8 - box.left);
  panel.style.setProperty("translate", `${under - over}px 0`);
}
