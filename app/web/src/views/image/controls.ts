/** The picture, the filters and the layer's few settings. */

import { h } from "../../core/dom";
import { computed, type Read, signal } from "../../core/signal";
import { segments, toggle } from "../../form/widgets";
import { scaleOf } from "../../grid/colour";
import { NO_RING } from "../../grid/draw";
import { NO_LIGHT } from "../../grid/light";
import { gridView } from "../../grid/view";
import { type Filter, FILTER_LABELS, FILTERS, filterValues, type ImageSettings, KERNELS, SIZES } from "./settings";

type Put = (change: Partial<ImageSettings>) => void;

const options = (values: readonly number[]) => values.map((value) => ({ value: String(value), label: String(value) }));

export function settingsRow(settings: Read<ImageSettings>, put: Put): HTMLElement {
  const one = (label: string, values: readonly number[], key: "size" | "kernel" | "stride" | "pool") =>
    h("span", { class: "inline" }, label, segments(label, options(values), () => String(settings()[key]), (value) => put({ [key]: Number(value) })));
  return h("div", { class: "verify-controls" },
    one("Pixels", SIZES, "size"), one("Kernel", KERNELS, "kernel"), one("Stride", [1, 2], "stride"), one("Pool", [2, 3], "pool"),
    h("span", { class: "inline" }, "ReLU", toggle("ReLU", () => settings().relu, (relu) => put({ relu }))));
}

export function filterRow(settings: Read<ImageSettings>, put: Put): HTMLElement {
  const flip = (filter: Filter) => {
    const { filters } = settings();
    const next = filters.includes(filter) ? filters.filter((one) => one !== filter) : FILTERS.filter((one) => one === filter || filters.includes(one));
    if (next.length > 0) put({ filters: next });
  };
  return h("div", { class: "filter-row", role: "group", "aria-label": "Filters" }, FILTERS.map((filter) =>
    h("div", { class: "filter" },
      h("button", {
        type: "button", "aria-pressed": () => String(settings().filters.includes(filter)), onClick: () => flip(filter),
      }, FILTER_LABELS[filter]),
      filterGrid(settings, put, filter))));
}

function filterGrid(settings: Read<ImageSettings>, put: Put, filter: Filter): HTMLElement {
  const values = computed(() => filterValues(settings(), filter));
  const kernel = computed(() => settings().kernel);
  const drawn = filter === "drawn";
  const chosen = signal(-1);
  const edit = (index: number, value: number) => {
    const now = Array.from(values());
    now[index] = Math.fround(value);
    const { filters } = settings();
    put({ drawn: now, filters: filters.includes("drawn") ? filters : [...filters, "drawn"] });
  };
  return gridView({
    label: () => `${FILTER_LABELS[filter]} filter`,
    plane: () => ({ rows: kernel(), cols: kernel(), values: values(), scale: scaleOf(values(), true), ring: NO_RING }),
    // A smaller kernel may not have the cell.
    light: () => (chosen() < values().length ? { ...NO_LIGHT, selected: chosen() } : NO_LIGHT),
    cell: () => 72 / kernel(),
    describe: (index) => `row ${Math.floor(index / kernel())}, column ${index % kernel()}: ${values()[index]}`,
    onEdit: drawn ? edit : undefined,
    onSelect: drawn ? chosen.set : undefined,
    onClear: () => chosen.set(-1),
    onPress: drawn ? (index: number) => edit(index, values()[index] > 0 ? -0.5 : values()[index] < 0 ? 0 : 0.5) : undefined,
    data: { filter: () => filter },
  }).element;
}
