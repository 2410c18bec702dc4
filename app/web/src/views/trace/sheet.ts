/** What an exported picture of Trace has: the grids in their columns, as they are lit, and a pool's arrows. */

import { full } from "../../core/format";
import type { Panel, Sheet } from "../../export/panels";
import type { Role } from "../../math/layer";
import type { App } from "../../state/app";
import { type Served, valuesOf } from "../../state/served";
import { OPERATIONS } from "../../state/spec";
import { arrowsShown, placeOn } from "./arrows";
import { placeOf, SYMBOL } from "./names";
import { READABLE_CELL } from "./sizing";
import type { Stage } from "./stage";
import { shapeText } from "./tensor";

const COLUMNS: readonly (readonly [Role, Role | null])[] = [
  ["x", "dx"], ["weight", "dweight"], ["indices", null], ["bias", "dbias"], ["y", "dy"],
];

/** Up to so many columns cells are large enough for their numbers to be read; more would be too wide. */
const MOST_CELLS = 40;

/** The layer in a line: "Convolution · stride 2". */
export function layerWords({ spec }: Served): string {
  const words = Object.entries(spec.config).map(([name, value]) => {
    const written = typeof value === "object" ? JSON.stringify(value).replaceAll('"', "") : String(value);
    return name === "name" ? written : `${name.replaceAll("_", " ")} ${written}`;
  });
  return [OPERATIONS[spec.op], ...words].join(" · ");
}

function chosenWords(app: App, served: Served): string {
  const of = app.explanation();
  if (!of) return "";
  return ` · ${SYMBOL[of.role]}[${placeOf(app, of.role, of.index)}] = ${full(valuesOf(served, of.role)?.[of.index] ?? of.value)}`;
}

export function sheetOf(app: App, { planes, cell }: Stage): Sheet {
  const served = app.session.served()!;
  const { shapes } = served.layer;
  const there = COLUMNS.filter(([role]) => shapes[role] && (role !== "bias" || "bias" in served.shapes));
  const large = shapes.x![4] + shapes.y![4] > MOST_CELLS;
  const panel = (role: Role | null): Panel | null => role && {
    title: SYMBOL[role], italic: true, words: shapeText(app, role), plane: planes.plane(role)(), light: planes.light(role)(),
    cell: large ? cell(role) : Math.max(cell(role), READABLE_CELL),
  };
  const at = ({ role, index }: { role: Role; index: number }) => {
    const column = there.findIndex((pair) => pair.includes(role));
    return [there[column]?.[0] === role ? 0 : 1, column, placeOn(app, role, index)] as const;
  };
  const arrows = arrowsShown(app).map(({ from, to }) => [at(from), at(to)] as const);
  return {
    caption: layerWords(served) + chosenWords(app, served),
    rows: [there.map(([role]) => panel(role)), there.map(([, role]) => panel(role))],
    arrows: arrows.filter((ends) => ends.every(([, column, place]) => column >= 0 && place >= 0)),
  };
}
