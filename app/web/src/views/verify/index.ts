/** Verify: the laws that a layer and its gradient obey, checked against the service before the user's eyes. */

import { AbortedError, ConvokeError } from "../../client";
import { type Child, h } from "../../core/dom";
import { batch, effect, signal } from "../../core/signal";
import { article, count, tiny } from "../../core/format";
import { stepper } from "../../form/widgets";
import type { App } from "../../state/app";
import { inWords } from "../../state/spec";
import { placeOf, SYMBOL } from "../trace/names";
import { type Check, verify } from "./checks";

export function verifyView(app: App): HTMLElement {
  const checks = signal<readonly Check[]>([]);
  const state = signal<"running" | "done" | "failed">("running");
  const failure = signal("");
  const seed = signal(1);
  const again = signal(0);
  effect(() => {
    const served = app.session.served();
    again();
    if (!served) return;
    const stop = new AbortController();
    batch(() => {
      checks.set([]);
      state.set("running");
    });
    verify(app.client, served, stop.signal, seed(), (check) => {
      if (!stop.signal.aborted) checks.update((all) => [...all, check]);
    }).then(
      () => {
        if (stop.signal.aborted) return;
        state.set("done");
        app.session.recovered();
      },
      (error: unknown) => {
        if (error instanceof AbortedError || stop.signal.aborted) return;
        if (!(error instanceof ConvokeError)) throw error;
        failure.set(error.message);
        state.set("failed");
        app.session.report(error, () => (stop.signal.aborted ? app.session.retry() : again.update((n) => n + 1)), again);
      },
    );
    return () => stop.abort();
  });
  const op = () => inWords(app.session.served()?.spec.op ?? "conv");
  /** Whether what stands there is of a layer before, or was left unfinished. */
  const old = () => state() === "failed" || (app.session.stale() && app.session.trouble() !== null);
  return h("article", { class: "page-body verify", "data-state": state, "data-old": () => (old() ? "1" : null) },
    h("header", { class: "page-head" },
      h("h2", null, () => headline(checks(), old() ? "failed" : state())),
      h("p", null, "For the layer in Trace, ", () => article(op()), " ", h("strong", null, op),
        " with X of ", () => app.session.served()?.shapes.x.join(" × ") ?? "", ". The first group compares the service with the page’s own sums. The others need no second implementation: they hold forward and backward to each other.")),
    h("div", { class: "verify-controls" },
      h("button", { type: "button", class: "action", onClick: () => again.update((n) => n + 1) }, "Check again"),
      h("span", { class: "inline" }, "Seed of the samples ", stepper({ label: "Seed of the samples", value: seed, minimum: 0, maximum: 99999, onChange: (value) => seed.set(value) }))),
    () => state() === "failed" && h("p", { class: "refusal", role: "alert" }, "The checks could not be finished: ", failure()),
    () => old() && checks().length > 0 && h("p", { class: "left" }, leftWords(checks().length, app.session.stale())),
    h("div", { class: "checks" }, () => groups(app, checks(), old())));
}

function headline(checks: readonly Check[], state: string): string {
  const failed = checks.filter((check) => check.passed === false).length;
  if (failed > 0) return `${count(failed, "check")} of ${checks.length} ${failed === 1 ? "does" : "do"} not pass`;
  if (state === "running") return "Checking…";
  if (state === "failed") return "Not finished";
  const silent = checks.filter((check) => check.passed === null).length;
  const passed = checks.length - silent;
  return silent === 0 ? `All ${passed} checks pass` : `${count(passed, "check")} ${passed === 1 ? "passes" : "pass"}, ${silent} ${silent === 1 ? "shows" : "show"} nothing`;
}

/** Whose the checks are that were made before the service went away: a green mark alone would be taken for the layer's that is asked for. */
function leftWords(left: number, stale: boolean): string {
  const these = left === 1 ? "The check below is" : `The ${left} checks below are`;
  return `${these} of the last answer that came.${stale ? " The layer that is asked for now has not been checked." : ""}`;
}

const GROUPS: readonly [string, string][] = [
  ["own", "The page’s own arithmetic"], ["adjoint", "The adjoint law"], ["differences", "Finite differences"],
];

function groups(app: App, checks: readonly Check[], old: boolean): Child {
  return GROUPS.map(([prefix, title]) => {
    const mine = checks.filter((check) => check.id.startsWith(prefix));
    return mine.length > 0 && h("section", { class: "check-group" }, h("h3", null, title),
      h("p", { class: "hint" }, explain(prefix)), mine.map((check) => row(app, check, old)));
  });
}

function explain(prefix: string): string {
  if (prefix === "own") return "Every cell again by the sums that Trace lists, in float64, against the service’s float32. Errors are relative to the tensor’s largest value.";
  if (prefix === "adjoint") return "Backward is the transpose of forward. So pairing dY with Y must give the same number as pairing dX with X, whatever they hold.";
  return "Nudge one number and see how much ⟨dY, Y⟩ changes: that is what a gradient means. In float64, at coordinates drawn by the seed, at least half of them where the gradient is not zero, as far as there are so many.";
}

/** @param old it is of the last answer, and the service has gone away since. */
function verdict(check: Check, old: boolean): Child {
  const [mark, word] = check.passed === null ? ["–", "shows nothing"] : check.passed ? ["✓", "passes"] : ["✗", "fails"];
  return h("span", { class: "check-verdict" }, h("span", { class: "mark", "aria-hidden": "true" }, mark), h("span", { class: "visually-hidden" }, old ? `${word}, for the last answer` : word));
}

function row(app: App, check: Check, old: boolean): HTMLElement {
  const { counts, worst } = check;
  const open = () => {
    if (!worst) return;
    app.reveal(worst.role, worst.index);
    app.view.set("trace");
  };
  return h("div", { class: "check", "data-check": check.id, "data-passed": String(check.passed), "data-error": check.error ?? "", "data-nonzero": counts?.nonzero ?? "" },
    verdict(check, old),
    h("div", { class: "check-name" }, h("strong", null, check.title), h("span", { class: "law" }, check.id.startsWith("own") ? "" : check.law)),
    h("div", { class: "check-number" },
      check.error !== null && [h("span", { class: "num" }, tiny(check.error)), h("span", { class: "muted" }, ` ≤ ${tiny(check.tolerance)}`)]),
    h("div", { class: "check-note" },
      counts && h("span", null, `${count(counts.sampled, "coordinate")}, ${counts.nonzero} not zero${counts.skipped ? `, ${counts.skipped} left out at a tie or a kink` : ""}. `),
      check.note && h("span", null, check.note, " "),
      worst && h("button", { type: "button", class: "link", onClick: open }, `worst at ${SYMBOL[worst.role]}[${placeOf(app, worst.role, worst.index)}]`)));
}
