/** Below the terms: how the output's size comes about, and what the layer costs. */

import type { Plan } from "../../client";
import { type Child, h } from "../../core/dom";
import { scaled } from "../../core/format";
import { spatial } from "../../math/shape";
import type { App } from "../../state/app";
import type { Served } from "../../state/served";

const AXES = ["", "w", "hw", "dhw"];

const entry = (value: unknown, axis: number, otherwise: number): number => {
  const one: unknown = Array.isArray(value) ? value[axis] : value;
  return typeof one === "number" ? one : otherwise;
};

export interface Derivation {
  readonly text: string;
  /** Windows that would begin beyond the input, which rounding up alone would count, and are taken off. */
  readonly less: number;
}

/** The formula of the output's extent along one axis, with this layer's numbers in it. */
export function derivation(served: Served, axis: number): Derivation {
  const plain = (text: string) => ({ text, less: 0 });
  const { config, op } = served.spec;
  const input = served.shapes.x[2 + axis];
  const output = served.shapes.y[2 + axis];
  if (op === "max_unpool" || op === "activation") return plain(`${output}`);
  if (op.startsWith("adaptive")) return plain(`${output} windows over ${input}`);
  const weight = served.layer.shapes.weight;
  const kernel = weight ? spatial(weight)[3 - served.spec.dims + axis] : entry(config.kernel, axis, 1);
  const stride = entry(config.stride, axis, weight ? 1 : kernel);
  const dilation = entry(config.dilation, axis, 1);
  const [low, high] = served.padding[axis];
  const reach = dilation === 1 ? `${kernel}` : `(${dilation}·(${kernel} − 1) + 1)`;
  if (op === "conv_transpose") {
    const least = (input - 1) * stride + dilation * (kernel - 1) + 1 - low - high;
    const extra = output > least ? ` + ${output - least}` : "";
    return plain(`(${input} − 1)·${stride} + ${reach} − ${low} − ${high}${extra} = ${output}`);
  }
  const [open, close] = config.ceil_mode ? ["⌈", "⌉"] : ["⌊", "⌋"];
  const steps = Math.ceil((input + low + high - (dilation * (kernel - 1) + 1)) / stride);
  const less = config.ceil_mode === true ? Math.max(0, steps + 1 - output) : 0;
  return { text: `${open}(${input} + ${low} + ${high} − ${reach}) / ${stride}${close} + 1${less ? ` − ${less}` : ""} = ${output}`, less };
}

const UNKNOWN = "…";

export function facts(app: App): HTMLElement {
  const { served, plan } = app.session;
  const fact = (name: string, value: Child) => h("div", { class: "fact" }, h("dt", null, name), h("dd", null, value));
  const work = ({ flops }: Plan) => `${scaled(flops.forward, "FLOP")} forward, ${scaled(flops.backward, "FLOP")} backward`;
  return h("details", { class: "facts", open: true }, h("summary", null, "This layer"), h("dl", null,
    () => {
      const now = served();
      return now && [...extents(now), ...unread(now)].map(([name, value]) => fact(name, value));
    },
    fact("Window reaches", () => plan()?.receptive_field.join(" × ") ?? UNKNOWN),
    fact("Work", () => (plan() ? work(plan()!) : UNKNOWN)),
    fact("Algorithm", () => served()?.info.algorithm ?? UNKNOWN)));
}

type Fact = readonly [name: string, value: string];

function extents(served: Served): Fact[] {
  const all = [...AXES[served.spec.dims]].map((letter, axis) => ({ letter, ...derivation(served, axis) }));
  const found = all.map(({ letter, text }): Fact => [`Output ${letter}`, text]);
  const left = [...new Set(all.map(({ less }) => less))].filter((less) => less > 0);
  const beyond = (less: number) => (less === 1 ? "a window that would begin beyond the input" : `${less} windows that would begin beyond the input`);
  return [...found, ...left.map((less): Fact => [`− ${less}`, beyond(less)])];
}

function unread({ read }: Served): Fact[] {
  const count = read.reduce((sum, seen) => sum + 1 - seen, 0);
  return count > 0 ? [["Inputs never read", `${count} of ${read.length}`]] : [];
}
