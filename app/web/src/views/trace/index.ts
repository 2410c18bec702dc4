/** The first view: linked grids, their inspector, and the sweep. */

import { h } from "../../core/dom";
import { shows } from "../../export/panels";
import { panel } from "../../form/panel";
import type { App } from "../../state/app";
import { inspector } from "./inspector";
import { sheetOf } from "./sheet";
import { key, stage } from "./stage";
import { strip } from "./strip";
import { transport } from "./transport";

export function traceView(app: App): HTMLElement {
  const made = stage(app);
  shows(app, () => sheetOf(app, made));
  const aside = inspector(app);
  return h("div", { class: "trace" },
    panel(app),
    h("div", { class: "centre" }, made.element, h("div", { class: "dock" }, transport(app), key(app))),
    strip(app, made, aside),
    aside);
}
