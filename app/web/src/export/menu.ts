/** The export menu: what the current view can be saved as. */

import { type Child, h } from "../core/dom";
import { signal } from "../core/signal";
import type { App } from "../state/app";
import { theme } from "../state/theme";
import { sweepGif } from "./gif";
import { openJson, toJson } from "./json";
import { toPng, toSvg } from "./picture";
import { save } from "./save";

export function exportMenu(app: App): Child {
  const busy = signal(false);
  const item = (label: string, words: string, ready: () => boolean, run: () => Promise<void> | void) =>
    h("button", {
      // Not disabled while busy: a button that is loses the focus, and with it the place of whoever uses the keyboard.
      type: "button", class: "row-button", disabled: () => !ready(), "aria-disabled": () => (busy() ? "true" : null), onClick: () => {
        if (busy()) return;
        busy.set(true);
        Promise.resolve(run()).catch((error: unknown) => {
          app.notice.set(`That could not be saved: ${error instanceof Error ? error.message : String(error)}.`);
        }).finally(() => busy.set(false));
      },
    }, h("strong", null, label), h("span", { class: "muted" }, ` ${words}`));
  const drawn = () => ["trace", "checkerboard", "image"].includes(app.view());
  const served = () => app.session.served() !== null;
  const name = (ending: string) => `convoke-${app.view()}.${ending}`;
  const field = h("input", { type: "file", accept: ".json,application/json", class: "visually-hidden", tabindex: -1, "aria-label": "A saved layer" });
  field.addEventListener("change", () => {
    const file = field.files?.[0];
    field.value = "";
    if (file) void openJson(app, file).then((good) => good || app.notice.set("This file is not a layer that was saved here."));
  });
  return [
    item("PNG", "picture of this view", drawn, async () => save(name("png"), await toPng(app.sheet(), theme()))),
    item("SVG", "the same, to be scaled", drawn, () => save(name("svg"), toSvg(app.sheet(), theme()))),
    item("GIF", "the sweep, step by step", () => app.view() === "trace" && served(), async () => save("convoke-sweep.gif", await sweepGif(app))),
    item("JSON", "the layer with all numbers", served, () => save("convoke-layer.json", toJson(app))),
    h("button", { type: "button", class: "row-button", onClick: () => field.click() }, h("strong", null, "Open…"), h("span", { class: "muted" }, " a saved layer")),
    field,
  ];
}
