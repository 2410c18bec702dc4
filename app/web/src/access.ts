/** Where the key that a service asks for is typed, changed and forgotten. */

import { append, type Child, h } from "./core/dom";
import { memo, signal } from "./core/signal";
import { menu } from "./form/widgets";
import { leaving, toView } from "./shell";
import type { App } from "./state/app";
import { readKey } from "./state/key";

const STAYS = "It stays in this tab until you close it, and is part of no link, file or program.";
const NO_KEY = "A key has up to 4,096 ASCII letters, digits and signs, and no spaces.";

/** Under the header while the service wants a key, or another one. */
export function accessBar(app: App): HTMLElement {
  const { locked } = app.session;
  const bar = h("div", { class: () => (locked() ? "trouble access" : null), "data-trouble": () => (locked() ? "key" : null) });
  // Where the key has fitted, the field that it was typed into goes.
  leaving(app, bar, locked);
  append(bar, h("div", { role: "status" }, () => said(app)));
  append(bar, () => locked() && keyForm(app, () => undefined));
  return bar;
}

/** In plain words; while another key is on its way, what was said of the last one stays. */
function said({ session, key }: App): Child {
  if (session.trouble()?.kind !== "key") return null;
  const words = key.peek() === null ? "This service needs a key." : "The service did not take this key.";
  return [h("strong", null, words), key.peek() === null
    ? " Whoever runs it can give you one." : " Check it for a missing part, or ask whoever runs the service.",
  session.served.peek() ? " What you see is its last answer." : ""];
}

let serial = 0;

function keyForm(app: App, done: () => void): HTMLElement {
  const id = `key-hint${(serial += 1)}`;
  const wrong = signal(false);
  const field = h("input", {
    type: "password", class: "key-field", "aria-label": "Key", "aria-describedby": id, "aria-invalid": () => (wrong() ? "true" : null),
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
  });
  const submit = (event: Event) => {
    event.preventDefault();
    const next = readKey(field.value);
    wrong.set(next === null);
    // Whether it fits or not, the next one is typed over it.
    field.select();
    if (next === null) return;
    app.useKey(next);
    done();
  };
  return h("form", { class: "key-form", onSubmit: submit }, field, h("button", { type: "submit", class: "action" }, "Use this key"),
    h("span", { id, class: "hint", role: "status" }, () => (wrong() ? NO_KEY : STAYS)));
}

/** In the header while a key is in use. */
export function keyMenu(app: App): Child {
  const used = memo(() => app.key() !== null);
  return () => {
    if (!used()) return null;
    const shown = menu("Key", "The key in use", () => [
      h("p", { class: "hint" }, "This tab sends a key with all that it asks."),
      keyForm(app, () => {
        shown.removeAttribute("open");
        shown.querySelector("summary")?.focus();
      }),
      h("button", { type: "button", class: "row-button", onClick: () => {
        toView(app);
        app.useKey(null);
      } }, "Forget the key"),
    ]);
    return shown;
  };
}
