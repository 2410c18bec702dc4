/** A view's picture as panels in rows, to be drawn anywhere: what it is of, and each plane with its name, shape and range. */

import { brief } from "../core/format";
import { effect } from "../core/signal";
import { arrowBetween, type Spot } from "../grid/arrow";
import { LEVELS, type Scale, table } from "../grid/colour";
import { breadth, corner, drawPlane, extent, type Plane, type Theme } from "../grid/draw";
import { drawLight, type Light } from "../grid/light";
import type { Painter } from "../grid/painter";
import type { App } from "../state/app";

export interface Panel {
  readonly title: string;
  readonly italic?: boolean;
  /** Beside the title, in small. */
  readonly words?: string;
  readonly plane: Plane;
  readonly light: Light;
  readonly cell: number;
}

type Rows = readonly (readonly (Panel | null)[])[];

/** A cell of a panel: its row, its column, and the place on its plane. */
type At = readonly [row: number, column: number, place: number];

export interface Sheet {
  readonly caption: string;
  /** null leaves a place empty. Rows of one length stand in columns. */
  readonly rows: Rows;
  readonly arrows?: readonly (readonly [from: At, to: At])[];
}

export const NOTHING: Sheet = { caption: "", rows: [] };

/** Says what an export of the view has, for as long as the view is there. */
export function shows(app: App, sheet: () => Sheet): void {
  app.sheet = sheet;
  effect(() => () => {
    if (app.sheet === sheet) app.sheet = () => NOTHING;
  });
}

const MARGIN = 24;
const GAP = 32;
const CAPTION = 30;
const TITLE = 30;
const LEGEND = 24;
/** About as wide as a character of words is, in parts of the font's size; and italic capitals of 20 pixels. */
const CHARACTER = 0.56;
const ITALIC: Readonly<Record<string, number>> = { X: 14, W: 18, Y: 13, I: 8, d: 10, b: 10 };

function wordsAt({ title, italic }: Panel): number {
  return 3 + [...title].reduce((sum, letter) => sum + (italic ? ITALIC[letter] ?? 14 : 9), 0) + 7;
}

function widthOf(panel: Panel | null): number {
  if (!panel) return 0;
  const words = wordsAt(panel) + (panel.words ?? "").length * 12 * CHARACTER;
  return Math.max(extent(panel.plane, panel.cell).width, words);
}

interface Placed {
  readonly width: number;
  readonly height: number;
  /** Where the cells of each panel begin. */
  readonly origins: readonly (readonly (readonly [x: number, y: number])[])[];
}

function place({ caption, rows }: Sheet): Placed {
  const aligned = rows.every((row) => row.length === rows[0].length);
  const column = (at: number) => Math.max(...rows.map((row) => widthOf(row[at] ?? null)));
  let y = MARGIN + CAPTION;
  let width = caption.length * 13 * CHARACTER;
  const origins = rows.map((row) => {
    let x = MARGIN;
    const line = row.map((panel, at) => {
      const origin = [x, y + TITLE] as const;
      x += (aligned ? column(at) : widthOf(panel)) + GAP;
      return origin;
    });
    width = Math.max(width, x - GAP - MARGIN);
    y += TITLE + Math.max(0, ...row.map((panel) => (panel ? extent(panel.plane, panel.cell).height : 0))) + LEGEND + GAP * 0.5;
    return line;
  });
  return { width: Math.ceil(width + 2 * MARGIN), height: Math.ceil(y - GAP * 0.5 + MARGIN), origins };
}

export function measure(sheet: Sheet): { width: number; height: number } {
  return place(sheet);
}

/** @param moveTo sets the origin of what the painter draws next. */
export function drawSheet(p: Painter, moveTo: (x: number, y: number) => void, sheet: Sheet, theme: Theme): void {
  const { width, height, origins } = place(sheet);
  moveTo(0, 0);
  p.rect(0, 0, width, height, theme.surface);
  p.text(MARGIN + 3, MARGIN + 6, sheet.caption, theme.muted, 13, "left");
  sheet.rows.forEach((row, r) => row.forEach((panel, c) => {
    if (!panel) return;
    moveTo(...origins[r][c]);
    drawPanel(p, panel, theme);
  }));
  moveTo(0, 0);
  const spot = ([r, c, at]: At): Spot => {
    const { plane, cell } = sheet.rows[r][c]!;
    const [[left, top], size, [x, y]] = [origins[r][c], extent(plane, cell), corner(plane, cell, at)];
    return { grid: { left, top, right: left + size.width, bottom: top + size.height }, x: left + x, y: top + y, side: cell };
  };
  for (const [from, to] of sheet.arrows ?? []) p.stroke(arrowBetween(spot(from), spot(to)), theme.ink, 1.5);
}

function drawPanel(p: Painter, panel: Panel, theme: Theme): void {
  const { plane, cell, light } = panel;
  p.text(3, 12 - TITLE, panel.title, theme.ink, panel.italic ? 20 : 14, "left", panel.italic);
  if (panel.words) p.text(wordsAt(panel), 13 - TITLE, panel.words, theme.muted, 12, "left");
  drawPlane(p, plane, cell, theme, { faded: light.lit !== null });
  if (light.lit) drawPlane(p, plane, cell, theme, { only: light.lit });
  drawLight(p, plane, light, cell, theme);
  drawLegend(p, extent(plane, cell).height + LEGEND / 2, plane.scale, theme);
}

const STEPS = 28;

function drawLegend(p: Painter, y: number, scale: Scale, theme: Theme): void {
  const { css } = table(theme.name, scale.map);
  const low = brief(scale.low);
  const from = Math.round(3 + breadth(low) * 11 + 6);
  p.text(3, y, low, theme.muted, 11, "left");
  for (let at = 0; at < STEPS; at += 1) p.rect(from + at * 2, y - 3.5, 2, 7, css[Math.round((at * (LEVELS - 2)) / (STEPS - 1))]);
  p.text(from + STEPS * 2 + 6, y, brief(scale.high), theme.muted, 11, "left");
}
