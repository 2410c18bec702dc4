/** Keys that work wherever the focus is, as long as nothing is being typed. */

import type { App } from "./state/app";
import { isConvolution } from "./state/spec";
import { SPACE } from "./math/layer";
import { togglePlay } from "./views/trace/transport";

const TYPED = "input:not([type=range]), select, textarea, [contenteditable]";
const PRESSED = `${TYPED}, button, summary, a[href]`;

function turnPage(app: App, by: number): void {
  const active = app.active();
  const served = app.session.served();
  if (!active || !served) return;
  const shape = app.shapes()[SPACE[active.role] === "y" ? "y" : "x"]!;
  const both = !isConvolution(served.spec.op);
  const [key, space] = SPACE[active.role] === "y" ? (["o", "y"] as const) : (["c", "x"] as const);
  app.showChannel(key, (app.pick()[key] + by + shape[1]) % shape[1]);
  app.carry(1, app.pick()[key], both ? undefined : [space]);
}

function sweepBy(app: App, by: number): void {
  app.playing.set(false);
  app.hover.set(null);
  app.step.set(Math.min(app.steps(), Math.max(0, (app.step() ?? 0) + by)));
}

export function keyboard(app: App): void {
  const keys: Record<string, () => void> = {
    f: () => app.direction.set("forward"),
    b: () => app.direction.set("backward"),
    " ": () => togglePlay(app),
    "[": () => turnPage(app, -1),
    "]": () => turnPage(app, 1),
    ",": () => sweepBy(app, -1),
    ".": () => sweepBy(app, 1),
    Escape: () => {
      app.endSweep();
      app.unpin();
    },
    "?": () => {
      const help = document.querySelector<HTMLDetailsElement>(".key details");
      if (help) help.open = !help.open;
    },
  };
  document.addEventListener("keydown", (event) => {
    const target = event.target as Element;
    const action = keys[event.key];
    if (!action || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (app.view() !== "trace" || target.matches(event.key === " " ? PRESSED : TYPED)) return;
    event.preventDefault();
    action();
  });
}
