/** The first view: linked grids, their inspector, and the sweep. */

import { h } from "../../core/dom";
import { panel } from "../../form/panel";
import type { App } from "../../state/app";
import { inspector } from "./inspector";
import { key, type Stage, stage } from "./stage";
import { transport } from "./transport";

export function traceView(app: App, expose: (stage: Stage) => void): HTMLElement {
  const made = stage(app);
  expose(made);
  return h("div", { class: "trace" },
    panel(app),
    h("div", { class: "centre" }, made.element, h("div", { class: "dock" }, transport(app), key(app))),
    inspector(app));
}
