/** An answer that follows the state: asked again whenever what it depends on changes, one at a time. */

import { AbortedError, ConvokeError } from "../client";
import { batch, effect, type Read, signal } from "../core/signal";
import type { App } from "./app";
import { Latest } from "./latest";

export interface Resource<T> {
  readonly value: Read<T | null>;
  readonly stale: Read<boolean>;
}

/** `asked` is read at once and tracked; `load` works it out. The last value stays until the next is there. */
export function resource<Q, T>(
  app: App, asked: Read<Q | null>, load: (asked: Q, signal: AbortSignal) => Promise<T>,
): Resource<T> {
  const value = signal<T | null>(null);
  const stale = signal(false);
  const latest = new Latest();
  let ended = false;
  const submit = (now: Q) => {
    stale.set(true);
    app.session.forget(latest);
    latest.submit(async (abort) => {
      if (ended) return;
      try {
        const found = await load(now, abort);
        batch(() => {
          value.set(found);
          stale.set(false);
          app.session.recovered();
        });
      } catch (error) {
        if (error instanceof AbortedError || ended) return;
        if (!(error instanceof ConvokeError)) throw error;
        // Whoever asked may be gone by then: the layer on show tells as well whether the service answers again.
        app.session.report(error, () => (ended ? app.session.retry() : submit(now)), latest);
      }
    });
  };
  effect(() => {
    const now = asked();
    if (now !== null) submit(now);
  });
  effect(() => () => {
    ended = true;
  });
  return { value, stale };
}
