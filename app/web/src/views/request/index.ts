/** Request: exactly what is sent, as programs and as bytes, and how the answer came about. */

import { encodeRequest } from "../../client";
import { type Child, h } from "../../core/dom";
import { computed, type Read, signal } from "../../core/signal";
import { article, count, full, scaled } from "../../core/format";
import { save } from "../../export/save";
import { segments } from "../../form/widgets";
import type { App } from "../../state/app";
import { resource } from "../../state/resource";
import { type Action, type Served, sentTensors, wanted } from "../../state/served";
import { inWords } from "../../state/spec";
import { answerPanel } from "./answer";
import { hex, takeApart, type Token } from "./bytes";
import { pytorch } from "./pytorch";
import { type Asked, BODY, curl, FILE, javascript, jsonBody, pythonProgram } from "./snippets";

const LANGUAGES = ["curl", "Python", "JavaScript", "PyTorch"] as const;
type Language = (typeof LANGUAGES)[number];

export function asked(app: App, served: Served, action: Action): Asked {
  const keyed = app.key() !== null;
  const { spec, shapes, given } = served;
  const { dy, ...inputs } = given;
  const tensors = sentTensors(spec, shapes, action === "backward" ? { ...inputs, dy } : inputs);
  return { url: new URL(".", document.baseURI).href, action, op: spec.op, config: spec.config, tensors, wants: wanted(app.session.served()!.spec), keyed };
}

function encoded(of: Asked): Uint8Array<ArrayBuffer> {
  return encodeRequest({ config: of.config, tensors: of.tensors, wants: of.action === "backward" ? of.wants : undefined });
}

export function program(of: Asked, served: Served, language: Language): string {
  if (language === "curl") return curl(of);
  if (language === "Python") return pythonProgram(of);
  return language === "JavaScript" ? javascript(of) : pytorch(served, of.action);
}

export function requestView(app: App): HTMLElement {
  const action = signal<Action>("backward");
  const language = signal<Language>("Python");
  const now = computed(() => {
    const served = app.session.served();
    return served ? { served, of: asked(app, served, action()) } : null;
  });
  const answer = resource(app, now, async ({ of }, abort) => {
    const request = { config: of.config, tensors: of.tensors, ...(of.action === "backward" ? { wants: of.wants } : {}) };
    return app.client[of.action](of.op, request, { signal: abort });
  });
  const op = () => inWords(now()?.served.spec.op ?? "conv");
  return h("article", { class: "page-body request" },
    h("header", { class: "page-head" },
      h("h2", null, "The request itself"),
      h("p", null, "What the page asks for the layer in Trace, ", () => article(op()), " ", h("strong", null, op),
        ", as a program of your own and byte by byte. All that can be asked is in ", h("a", { href: "./docs" }, "the service’s interface"), ".")),
    h("div", { class: "verify-controls" },
      segments("Action", [{ value: "forward", label: "Forward" }, { value: "backward", label: "Backward" }], action, (value) => action.set(value as Action)),
      segments("Language", LANGUAGES.map((value) => ({ value, label: value })), language, (value) => language.set(value as Language)),
      copyButton(app, () => {
        const all = now();
        return all ? program(all.of, all.served, language()) : "";
      })),
    h("div", { class: "request-columns" },
      h("pre", { class: "code", tabindex: 0, "aria-label": "Program", "data-language": language }, () => {
        const all = now();
        return all && program(all.of, all.served, language());
      }),
      answerPanel(answer)),
    downloads(now),
    h("section", { class: "bytes" }, h("h3", null, "The bytes"),
      h("p", { class: "hint" }, "A map of msgpack: ", h("code", null, "config"), " and the tensors by name, each with its dtype, its shape and its raw little-endian numbers."),
      () => {
        const all = now();
        return all && byteTable(encoded(all.of));
      }));
}

function copyButton(app: App, text: () => string): HTMLElement {
  return h("button", {
    type: "button", class: "action", onClick: () => {
      navigator.clipboard.writeText(text()).then(() => app.notice.set("The program is on the clipboard."), () => app.notice.set("This browser did not let the page copy; select the text instead."));
    },
  }, "Copy");
}

function downloads(now: Read<{ of: Asked } | null>): Child {
  const button = (label: string, name: string, type: string, data: (of: Asked) => BlobPart) =>
    h("button", { type: "button", class: "action", onClick: () => {
      const all = now();
      if (all) save(name, new Blob([data(all.of)], { type }));
    } }, label);
  return h("div", { class: "verify-controls downloads" },
    button("Save the body as msgpack", BODY, "application/vnd.msgpack", encoded),
    button("Save the body as JSON", FILE, "application/json", jsonBody));
}

const MOST_ROWS = 400;
const FIRST = 4;

/** The beginning of a tensor's float32 numbers; the bytes of indices are int64 and go without. */
function firstNumbers(bytes: Uint8Array, token: Token): string {
  if (!token.meaning.endsWith("bytes of data") || token.dtype !== "float32") return "";
  const end = token.offset + token.length;
  const head = token.length - token.payload!;
  const view = new DataView(bytes.buffer, bytes.byteOffset + token.offset + head);
  const count = Math.min(FIRST, Math.floor((end - token.offset - head) / 4));
  const numbers = Array.from({ length: count }, (_, at) => full(view.getFloat32(at * 4, true)));
  return `: ${numbers.join(", ")}${token.payload! > count * 4 ? ", …" : ""}`;
}

function byteTable(bytes: Uint8Array): HTMLElement {
  const tokens = takeApart(bytes);
  return h("div", { class: "byte-frame", tabindex: 0, role: "region", "aria-label": "Annotated bytes" },
    h("table", { class: "byte-table" },
      h("thead", null, h("tr", null, ["at", "bytes", "meaning"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, tokens.slice(0, MOST_ROWS).map((token) => h("tr", { "data-depth": token.depth },
        h("td", { class: "num" }, token.offset.toString(16).padStart(4, "0")),
        h("td", { class: "hex" }, hex(bytes, token)),
        h("td", null, h("span", { class: "indent", style: { "padding-left": `${token.depth * 14}px` } }, token.meaning, firstNumbers(bytes, token))))))),
    h("p", { class: "hint" }, `${scaled(bytes.length, "B")} in ${count(tokens.length, "piece")}${tokens.length > MOST_ROWS ? `; the first ${MOST_ROWS} are shown` : ""}.`));
}
