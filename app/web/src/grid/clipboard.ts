/** Copying a grid's plane, and pasting into it, while it has the focus. */

import { onCleanup, type Read } from "../core/signal";
import { writeBlock } from "../data/block";
import type { GridOptions } from "./view";

/** Browsers send these events to where the selection is, which a grid has none of: so the document listens. */
export function clipboard(element: HTMLElement, options: GridOptions, cursor: Read<number>): void {
  const here = (event: ClipboardEvent) => document.activeElement === element && !event.defaultPrevented && event.clipboardData;
  const copy = (event: ClipboardEvent) => {
    const to = here(event);
    if (!to) return;
    to.setData("text/plain", writeBlock(options.plane()));
    event.preventDefault();
    options.onCopy?.();
  };
  const paste = (event: ClipboardEvent) => {
    const from = here(event);
    if (!from || !options.onPaste) return;
    event.preventDefault();
    options.onPaste(from.getData("text/plain"), cursor());
  };
  document.addEventListener("copy", copy);
  document.addEventListener("paste", paste);
  onCleanup(() => {
    document.removeEventListener("copy", copy);
    document.removeEventListener("paste", paste);
  });
}
