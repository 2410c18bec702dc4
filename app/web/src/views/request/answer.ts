/** Where the time of an answer went, and with whom it was computed. */

import type { Answer } from "../../client";
import { type Child, h } from "../../core/dom";
import { count, scaled } from "../../core/format";
import type { Resource } from "../../state/resource";

const STAGES: readonly [string, string][] = [
  ["decode", "read the request"], ["queue", "wait in the queue"], ["compute", "compute"], ["encode", "write the answer"],
];

const ms = (value: number) => `${value < 10 ? value.toFixed(2) : value.toFixed(1)} ms`;

export function answerPanel(answer: Resource<Answer>): HTMLElement {
  return h("section", { class: "answer", "aria-label": "Answer", "data-stale": () => (answer.stale() ? "1" : "0") },
    h("h3", null, "The answer"),
    () => {
      const now = answer.value();
      return now ? [timing(now), facts(now)] : h("p", { class: "hint" }, "…");
    });
}

function timing({ transfer }: Answer): Child {
  const known = STAGES.map(([name, words]) => ({ words, duration: transfer.stages[name] ?? 0 }));
  const inside = known.reduce((sum, { duration }) => sum + duration, 0);
  const all = [...known, { words: "network and this page", duration: Math.max(0, transfer.elapsed - inside) }];
  const whole = Math.max(transfer.elapsed, inside) || 1;
  return h("table", { class: "stages" }, h("tbody", null, all.map(({ words, duration }) => h("tr", null,
    h("th", { scope: "row" }, words), h("td", { class: "num" }, ms(duration)),
    h("td", { class: "stage-bar" }, h("span", { class: "stage-fill", style: { width: `${(100 * duration) / whole}%` } }))))),
    h("tfoot", null, h("tr", null, h("th", { scope: "row" }, "together"), h("td", { class: "num" }, ms(transfer.elapsed)), h("td"))));
}

function facts({ info, transfer, tensors }: Answer): Child {
  const { requests, rows } = info.batch;
  const line = (name: string, value: Child) => h("div", { class: "fact" }, h("dt", null, name), h("dd", null, value));
  return h("dl", { class: "answer-facts" },
    line("Batch", requests === 1 ? `alone, ${count(rows, "sample")}` : `with ${count(requests - 1, "other request")}, ${count(rows, "sample")}`),
    line("Algorithm", info.algorithm),
    line("Padding", info.padding.map(([low, high]) => `${low}, ${high}`).join("; ") || "none"),
    line("Sent", scaled(transfer.sent, "B")), line("Received", scaled(transfer.received, "B")),
    line("Tensors", Object.entries(tensors).map(([name, { shape }]) => h("div", null, `${name} ${shape.join(" × ")}`))),
    line("Request", h("code", null, transfer.requestId ?? "–")));
}
