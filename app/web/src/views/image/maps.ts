/** A stack of maps as pictures whose units can be chosen. */

import { h } from "../../core/dom";
import { computed, effect, type Read, signal } from "../../core/signal";
import { brief } from "../../core/format";
import { type Scale, scaleOf } from "../../grid/colour";
import { NO_RING, type Plane } from "../../grid/draw";
import { NO_LIGHT } from "../../grid/light";
import { legend } from "../../grid/legend";
import { gridView } from "../../grid/view";
import type { Maps } from "./pipeline";

/** A picture as it is; numbers of both signs; numbers from zero up. */
export type Tone = "picture" | "signed" | "plain";

export function toneScale(values: ArrayLike<number>, tone: Tone): Scale {
  return tone === "picture" ? { map: "grey", low: 0, high: 1 } : scaleOf(values, tone === "signed");
}

export interface MapOptions {
  readonly id: string;
  readonly label: Read<string>;
  readonly maps: Read<Maps>;
  readonly channel: number;
  readonly tone: Tone;
  readonly width: Read<number>;
  readonly chosen: Read<number>;
  readonly onSelect?: (index: number) => void;
}

export function mapView(options: MapOptions): HTMLElement {
  const plane: Read<Plane> = computed(() => {
    const { rows, cols, values } = options.maps();
    const base = options.channel * rows * cols;
    return {
      rows, cols, values: values.subarray(base, base + rows * cols),
      scale: toneScale(values, options.tone), ring: NO_RING,
    };
  });
  const cell = computed(() => Math.min(24, (options.width() - 6) / plane().cols));
  const grid = gridView({
    label: options.label, plane, cell,
    light: () => ({ ...NO_LIGHT, selected: options.chosen() }),
    describe: (index) => `row ${Math.floor(index / plane().cols)}, column ${index % plane().cols}: ${brief(plane().values[index] ?? 0)}`,
    onSelect: options.onSelect,
    data: { map: () => `${options.id}-${options.channel}` },
  });
  return grid.element;
}

/** The width that an element has, as it changes. */
export function widthOf(element: HTMLElement, first: number): Read<number> {
  const width = signal(first);
  const observer = new ResizeObserver(([entry]) => width.set(Math.max(40, entry.contentRect.width)));
  observer.observe(element);
  effect(() => () => observer.disconnect());
  return width;
}

export function rangeOf(maps: Read<Maps>, tone: Tone): HTMLElement {
  return legend(() => toneScale(maps().values, tone));
}

export function figure(title: string, words: string, ...content: (Node | null)[]): HTMLElement {
  return h("figure", { class: "map-figure" }, h("figcaption", null, h("strong", null, title), h("span", null, words)), content);
}
