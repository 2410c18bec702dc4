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

/**
 * Makes the state that of a link. What is packed in it takes a moment, in which another may come.
 * @param unpacked is called before the state is changed.
 */
export async function open(app: App, hash: string, unpacked = () => {}): Promise<void> {
  const fills = await unpack(hash);
  if (location.hash !== hash) return;
  unpacked();
  apply(app, readHash(hash, fills));
}

/** The view that a link opens, whatever it says. */
function viewOf(hash: string): View {
  const named = new URLSearchParams(hash.slice(1)).get("view");
  return VIEWS.find((view) => view === named) ?? "trace";
}

/** What is on show and not in the address bar yet. */
interface Late {
  readonly linked: ReturnType<typeof linkedOf>;
  /** A whole layer took the place of another here: the browser's way back leads to that one. */
  readonly leapt: boolean;
  /** The count of links from the address bar; what was on show before one is not written over it. */
  readonly links: number;
  /** Something newer takes its place. */
  dropped: boolean;
}

export function followAddress(app: App): void {
  followCell(app);
  /** The address that the state was last made equal with. */
  let known = location.hash;
  /** The address that the last leap was made from. */
  let origin: string | null = null;
  let late: Late | null = null;
  let links = 0;
  let unpacking = false;
  let leaps = app.leaps.peek();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writing = Promise.resolve();

  addEventListener("hashchange", () => {
    if (location.hash === known) return;
    known = location.hash;
    unpacking = true;
    forget();
    void open(app, known, () => {
      unpacking = false;
      forget();
    });
  });
  const forget = () => {
    clearTimeout(timer);
    late = origin = null;
    links += 1;
  };

  const put = async (one: Late) => {
    const hash = await packHash(one.linked);
    // Another address is on its way into the state: it must not be written over. Nor must a newer state.
    if (one.dropped || unpacking || one.links !== links || location.hash !== known) return;
    const long = hash.length > LONGEST;
    if (long !== app.unlinked.peek()) app.unlinked.set(long);
    if (long) return;
    try {
      if (hash !== known) write(hash, one.leapt);
    } catch {
      if (late === one) timer = setTimeout(() => queue(one), REFUSED_MS);
      return;
    }
    if (late === one) late = null;
  };
  const write = (hash: string, leapt: boolean) => {
    const before = known;
    if (!leapt && hash === origin) {
      // The service refused the layer that was leapt to, and the one before it is on show again.
      history.back();
    } else {
      // The browser's way back leads through the views and layers that were open, and not through every number that was changed.
      const turned = leapt || viewOf(hash) !== viewOf(before);
      history[turned ? "pushState" : "replaceState"](null, "", hash);
    }
    known = hash;
    origin = leapt ? before : null;
  };
  const queue = (one: Late) => {
    writing = writing.then(() => put(one));
  };

  effect(() => {
    // As it is asked for, and not only once it is answered: a service that is away must not cost the change.
    const linked = linkedOf(app);
    const leapt = app.leaps() !== leaps;
    leaps = app.leaps();
    clearTimeout(timer);
    const before = late;
    if (before) {
      // What is left has its last change in its own address.
      if (leapt || before.linked.view !== linked.view) queue(before);
      else before.dropped = true;
    }
    const now = { linked, leapt: leapt || before?.dropped === true && before.leapt, links, dropped: false };
    late = now;
    timer = setTimeout(() => queue(now), PAUSE_MS);
  });
}

/** The link to what is shown, however long it is. */
export async function linkOf(app: App): Promise<string> {
  return location.href.split("#")[0] + (await packHash(linkedOf(app)));
}
