/** A view's picture as panels in rows, to be drawn anywhere. */

import { effect } from "../core/signal";
import { drawPlane, extent, type Plane, type Theme } from "../grid/draw";
import { drawLight, type Light } from "../grid/light";
import type { Painter } from "../grid/painter";
import type { App } from "../state/app";

export interface Panel {
  readonly title: string;
  readonly italic?: boolean;
  readonly plane: Plane;
  readonly light: Light;
  readonly cell: number;
}

type Rows = readonly (readonly Panel[])[];

/** Says what an export of the view has, for as long as the view is there. */
export function shows(app: App, rows: () => Rows): void {
  app.panels = rows;
  effect(() => () => {
    if (app.panels === rows) app.panels = () => [];
  });
}

const MARGIN = 24;
const GAP = 32;
const TITLE = 30;

export function measure(rows: Rows): { width: number; height: number } {
  const widths = rows.map((row) => row.reduce((sum, panel) => sum + extent(panel.plane, panel.cell).width, GAP * (row.length - 1)));
  const heights = rows.map((row) => TITLE + Math.max(0, ...row.map((panel) => extent(panel.plane, panel.cell).height)));
  return {
    width: Math.ceil(2 * MARGIN + Math.max(0, ...widths)),
    height: Math.ceil(2 * MARGIN + heights.reduce((sum, one) => sum + one, GAP * 0.5 * (rows.length - 1))),
  };
}

/** @param moveTo sets the origin of what the painter draws next. */
export function drawPanels(p: Painter, moveTo: (x: number, y: number) => void, rows: Rows, theme: Theme): void {
  const { width, height } = measure(rows);
  moveTo(0, 0);
  p.rect(0, 0, width, height, theme.surface);
  let y = MARGIN;
  for (const row of rows) {
    let x = MARGIN;
    let tallest = 0;
    for (const panel of row) {
      const size = extent(panel.plane, panel.cell);
      moveTo(x, y);
      p.text(3, TITLE / 2 - 3, panel.title, theme.ink, panel.italic ? 20 : 14, "left", panel.italic);
      moveTo(x, y + TITLE);
      const { lit } = panel.light;
      drawPlane(p, panel.plane, panel.cell, theme, { faded: lit !== null });
      if (lit) drawPlane(p, panel.plane, panel.cell, theme, { only: lit });
      drawLight(p, panel.plane, panel.light, panel.cell, theme);
      x += size.width + GAP;
      tallest = Math.max(tallest, size.height);
    }
    y += TITLE + tallest + GAP * 0.5;
  }
}
