/** The sweep as an animated GIF: one frame for each step. The encoder is fetched when it is first needed. */

import { mustRead } from "../core/readback";
import { batch } from "../core/signal";
import { theme } from "../state/theme";
import type { App } from "../state/app";
import { toCanvas } from "./picture";
import { stepsOf } from "./steps";

const WIDEST = 900;
const LAST_MS = 1600;

export async function sweepGif(app: App): Promise<Blob> {
  mustRead();
  const { GIFEncoder, applyPalette, quantize } = await import("gifenc");
  const before = app.step();
  const steps = stepsOf(app.steps());
  const delay = Math.max(40, Math.min(400, 12_000 / steps.length));
  const encoder = GIFEncoder();
  batch(() => {
    app.playing.set(false);
    app.hover.set(null);
  });
  try {
    for (const [at, step] of steps.entries()) {
      app.step.set(step);
      const { data, width, height } = frame(app);
      const palette = quantize(data, 256);
      encoder.writeFrame(applyPalette(data, palette), width, height, {
        palette, delay: at === steps.length - 1 ? LAST_MS : delay, repeat: 0,
      });
      // Lets the page answer, and the user see how far it is.
      await new Promise((resolve) => setTimeout(resolve));
    }
  } finally {
    app.step.set(before);
  }
  encoder.finish();
  return new Blob([encoder.bytes().slice()], { type: "image/gif" });
}

function frame(app: App): ImageData {
  const sheet = app.sheet();
  let canvas = toCanvas(sheet, theme(), 1);
  if (canvas.width > WIDEST) canvas = toCanvas(sheet, theme(), WIDEST / canvas.width);
  return canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
}
