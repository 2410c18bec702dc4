/** A colour map with the numbers at its ends. */

import { h } from "../core/dom";
import { brief } from "../core/format";
import type { Read } from "../core/signal";
import { theme } from "../state/theme";
import { LEVELS, type MapName, type Scale, table } from "./colour";

/** Colours that a gradient is made of: between two of them the map is as good as straight. */
const STOPS = 16;

function gradient(name: MapName): string {
  const { css } = table(theme().name, name);
  const stops = Array.from({ length: STOPS + 1 }, (_, at) => css[Math.round((at * (LEVELS - 2)) / STOPS)]);
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

export function legend(scale: Read<Scale>): HTMLElement {
  return h("span", { class: "legend" },
    h("span", null, () => brief(scale().low)),
    h("span", { class: "legend-bar", "aria-hidden": "true", style: { background: () => gradient(scale().map) } }),
    h("span", null, () => brief(scale().high)));
}
