/** Below the terms: how the output's size comes about, and what the layer costs. */

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

/** The formula of the output's extent along one axis, with this layer's numbers in it. */
export function derivation(served: Served, axis: number): string {
  const { config, op } = served.spec;
  const input = served.shapes.x[2 + axis];
  const output = served.shapes.y[2 + axis];
  if (op === "max_unpool" || op === "activation") return `${output}`;
  if (op.startsWith("adaptive")) return `${output} windows over ${input}`;
  const weight = served.layer.shapes.weight;
  const kernel = weight ? spatial(weight)[3 - served.spec.dims + axis] : entry(config.kernel, axis, 1);
  const stride = entry(config.stride, axis, weight ? 1 : kernel);
  const dilation = entry(config.dilation, axis, 1);
  const [low, high] = served.plan.padding[axis];
  const reach = dilation === 1 ? `${kernel}` : `(${dilation}·(${kernel} − 1) + 1)`;
  if (op === "conv_transpose") {
    const plain = (input - 1) * stride + dilation * (kernel - 1) + 1 - low - high;
    const extra = output > plain ? ` + ${output - plain}` : "";
    return `(${input} − 1)·${stride} + ${reach} − ${low} − ${high}${extra} = ${output}`;
  }
  const [open, close] = config.ceil_mode ? ["⌈", "⌉"] : ["⌊", "⌋"];
  return `${open}(${input} + ${low} + ${high} − ${reach}) / ${stride}${close} + 1 = ${output}`;
}

export function facts(app: App): Child {
  return () => {
    const served = app.session.served();
    if (!served) return null;
    const { plan, info, spec } = served;
    const line = (name: string, value: Child) => h("div", { class: "fact" }, h("dt", null, name), h("dd", null, value));
    const unread = served.read.reduce((sum, seen) => sum + 1 - seen, 0);
    return h("details", { class: "facts", open: true }, h("summary", null, "This layer"),
      h("dl", null,
        [...AXES[spec.dims]].map((letter, axis) => line(`Output ${letter}`, derivation(served, axis))),
        line("Window reaches", plan.receptive_field.join(" × ")),
        unread > 0 && line("Inputs never read", `${unread} of ${served.read.length}`),
        line("Work", `${scaled(plan.flops.forward, "FLOP")} forward, ${scaled(plan.flops.backward, "FLOP")} backward`),
        line("Algorithm", info.algorithm)));
  };
}
