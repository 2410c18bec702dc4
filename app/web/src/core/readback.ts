/** Whether what is read from a canvas is what was drawn on it. */

/** Browsers that protect from being recognised give noise: of a user's picture that would be wrong numbers, of an export a spoilt file. */
export class Unreadable extends Error {
  constructor() {
    super("this browser gives noise to pages that read pictures, unless it is told to let this one");
  }
}

/** Weaker protection changes a colour by a step or two, which no eye sees. */
const NEARLY_WHITE = 250;

/** @throws Unreadable */
export function mustRead(): void {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  context.fillStyle = "#fff";
  context.fillRect(0, 0, 1, 1);
  if (context.getImageData(0, 0, 1, 1).data.some((part) => part < NEARLY_WHITE)) throw new Unreadable();
}
