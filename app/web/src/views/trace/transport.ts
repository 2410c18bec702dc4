/** Step, play and scrub through the windows, forward or backward. */

import { h, type Props } from "../../core/dom";
import { count } from "../../core/format";
import { computed, effect, type Read } from "../../core/signal";
import { segments, select } from "../../form/widgets";
import type { App } from "../../state/app";

/** Steps per second at speed 1; long sweeps go faster, to end within half a minute. */
const PACE = 2.5;
const LONGEST_S = 30;
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

export function transport(app: App): HTMLElement {
  const move = (by: number) => {
    app.playing.set(false);
    app.hover.set(null);
    app.step.set(Math.min(app.steps(), Math.max(0, (app.step() ?? 0) + by)));
  };
  // Not disabled where it has nothing to do: a button that is loses the focus, and with it the place of whoever uses the keyboard.
  const button = (props: Props, shown: string, idle: Read<boolean>, act: () => void) =>
    h("button", { type: "button", ...props, "aria-disabled": () => (idle() ? "true" : null), onClick: () => idle() || act() }, shown);
  const round = (label: string) => ({ class: "round", "aria-label": label, title: label });
  const atEnd = computed(() => (app.step() ?? 0) >= app.steps());
  playing(app);
  return h("div", { class: "transport", role: "group", "aria-label": "Sweep" },
    segments("Direction", [{ value: "forward", label: "Forward" }, { value: "backward", label: "Backward" }],
      app.direction, (value) => app.direction.set(value as "forward" | "backward")),
    h("div", { class: "buttons" },
      button(round("Step back"), "‹", () => (app.step() ?? 0) === 0, () => move(-1)),
      h("button", {
        type: "button", class: "round play", "aria-label": () => (app.playing() ? "Pause" : "Play the sweep"),
        onClick: () => togglePlay(app),
      }, () => (app.playing() ? "❚❚" : "▶")),
      button(round("Step on"), "›", atEnd, () => move(1))),
    h("input", {
      type: "range", class: "scrub", min: 0, max: () => app.steps(), step: 1, "aria-label": "Sweep position",
      value: () => app.step() ?? 0,
      "aria-valuetext": () => `${app.step() ?? 0} of ${app.steps()} windows`,
      onInput: (event: Event) => {
        app.playing.set(false);
        app.hover.set(null);
        app.step.set(Number((event.target as HTMLInputElement).value));
      },
    }),
    h("span", { class: "steps" }, () => (app.step() === null ? count(app.steps(), "window") : `${app.step()} / ${app.steps()}`)),
    select("Speed", () => SPEEDS.map((speed) => ({ value: String(speed), label: `${speed}×` })),
      () => String(app.speed()), (value) => app.speed.set(Number(value))),
    button({ class: "quiet" }, "Show all", () => app.step() === null, () => app.endSweep()));
}

export function togglePlay(app: App): void {
  if (!app.playing() && (app.step() === null || app.step()! >= app.steps())) app.step.set(0);
  app.hover.set(null);
  app.playing.set(!app.playing());
}

function playing(app: App): void {
  effect(() => {
    if (!app.playing()) return;
    const pace = Math.max(PACE, app.steps() / LONGEST_S) * app.speed();
    const timer = setInterval(() => {
      const next = (app.step.peek() ?? 0) + 1;
      app.step.set(Math.min(next, app.steps()));
      if (next >= app.steps()) app.playing.set(false);
    }, 1000 / pace);
    return () => clearInterval(timer);
  });
}
