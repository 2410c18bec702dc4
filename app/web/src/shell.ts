/** The frame around the views: their tabs, the state of the connection, theme, sharing. */

import { type Child, h } from "./core/dom";
import { effect, onCleanup, type Read, signal } from "./core/signal";
import { menu } from "./form/widgets";
import { type App, type View, VIEWS } from "./state/app";
import { setWish, theme } from "./state/theme";

export const TITLES: Record<View, string> = {
  trace: "Trace", verify: "Verify", checkerboard: "Checkerboard", request: "Request", image: "Image",
};

export interface Actions {
  readonly share: () => void;
  readonly exports: () => Child;
  readonly key: Child;
}

export function header(app: App, actions: Actions): HTMLElement {
  return h("header", { class: "bar" },
    h("h1", { class: "wordmark" }, logo(), "Convoke"),
    tabs(app),
    h("div", { class: "bar-end" },
      connection(app),
      h("button", { type: "button", class: "quiet", onClick: actions.share }, "Share"),
      menu("Export", "Export", actions.exports),
      actions.key,
      h("button", {
        type: "button", class: "quiet", "aria-label": () => `Use ${theme().name === "dark" ? "light" : "dark"} colours`,
        onClick: () => setWish(theme().name === "dark" ? "light" : "dark"),
      }, () => (theme().name === "dark" ? "Light" : "Dark"))));
}

/** Two overlapping windows. */
function logo(): HTMLElement {
  return h("span", { class: "logo", "aria-hidden": "true" });
}

function tabs(app: App): HTMLElement {
  const go = (event: KeyboardEvent, at: number) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (at + by + VIEWS.length) % VIEWS.length;
    app.view.set(VIEWS[next]);
    document.getElementById(`tab-${VIEWS[next]}`)?.focus();
  };
  return h("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, VIEWS.map((view, at) =>
    h("button", {
      type: "button", role: "tab", id: `tab-${view}`, "aria-controls": "view",
      "aria-selected": () => String(app.view() === view), tabindex: () => (app.view() === view ? 0 : -1),
      onClick: () => app.view.set(view), onKeydown: (event: KeyboardEvent) => go(event, at),
    }, TITLES[view])));
}

/** Green means nothing here: a filled dot is a service that answers, a hollow one is a service that does not. */
function connection(app: App): HTMLElement {
  const { session } = app;
  const seconds = waited(app);
  return h("span", { class: "connection", "data-state": () => (session.trouble() ? session.trouble()!.kind : "ok") },
    h("span", { class: "light", "aria-hidden": "true" }),
    () => {
      const served = session.served();
      const trouble = session.trouble();
      if (trouble) return { offline: "no answer", busy: "busy", key: "locked", problem: "refused" }[trouble.kind];
      if (seconds() > 0) return `waiting ${seconds()} s`;
      return served ? `${served.transfer.elapsed.toFixed(served.transfer.elapsed < 10 ? 1 : 0)} ms` : "…";
    });
}

/** Whole seconds for which what is asked for has not come. */
function waited({ session }: App): Read<number> {
  const seconds = signal(0);
  effect(() => {
    seconds.set(0);
    if (!session.stale()) return;
    const since = Date.now();
    const timer = setInterval(() => seconds.set(Math.floor((Date.now() - since) / 1000)), 500);
    return () => clearInterval(timer);
  });
  return seconds;
}

/** What is wrong and what to do, while the last good picture stays. */
export function troubleBar(app: App): HTMLElement {
  const { session } = app;
  const now = signal(Date.now());
  effect(() => {
    if (!session.trouble()?.retryAt) return;
    now.set(Date.now());
    const timer = setInterval(() => now.set(Date.now()), 500);
    return () => clearInterval(timer);
  });
  const online = () => session.trouble() && session.tryNow();
  addEventListener("online", online);
  onCleanup(() => removeEventListener("online", online));
  return h("div", { role: "status" }, () => {
    const trouble = session.trouble();
    if (!trouble || trouble.kind === "key") return null;
    const words = { offline: "The service does not answer.", busy: "The service is busy.", problem: "The service could not do this." }[trouble.kind];
    const wait = trouble.retryAt === null ? null : Math.max(0, Math.ceil((trouble.retryAt - now()) / 1000));
    return h("div", { class: "trouble", "data-trouble": trouble.kind },
      h("strong", null, words), " ",
      trouble.kind === "offline" ? "Check that it runs and that you are online." : asSentence(trouble.message),
      session.served() ? " What you see is its last answer." : "",
      wait !== null ? ` The page asks again ${wait > 0 ? `in ${wait} s` : "now"}. ` : " ",
      h("button", { type: "button", class: "link", onClick: () => session.tryNow() }, "Try now"));
  });
}

function asSentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;
}

export function noticeBar(app: App): HTMLElement {
  return h("div", { role: "status" }, () => {
    const notice = app.notice();
    return notice && h("div", { class: "notice" }, notice, " ",
      h("button", { type: "button", class: "link", onClick: () => app.notice.set(null) }, "Dismiss"));
  });
}

/** Says that the address bar is behind, and why. */
export function unlinkedBar(app: App, share: () => void): HTMLElement {
  return h("div", { role: "status" }, () => app.unlinked() && h("div", { class: "notice" },
    "The link to this view is too long for common browsers, so that the address bar keeps an older one. ",
    h("button", { type: "button", class: "link", onClick: share }, "Copy it anyway"), " or export the view as JSON."));
}
