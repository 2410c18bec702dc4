/** Image: the user's picture through one layer and back, and the gradient of any unit at the input. */

import { type Child, h } from "../../core/dom";
import { computed, effect, memo, onCleanup, type Read, signal, untrack } from "../../core/signal";
import { Unreadable } from "../../core/readback";
import type { App } from "../../state/app";
import { resource } from "../../state/resource";
import { filterRow, settingsRow } from "./controls";
import { closeUp } from "./closeup";
import { NOTHING, type Panel, type Sheet, shows } from "../../export/panels";
import { NO_RING } from "../../grid/draw";
import { NO_LIGHT } from "../../grid/light";
import { figure, mapView, rangeOf, type Tone, toneScale, widthOf } from "./maps";
import { inside, type Maps, pass, type Passed, trace, type Traced } from "./pipeline";
import { FILTER_LABELS, type ImageSettings, type Unit } from "./settings";
import { fromBlob, type Grey, pictureIn, sample } from "./source";

/** The picture of one's own; null: the sample. */
interface Own extends Read<Blob | null> {
  set(blob: Blob | null): void;
}

export function imageView(app: App): HTMLElement {
  const settings = app.image;
  const put = (change: Partial<ImageSettings>) => {
    app.notice.set(null);
    settings.update((now) => ({ ...now, ...change }));
  };
  const own: Own = Object.assign(() => app.picture(), {
    set: (blob: Blob | null) => {
      // What was said was of the last one.
      app.notice.set(null);
      app.picture.set(blob);
    },
  });
  const grey = signal<Grey | null>(null);
  const size = memo(() => settings().size);
  effect(() => {
    const pixels = size();
    const blob = own();
    if (!blob) {
      grey.set(sample(pixels));
      return;
    }
    let outdated = false;
    fromBlob(blob, pixels).then((picture) => outdated || grey.set(picture), (error: unknown) => {
      if (outdated) return;
      app.notice.set(error instanceof Unreadable ? `Your picture could not be used: ${error.message}.` : "This file is not a picture that the browser can read.");
      app.picture.set(null);
    });
    return () => {
      outdated = true;
    };
  });
  // A change of the unit alone asks for its gradient only, not for the maps again.
  const layer = memo(() => JSON.stringify({ ...settings(), unit: null }));
  const ready = computed(() => {
    const image = grey();
    const wanted = JSON.parse(layer()) as ImageSettings;
    return image?.size === wanted.size ? { settings: wanted, image } : null;
  });
  const passed = resource(app, ready, (asked, abort) => pass(app.client, asked.settings, asked.image, abort));
  const unitAsked = computed(() => {
    const now = passed.value();
    const { unit } = settings();
    return now && unit ? { now, unit: inside(unit, now) } : null;
  });
  const traced = resource(app, unitAsked, ({ now, unit }, abort) => trace(app.client, now, unit, abort));
  const started = memo(() => passed.value() !== null);
  const chosen: Chosen = {
    traced: () => (settings().unit ? traced.value() : null),
    awaited: () => settings().unit !== null && traced.value()?.of !== passed.value(),
  };
  const element = h("article", { class: "page-body image-view" },
    h("header", { class: "page-head" },
      h("h2", null, "A picture through one layer, and back"),
      h("p", null, "Convolved, pooled, unpooled, and rebuilt by the transposed convolution with the same weights. Choose any unit of a map to see its gradient at the input: what the unit looks for, placed where it looks.")),
    sourceRow(own), settingsRow(settings, put), filterRow(settings, put),
    () => (started() ? body(passed.value as Read<Passed>, chosen, put, settings) : h("p", { class: "hint" }, "…")));
  accept(own);
  shows(app, () => sheetOf(passed.value(), chosen.awaited() ? null : chosen.traced()));
  return element;
}

function sourceRow(own: Own): HTMLElement {
  const field = h("input", { type: "file", accept: "image/*", class: "visually-hidden", tabindex: -1, "aria-label": "A picture of your own" });
  field.addEventListener("change", () => {
    if (field.files?.[0]) own.set(field.files[0]);
    field.value = "";
  });
  return h("div", { class: "verify-controls source" },
    h("button", { type: "button", class: "action", onClick: () => field.click() }, "Choose a picture"), field,
    () => own() && h("button", { type: "button", class: "action", onClick: () => own.set(null) }, "Use the sample"),
    h("span", { class: "hint" }, () => (own() ? "Your picture is not part of the link; it goes to this service only." : "Or drop one here, or paste it.")));
}

/** Takes pictures dropped anywhere: beside the target the browser would leave the page to show them. */
function accept(own: Own): void {
  const take = (event: Event, items: DataTransfer | null) => {
    const file = pictureIn(items);
    if (!file) return;
    event.preventDefault();
    own.set(file);
  };
  const over = (event: Event) => event.preventDefault();
  const drop = (event: DragEvent) => take(event, event.dataTransfer);
  const paste = (event: ClipboardEvent) => take(event, event.clipboardData);
  document.addEventListener("dragover", over);
  document.addEventListener("drop", drop);
  document.addEventListener("paste", paste);
  onCleanup(() => {
    document.removeEventListener("dragover", over);
    document.removeEventListener("drop", drop);
    document.removeEventListener("paste", paste);
  });
}

interface Chosen {
  readonly traced: Read<Traced | null>;
  /** The last gradient is of other maps than those on show: theirs comes an answer later, or never. */
  readonly awaited: Read<boolean>;
}

function body(passed: Read<Passed>, { traced, awaited }: Chosen, put: (change: Partial<ImageSettings>) => void, settings: Read<ImageSettings>): HTMLElement {
  const top = h("div", { class: "image-top" });
  const width = widthOf(top, 900);
  const third = () => Math.min(330, Math.floor((width() - 2 * 28) / (width() < 620 ? 1 : 3)));
  const one = (id: string, label: string, maps: Read<Maps>, tone: Tone) =>
    mapView({ id, label: () => label, maps, channel: 0, tone, width: third, chosen: () => -1 });
  const flat = (of: Grey, values: Float32Array): Maps => ({ channels: 1, rows: of.size, cols: of.size, values });
  const picture = () => flat(passed().image, passed().image.values);
  const gradient = () => {
    const now = traced();
    const { image } = now?.of ?? passed();
    return flat(image, now?.dx ?? new Float32Array(image.values.length));
  };
  const ofUnit = (...content: Child[]) => h("div", { class: "of-unit", "data-stale": () => (awaited() ? "1" : "0") }, content);
  top.append(
    figure("Picture", "the input, in grey", one("picture", "The picture", picture, "picture"), rangeOf(picture, "picture")),
    figure("Rebuilt", "by unpooling and transposed convolution", one("rebuilt", "The rebuilt picture", () => passed().rebuilt, "signed"), rangeOf(() => passed().rebuilt, "signed")),
    figure("Gradient", "of the chosen unit at the input", ofUnit(one("gradient", "The gradient at the input", gradient, "signed"), rangeOf(gradient, "signed"))));
  const key = memo(() => passed().feature.channels);
  // Made anew for another number of maps only: the one that has the focus keeps it where another answer comes.
  const stacked = (stage: "feature" | "pooled", title: string) => () => (key(), untrack(() => stack(stage, title, passed, put, settings)));
  return h("div", null, top, ofUnit(() => closeUp(traced())), stacked("feature", "Feature maps"), stacked("pooled", "Pooled"));
}

/** What an exported picture has: the same as the page, row by row. */
function sheetOf(passed: Passed | null, traced: Traced | null): Sheet {
  if (!passed) return NOTHING;
  const { size } = passed.image;
  const { kernel, stride, pool, relu } = passed.settings;
  const panel = (title: string, maps: Maps, channel: number, tone: Tone, cell: number): Panel => {
    const { rows, cols, values } = maps;
    const base = channel * rows * cols;
    const part = values.subarray(base, base + rows * cols);
    return { title, cell, light: NO_LIGHT, plane: { rows, cols, values: part, scale: toneScale(values, tone), ring: NO_RING } };
  };
  const flat = (values: Float32Array): Maps => ({ channels: 1, rows: size, cols: size, values });
  const cell = 192 / size;
  const row = (maps: Maps) => passed.settings.filters.map((filter, channel) =>
    panel(FILTER_LABELS[filter], maps, channel, "plain", (cell * size * 0.75) / maps.cols));
  return {
    caption: `Convolution ${kernel} × ${kernel}, stride ${stride}${relu ? ", ReLU" : ""}, max pool ${pool}`,
    rows: [
      [
        panel("Picture", flat(passed.image.values), 0, "picture", cell), panel("Rebuilt", passed.rebuilt, 0, "signed", cell),
        ...(traced ? [panel("Gradient", flat(traced.dx), 0, "signed", cell)] : []),
      ],
      row(passed.feature), row(passed.pooled),
    ],
  };
}

function stack(stage: "feature" | "pooled", title: string, passed: Read<Passed>, put: (change: Partial<ImageSettings>) => void, settings: Read<ImageSettings>): HTMLElement {
  const row = h("div", { class: "map-row" });
  const width = widthOf(row, 900);
  const maps = () => passed()[stage];
  const count = maps().channels;
  const each = () => {
    const columns = Math.min(Math.max(count, 3), width() < 480 ? 2 : width() < 640 ? 3 : width() < 760 ? 4 : 5);
    return Math.min(250, Math.floor((width() - (columns - 1) * 16) / columns));
  };
  for (let channel = 0; channel < count; channel += 1) {
    const name = () => FILTER_LABELS[passed().settings.filters[channel]] ?? "";
    const chosen = () => {
      const { unit } = settings();
      if (!unit || unit.stage !== stage) return -1;
      const now = inside(unit, passed());
      return now.channel === channel ? now.row * maps().cols + now.col : -1;
    };
    const select = (index: number) => {
      const unit: Unit = { stage, channel, row: Math.floor(index / maps().cols), col: index % maps().cols };
      put({ unit });
    };
    row.append(h("figure", { class: "map-figure small" },
      mapView({ id: stage, label: () => `${title}: ${name()}`, maps, channel, tone: "plain", width: each, chosen, onSelect: select }),
      h("figcaption", null, h("span", null, name))));
  }
  return h("section", { class: "map-section" },
    h("div", { class: "map-head" }, h("h3", null, title), h("span", { class: "hint" }, () => `${maps().channels} × ${maps().rows} × ${maps().cols}`), rangeOf(maps, "plain")), row);
}
