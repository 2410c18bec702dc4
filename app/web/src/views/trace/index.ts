/** The first view: linked grids, their inspector, and the sweep. */

import { h } from "../../core/dom";
import { type Panel, shows } from "../../export/panels";
import { panel } from "../../form/panel";
import type { Role } from "../../math/layer";
import type { App } from "../../state/app";
import { inspector } from "./inspector";
import { SYMBOL } from "./planes";
import { key, type Stage, stage } from "./stage";
import { transport } from "./transport";

const ROWS: readonly (readonly Role[])[] = [["x", "weight", "indices", "bias", "y"], ["dx", "dweight", "dbias", "dy"]];

/** Cells at least this large in exported pictures, so that their numbers can be read. */
const READABLE_CELL = 28;

function exportRows(app: App, { planes, cell }: Stage): Panel[][] {
  const shapes = app.shapes();
  const bias = "bias" in (app.session.served()?.shapes ?? {});
  const cells = (shapes.x?.[4] ?? 1) + (shapes.y?.[4] ?? 1);
  return ROWS.map((roles) => roles.filter((role) => shapes[role] && (bias || !role.endsWith("bias"))).map((role) => ({
    title: SYMBOL[role], italic: true, plane: planes.plane(role)(), light: planes.light(role)(),
    cell: cells <= 40 ? Math.max(cell(role), READABLE_CELL) : cell(role),
  })));
}

export function traceView(app: App): HTMLElement {
  const made = stage(app);
  shows(app, () => exportRows(app, made));
  return h("div", { class: "trace" },
    panel(app),
    h("div", { class: "centre" }, made.element, h("div", { class: "dock" }, transport(app), key(app))),
    inspector(app));
}
