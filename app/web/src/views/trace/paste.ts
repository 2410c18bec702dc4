/** Numbers from the clipboard into a plane, and words for what came of it. */

import { count } from "../../core/format";
import { type Block, BlockError, laid, readBlock } from "../../data/block";
import type { Role } from "../../math/layer";
import type { App } from "../../state/app";
import { type Editable, wantedBy } from "../../state/spec";
import { isMade, placeOf, SYMBOL } from "./names";
import { sliceOf } from "./planes";

/** @param index the cell of the plane that the numbers begin at. */
export function paste(app: App, role: Role, text: string, index: number): void {
  const name = SYMBOL[role];
  if (isMade(role)) {
    app.notice.set(`${name} is worked out from the others: numbers can be pasted into those.`);
    return;
  }
  if (app.session.replaced) {
    app.notice.set(`Nothing was pasted into ${name}: the layer has changed, and its grids have yet to follow.`);
    return;
  }
  try {
    const block = readBlock(text, wantedBy(role, app.shapes().y!));
    app.notice.set(write(app, role, block, index));
  } catch (error) {
    if (!(error instanceof BlockError)) throw error;
    app.notice.set(`Nothing was pasted into ${name}. ${error.message}.`);
  }
}

function write(app: App, role: Editable, block: Block, index: number): string {
  const slice = sliceOf(app, role);
  const cells = laid(block, slice, index);
  app.editAll(role, new Map([...cells].map(([at, value]) => [slice.base + at, value])));
  const left = block.values.length - cells.size;
  const from = `${SYMBOL[role]}, from [${placeOf(app, role, slice.base + index)}] on`;
  if (left === 0) return `${count(cells.size, "number")} (${block.rows} × ${block.cols}) pasted into ${from}.`;
  return `${cells.size} of ${count(block.values.length, "number")} (${block.rows} × ${block.cols}) pasted into ${from}; ${left} beyond its edge left out.`;
}

export function copied(app: App, role: Role): void {
  const { rows, cols } = sliceOf(app, role);
  app.notice.set(`The ${rows} × ${cols} numbers of ${SYMBOL[role]} on show are on the clipboard, with tabs between them.`);
}
