/** Keeps the address bar and the state equal, both ways. */

import { batch, effect, signal, untrack } from "../core/signal";
import { type App, FIRST_CELL, isFirst, type View, VIEWS } from "./app";
import { type Linked, linkedOf, LONGEST, packHash, readHash, unpack } from "./url";

const PAUSE_MS = 200;
/** Browsers take only so many changes of the address in a time: older Safari a hundred in half a minute. The next may be taken after this. */
const REFUSED_MS = 2000;

export function apply(app: App, linked: Linked): void {
  batch(() => {
    app.view.set(linked.view);
    app.pinned.set(linked.pinned);
    app.wish.set(linked.pick);
    app.direction.set(linked.direction);
    app.playing.set(false);
    app.step.set(linked.step);
    app.board.set(linked.board);
    app.image.set(linked.image);
  });
  app.session.want(linked.spec, "link");
  app.notice.set(said(app, linked));
  arrived.set(linked);
}

function said(app: App, { ignored, own }: Linked): string | null {
  const words = [
    ignored.length > 0 && `This link has settings that are not valid: ${ignored.join(", ")}. The usual ones are used instead.`,
    own && !app.picture.peek() && "This view was of a picture of one’s own, which no link has: the sample is shown instead.",
  ].filter((one) => one !== false);
  return words.length > 0 ? words.join(" ") : null;
}

/** The link that was opened last, until its layer is there. */
const arrived = signal<Linked | null>(null);

/** Only the layer's answer tells whether it has the cell that a link asks for. */
function followCell(app: App): void {
  effect(() => {
    const linked = arrived();
    const served = app.session.served();
    if (!linked || !served || app.session.stale()) return;
    arrived.set(null);
    const { pinned } = linked;
    // Another layer was asked for meanwhile, or another cell chosen; and the usual cell is held inside whatever there is.
    if (served.spec !== linked.spec || app.pinned.peek() !== pinned || isFirst(pinned) || untrack(app.held) === pinned) return;
    app.pinned.set(FIRST_CELL);
    app.notice.set(said(app, { ...linked, ignored: [...linked.ignored, "cell"] }));
  });
}

/** Makes the state that of a link. What is packed in it takes a moment, in which another may come. */
export async function open(app: App, hash: string): Promise<void> {
  const unpacked = await unpack(hash);
  if (location.hash === hash) apply(app, readHash(hash, unpacked));
}

/** The view that a link opens, whatever it says. */
function viewOf(hash: string): View {
  const named = new URLSearchParams(hash.slice(1)).get("view");
  return VIEWS.find((view) => view === named) ?? "trace";
}

export function followAddress(app: App): void {
  followCell(app);
  /** The address that the state was last made equal with. */
  let known = location.hash;
  let leaps = app.leaps;
  let timer: ReturnType<typeof setTimeout> | undefined;
  addEventListener("hashchange", () => {
    if (location.hash === known) return;
    known = location.hash;
    void open(app, known);
  });
  const put = async (linked: ReturnType<typeof linkedOf>, round: number) => {
    const hash = await packHash(linked);
    // Another address is on its way into the state: it must not be written over. Nor must a newer state.
    if (round !== rounds || location.hash !== known) return;
    const leapt = app.leaps !== leaps;
    leaps = app.leaps;
    if (hash === known) return;
    const long = hash.length > LONGEST;
    if (long !== app.unlinked.peek()) app.unlinked.set(long);
    if (long) return;
    // The browser's way back leads through the views and layers that were open, and not through every number that was changed.
    const turned = leapt || viewOf(hash) !== viewOf(known);
    try {
      history[turned ? "pushState" : "replaceState"](null, "", hash);
      known = hash;
    } catch {
      timer = setTimeout(() => void put(linked, round), REFUSED_MS);
    }
  };
  let rounds = 0;
  effect(() => {
    // As it is asked for, and not only once it is answered: a service that is away must not cost the change.
    const linked = linkedOf(app);
    rounds += 1;
    const round = rounds;
    clearTimeout(timer);
    timer = setTimeout(() => void put(linked, round), PAUSE_MS);
  });
}

/** The link to what is shown, however long it is. */
export async function linkOf(app: App): Promise<string> {
  return location.href.split("#")[0] + (await packHash(linkedOf(app)));
}
