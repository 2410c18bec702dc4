/** A colour map with the numbers at its ends. */

import { h } from "../core/dom";
import { effect, type Read } from "../core/signal";
import { brief } from "../core/format";
import { theme } from "../state/theme";
import { LEVELS, type Scale, table } from "./colour";

export function legend(scale: Read<Scale>): HTMLElement {
  const bar = h("canvas", { class: "legend-bar", width: LEVELS - 1, height: 1, "aria-hidden": "true" });
  effect(() => {
    const context = bar.getContext("2d")!;
    const { bytes } = table(theme().name, scale().map);
    const image = context.createImageData(LEVELS - 1, 1);
    for (let level = 0; level < LEVELS - 1; level += 1) {
      image.data.set([...bytes.subarray(level * 3, level * 3 + 3), 255], level * 4);
    }
    context.putImageData(image, 0, 0);
  });
  return h("span", { class: "legend" },
    h("span", null, () => brief(scale().low)), bar, h("span", null, () => brief(scale().high)));
}
