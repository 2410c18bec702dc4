/** Keeps the address bar and the state equal, both ways. */

import { batch, effect } from "../core/signal";
import type { App } from "./app";
import { type Linked, linkedOf, LONGEST, readHash, writeHash } from "./url";

/** Browsers refuse more than a few hundred changes of the address in half a minute. */
const PAUSE_MS = 200;

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
    if (linked.ignored.length > 0) {
      app.notice.set(`This link has settings that are not valid: ${linked.ignored.join(", ")}. The usual ones are used instead.`);
    }
  });
  app.session.want(linked.spec, "link");
}

export function followAddress(app: App): void {
  /** The address that the state was last made equal with. */
  let known = location.hash;
  let timer: ReturnType<typeof setTimeout> | undefined;
  addEventListener("hashchange", () => {
    if (location.hash === known) return;
    known = location.hash;
    apply(app, readHash(known));
  });
  effect(() => {
    if (!app.session.served()) return;
    const hash = writeHash(linkedOf(app));
    clearTimeout(timer);
    timer = setTimeout(() => {
      // Another address is on its way into the state: it must not be written over.
      if (location.hash !== known || hash === known || hash.length > LONGEST) return;
      known = hash;
      history.replaceState(null, "", hash);
    }, PAUSE_MS);
  });
}

/** The link to what is shown; null where it would be too long to travel. */
export function linkOf(app: App): string | null {
  const hash = writeHash(linkedOf(app));
  return hash.length > LONGEST ? null : location.href.split("#")[0] + hash;
}
