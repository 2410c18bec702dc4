import "./styles/index.css";
import { accessBar, keyMenu } from "./access";
import { Client, ProblemError } from "./client";
import { h } from "./core/dom";
import { effect, type Read, signal } from "./core/signal";
import { exportMenu } from "./export/menu";
import { keyboard } from "./keyboard";
import type { Explanation, Role } from "./math/layer";
import { header, noticeBar, troubleBar, unlinkedBar } from "./shell";
import { followAddress, linkOf, open } from "./state/address";
import { App, type View } from "./state/app";
import { keyFor } from "./state/key";
import { followTheme } from "./state/theme";
import { valuesOf } from "./state/served";
import { start } from "./state/spec";
import { linkedOf, LONG, LONGEST } from "./state/url";
import { traceView } from "./views/trace";
import { checkerboardView } from "./views/checkerboard";
import { imageView } from "./views/image";
import { requestView } from "./views/request";
import { verifyView } from "./views/verify";

followTheme();
const root = new URL(".", document.baseURI);
const key = keyFor(root.pathname);
const client = new Client(root.href, { key: () => key.peek() });
const app = new App(client, key);

const VIEWS: Record<View, () => HTMLElement> = {
  trace: () => traceView(app),
  verify: () => verifyView(app),
  checkerboard: () => checkerboardView(app),
  request: () => requestView(app),
  image: () => imageView(app),
};

async function share(): Promise<void> {
  const link = await linkOf(app);
  const size = `${link.length.toLocaleString("en")} characters`;
  const advice = link.length > LONGEST
    ? ` It has ${size}, too many for some browsers: the file that Export makes is safer.`
    : link.length > LONG ? ` It has ${size}, and some programs cut links as long as that when they send them.` : "";
  // A picture of one's own is the one thing on show that no link has.
  const own = linkedOf(app).own;
  const what = own ? "The link to this view" : "The link to exactly this view";
  const less = own ? " Your picture is not part of it." : "";
  try {
    await navigator.clipboard.writeText(link);
    app.notice.set(`${what} is on the clipboard.${less}${advice}`);
  } catch {
    app.notice.set(link.length > LONGEST ? "This browser did not let the page copy; export the view as JSON and send the file instead."
      : `${what} is in the address bar.${less}${advice}`);
  }
}

/** The catalogue makes the form; without it the rest of the page still works. */
async function loadCatalogue(): Promise<void> {
  try {
    app.catalogue.set(await client.operations());
  } catch (error) {
    // What time does not help is asked again when there is a key.
    if (!(error instanceof ProblemError && error.locked)) setTimeout(() => void loadCatalogue(), 2000);
  }
}

function followCatalogue(): void {
  effect(() => {
    if (!app.session.locked() && !app.catalogue.peek()) void loadCatalogue();
  });
}

/** The layer of a link or file that the service refuses: every view says why, and where none was on show the first one is. */
function fallBack(): void {
  effect(() => {
    const refusal = app.session.refusal();
    if (refusal?.field !== "link") return;
    const { why, wanted } = refusal;
    const kept = app.session.served.peek() !== null;
    const before = app.notice.peek();
    if (!kept) app.session.want(start(wanted.op));
    app.notice.set(`${before ? `${before} ` : ""}The layer of this link or file is not possible: ${why}. ${
      kept ? "The one before it is kept." : "Another is shown instead."}`);
  });
}

/** A picture that stays old for longer than this is shown as old; a quick answer just takes its place. */
const SLOW_MS = 250;

function slow(): Read<boolean> {
  const late = signal(false);
  effect(() => {
    late.set(false);
    if (!app.session.stale()) return;
    const timer = setTimeout(() => late.set(true), SLOW_MS);
    return () => clearTimeout(timer);
  });
  return late;
}

function mount(): void {
  const late = slow();
  const main = h("main", null,
    h("div", { id: "view", role: "tabpanel", "aria-labelledby": () => `tab-${app.view()}` }, () => VIEWS[app.view()]()));
  const state = { "data-stale": () => (app.session.stale() ? "1" : "0"), "data-slow": () => (late() ? "1" : "0") };
  document.body.replaceChildren(h("div", { class: "page", ...state },
    header(app, { share: () => void share(), exports: () => exportMenu(app), key: keyMenu(app) }),
    noticeBar(app), unlinkedBar(app, () => void share()), troubleBar(app), accessBar(app), main));
}

declare global {
  interface Window {
    /** For the curious at the console: what Trace knows about the layer on show. */
    convoke: { explain(role: Role, index: number): Explanation | null; value(role: Role): number[] };
  }
}

window.convoke = {
  explain: (role, index) => app.session.served()?.layer.explain(role, index) ?? null,
  value: (role) => Array.from(app.session.served() ? (valuesOf(app.session.served()!, role) ?? []) : []),
};

followCatalogue();
void open(app, location.hash).then(() => {
  fallBack();
  mount();
  keyboard(app);
  followAddress(app);
});
