/** Why the service refused a value, and the nearest one that it takes, offered as a button. */

import { type Child, h } from "../core/dom";
import { effect, signal } from "../core/signal";
import type { App } from "../state/app";
import type { Spec } from "../state/spec";
import { intoField } from "./control";
import { candidates, firstAccepted } from "./nearest";
import type { Kind } from "./kinds";

function show(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return Array.isArray(value) ? value.map(show).join(", ") : String(value);
}

export function refusalNote(
  app: App, name: string, kind: Kind, otherwise: unknown,
  read: (spec: Spec) => unknown, write: (spec: Spec, value: unknown) => Spec,
): Child {
  const offer = signal<{ value: unknown } | null>(null);
  const mine = () => {
    const refusal = app.session.refusal();
    return refusal?.field === name ? refusal : null;
  };
  effect(() => {
    const refusal = mine();
    offer.set(null);
    if (!refusal) return;
    const stop = new AbortController();
    const current = app.session.served()?.spec;
    const same = (value: unknown) => current && JSON.stringify(read(current)) === JSON.stringify(value);
    const values = candidates(kind, read(refusal.wanted), otherwise).filter((value) => !same(value));
    firstAccepted(values, (value) => app.session.accepts(write(refusal.wanted, value), stop.signal))
      .then(offer.set, () => offer.set(null));
    return () => stop.abort();
  });
  return () => {
    const refusal = mine();
    if (!refusal) return null;
    // The offer comes later, beside what is said and not in it, or that would be said again.
    return h("p", { class: "refusal" },
      h("span", { role: "alert" },
        h("strong", null, show(read(refusal.wanted))), ` is not possible: ${refusal.why}. `),
      () => {
        const found = offer();
        return found && h("button", {
          type: "button", class: "link",
          onClick: (event: MouseEvent) => intoField(event, () => app.session.want(write(refusal.wanted, found.value), name)),
        }, `Use ${show(found.value)}`);
      });
  };
}
