/** The frame around the views: their tabs, the state of the connection, theme, sharing. */

import { append, type Child, h } from "./core/dom";
import { computed, effect, memo, onCleanup, type Read, signal } from "./core/signal";
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

/** Puts the focus on the tab of the view on show. */
export function toView(app: App): void {
  document.getElementById(`tab-${app.view()}`)?.focus();
}

/** Keeps the focus on the page where a bar is about to take it along. To be called before the bar is filled: effects run eldest first. */
export function leaving(app: App, bar: HTMLElement, shown: Read<boolean>): void {
  effect(() => {
    if (!shown() && bar.contains(document.activeElement)) toView(app);
  });
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
      if (trouble) return { offline: "no answer", gateway: "no answer", foreign: "no answer", busy: "busy", key: "locked", problem: "refused" }[trouble.kind];
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

/** Whole seconds until the page asks again by itself; null where it does not. */
function untilAgain({ session }: App): Read<number | null> {
  const now = signal(Date.now());
  effect(() => {
    if (!session.trouble()?.retryAt) return;
    now.set(Date.now());
    const timer = setInterval(() => now.set(Date.now()), 500);
    return () => clearInterval(timer);
  });
  return () => {
    const at = session.trouble()?.retryAt ?? null;
    return at === null ? null : Math.max(0, Math.ceil((at - now()) / 1000));
  };
}

const TROUBLES = {
  offline: "The service does not answer.", gateway: "The service cannot be reached.", foreign: "Something else than the service answered.",
  busy: "The service is busy.", problem: "The service could not do this.",
};

/** What is wrong and what to do, while the last good picture stays. */
export function troubleBar(app: App): HTMLElement {
  const { session } = app;
  const online = () => session.trouble() && session.tryNow();
  addEventListener("online", online);
  onCleanup(() => removeEventListener("online", online));
  const trouble = computed(() => {
    const now = session.trouble();
    return now && now.kind !== "key" ? { ...now, kind: now.kind } : null;
  });
  const shown = memo(() => trouble() !== null);
  const bar = h("div", { class: () => (shown() ? "trouble" : null), "data-trouble": () => trouble()?.kind });
  leaving(app, bar, shown);
  const advice = () => {
    const now = trouble();
    if (!now) return "";
    return ` ${now.kind === "offline" ? "Check that it runs and that you are online." : asSentence(now.message)}${
      session.served() ? " What you see is its last answer." : ""}${now.retryAt === null ? "" : " The page asks again by itself"}`;
  };
  const seconds = untilAgain(app);
  const when = () => {
    const left = trouble() ? seconds() : null;
    return left === null ? "" : left > 0 ? `, in ${left} s.` : ", now.";
  };
  append(bar, [
    h("span", { role: "status" }, h("strong", null, () => (trouble() ? TROUBLES[trouble()!.kind] : "")), advice),
    // Not part of the status, all of which would be read out again with each second.
    h("span", { "aria-hidden": "true" }, when), " ",
    () => shown() && h("button", { type: "button", class: "link", onClick: () => session.tryNow() }, "Try now"),
  ]);
  return bar;
}

function asSentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? "" : "."}`;
}

export function noticeBar(app: App): HTMLElement {
  const shown = memo(() => app.notice() !== null);
  const bar = h("div", { class: () => (shown() ? "notice" : null) });
  leaving(app, bar, shown);
  append(bar, [
    h("span", { role: "status" }, () => app.notice() ?? ""), " ",
    () => shown() && h("button", { type: "button", class: "link", onClick: () => app.notice.set(null) }, "Dismiss"),
  ]);
  return bar;
}

/** Says that the address bar is behind, and why. */
export function unlinkedBar(app: App, share: () => void): HTMLElement {
  return h("div", { role: "status" }, () => app.unlinked() && h("div", { class: "notice" },
    "The link to this view is too long for common browsers, so that the address bar keeps an older one. ",
    h("button", { type: "button", class: "link", onClick: share }, "Copy it anyway"), " or export the view as JSON."));
}
