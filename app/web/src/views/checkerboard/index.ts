/** Checkerboard: where windows overlap unevenly, transposed convolutions and convolution gradients have a pattern. */

import { type Child, h } from "../../core/dom";
import { computed, effect, memo, type Read, signal } from "../../core/signal";
import { brief } from "../../core/format";
import { NOTHING, type Panel, shows } from "../../export/panels";
import { segments, stepper } from "../../form/widgets";
import { scaleOf } from "../../grid/colour";
import { NO_RING, type Plane } from "../../grid/draw";
import { NO_LIGHT } from "../../grid/light";
import { legend } from "../../grid/legend";
import { paintImage, rasterImage } from "../../grid/raster";
import { gridView } from "../../grid/view";
import { type App, type Board, mostPadding } from "../../state/app";
import { resource } from "../../state/resource";
import { theme } from "../../state/theme";
import { type Picture, pictures, type Pictures } from "./ask";
import { coverage, evenness, plane } from "./coverage";
import { footprints } from "./footprints";

const KERNELS = [1, 2, 3, 4, 5, 6, 7];
const STRIDES = [1, 2, 3, 4];

export function checkerboardView(app: App): HTMLElement {
  const found = resource(app, app.board, (board, abort) => pictures(app.client, board, abort));
  const put = (change: Partial<Board>) => app.board.update((board) => limited({ ...board, ...change }));
  const kernel = memo(() => app.board().kernel);
  const stride = memo(() => app.board().stride);
  shows(app, () => {
    const all = found.value();
    if (!all) return NOTHING;
    const { kernel, stride, padding, weights } = all.board;
    return {
      caption: `Kernel ${kernel}, stride ${stride}, padding ${padding}, ${weights === "ones" ? "weights all one" : "random weights"}`,
      rows: [[panelOf("Transposed convolution", all.transposed), panelOf("Convolution’s gradient", all.gradient), panelOf("Resize, then convolve", all.resized)]],
    };
  });
  return h("article", { class: "page-body board", "data-stale": () => (found.stale() ? "1" : "0") },
    h("header", { class: "page-head" },
      h("h2", null, "Where checkerboards come from"),
      h("p", null, "A transposed convolution stamps its kernel once for every input, a stride apart, and adds up what overlaps. Where the stride does not divide the kernel, some outputs get more stamps than their neighbours. The gradient of an ordinary convolution is made by the same stamping, and has the same pattern.")),
    controls(app, put),
    () => h("p", { class: "board-verdict", role: "status" }, verdict(app.board())),
    h("div", { class: "heat" },
      heat("Transposed convolution", "Y of a 6 × 6 input of ones", found.value, (all) => all.transposed, "transposed"),
      heat("Convolution’s gradient", "dX where dY is 6 × 6 ones", found.value, (all) => all.gradient, "gradient"),
      heat("Resize, then convolve", "each pixel repeated, then a plain convolution", found.value, (all) => all.resized, "resized")),
    h("div", { class: "board-lower" },
      h("section", null, h("h3", null, "Along one axis"),
        h("p", { class: "hint" }, "Each bar is one window; below, how many windows each output lies under."),
        () => footprints(kernel(), stride())),
      h("section", null, h("h3", null, "Every kernel and stride"),
        h("p", { class: "hint" }, "The pattern far from the borders. Even ones are ringed; choose any."),
        matrix(app, put))));
}

function panelOf(title: string, { side, values }: Picture): Panel {
  return { title, cell: 24, light: NO_LIGHT, plane: { rows: side, cols: side, values, scale: scaleOf(values, false), ring: NO_RING } };
}

function limited(board: Board): Board {
  return { ...board, padding: Math.min(board.padding, mostPadding(board.kernel)) };
}

function controls(app: App, put: (change: Partial<Board>) => void): HTMLElement {
  const one = (label: string, key: "kernel" | "stride" | "padding", minimum: number, maximum: Read<number>) =>
    h("span", { class: "inline" }, `${label} `, () => stepper({
      label, value: () => app.board()[key], minimum, maximum: maximum(), onChange: (value) => put({ [key]: value }),
    }));
  const most = memo(() => mostPadding(app.board().kernel));
  return h("div", { class: "verify-controls" },
    one("Kernel", "kernel", 1, () => 7), one("Stride", "stride", 1, () => 5), one("Padding", "padding", 0, most),
    h("span", { class: "inline" }, "Weights ", segments("Weights", [{ value: "ones", label: "Ones" }, { value: "random", label: "Random" }],
      () => app.board().weights, (value) => put({ weights: value as Board["weights"] }))));
}

function verdict({ kernel, stride }: Board): Child {
  const { least, most, even } = evenness(kernel, stride);
  if (even) {
    return [h("strong", null, `${kernel} / ${stride} = ${most}, a whole number: even. `),
      `Along each axis every output lies under exactly ${most} ${most === 1 ? "window" : "windows"}, so all interior outputs are sums of ${most * most} ${most === 1 ? "product" : "products"}.`];
  }
  if (least === 0) {
    return [h("strong", null, `The kernel is smaller than the stride: holes. `), "Some outputs lie under no window at all, and some inputs of the convolution are never read."];
  }
  return [h("strong", null, `${kernel} / ${stride} is not a whole number: uneven. `),
    `Along each axis outputs lie under ${least} or ${most} windows in turn, so in the plane some are sums of ${most * most} products and some of ${least * least}, ${brief((most * most) / (least * least))} to 1.`];
}

function heat(title: string, words: string, all: Read<Pictures | null>, pick: (all: Pictures) => Picture, id: string): HTMLElement {
  const width = signal(300);
  const chosen = signal(-1);
  const picture = computed(() => {
    const now = all();
    return now && pick(now);
  });
  const shown: Read<Plane> = computed(() => {
    const { side, values } = picture() ?? { side: 1, values: new Float32Array(1) };
    return { rows: side, cols: side, values, scale: scaleOf(values, false), ring: NO_RING };
  });
  // Alike for all three, so that they can be compared.
  const widest = () => Math.max(1, ...[all()].flatMap((now) => (now ? [now.transposed.side, now.resized.side] : [])));
  const cell = computed(() => Math.max(3, Math.min(26, Math.floor((width() - 6) / widest()))));
  const grid = gridView({
    label: () => `${title}: ${words}`, plane: shown, cell,
    light: () => (chosen() < 0 ? NO_LIGHT : { ...NO_LIGHT, selected: chosen() }),
    describe: (index) => `row ${Math.floor(index / shown().cols)}, column ${index % shown().cols}: ${brief(shown().values[index] ?? 0)}`,
    onSelect: (index: number) => chosen.set(index), onClear: () => chosen.set(-1),
    data: { picture: () => id, side: () => shown().cols, values: () => interior(shown()) },
  });
  const frame = h("section", { class: "heat-one" },
    h("h3", null, title), h("p", { class: "hint" }, words), grid.element,
    h("div", { class: "tensor-foot" }, legend(() => shown().scale)));
  const observer = new ResizeObserver(([entry]) => width.set(entry.contentRect.width));
  observer.observe(frame);
  effect(() => () => observer.disconnect());
  return frame;
}

/** The distinct values in the middle half of a picture. */
function interior({ cols, values }: Plane): string {
  const from = Math.floor(cols / 4);
  const seen = new Set<number>();
  for (let r = from; r < cols - from; r += 1) for (let c = from; c < cols - from; c += 1) seen.add(values[r * cols + c]);
  return [...seen].sort((a, b) => a - b).slice(0, 16).join(" ");
}

/** Small multiples of the interior, by the page's own arithmetic. */
function matrix(app: App, put: (change: Partial<Board>) => void): HTMLElement {
  const one = (kernel: number, stride: number) => {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const counts = coverage(kernel, stride, 32);
    // Away from both ends, and starting at a window's first output.
    const start = Math.ceil(kernel / stride) * stride;
    const middle = counts.slice(start, start + 12);
    effect(() => {
      const scale = { map: "sequential", low: 0, high: evenness(kernel, stride).most ** 2 * 1.15 } as const;
      paintImage(canvas, rasterImage({ rows: 12, cols: 12, values: plane(middle) }, scale, theme().name));
    });
    return h("td", null, h("button", {
      type: "button", "data-even": evenness(kernel, stride).even ? "1" : "0",
      "aria-pressed": () => String(app.board().kernel === kernel && app.board().stride === stride),
      "aria-label": `kernel ${kernel}, stride ${stride}, ${evenness(kernel, stride).even ? "even" : "uneven"}`,
      onClick: () => put({ kernel, stride }),
    }, canvas));
  };
  return h("table", { class: "matrix" },
    h("thead", null, h("tr", null, h("th", { scope: "row" }, "kernel"), KERNELS.map((kernel) => h("th", { scope: "col" }, String(kernel))))),
    h("tbody", null, STRIDES.map((stride) => h("tr", null, h("th", { scope: "row" }, stride === 1 ? "stride 1" : String(stride)), KERNELS.map((kernel) => one(kernel, stride))))));
}
