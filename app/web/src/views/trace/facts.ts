/** Below the terms: how the output's size comes about, and what the layer costs. */

import { h } from "../../core/dom";
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

export function facts(app: App): HTMLElement {
  return h("details", { class: "facts", open: true }, h("summary", null, "This layer"), h("dl", null, () => {
    const served = app.session.served();
    return served && entries(served).map(([name, value]) => h("div", { class: "fact" }, h("dt", null, name), h("dd", null, value)));
  }));
}

function entries(served: Served): (readonly [name: string, value: string])[] {
  const { plan, info, spec, read } = served;
  const unread = read.reduce((sum, seen) => sum + 1 - seen, 0);
  return [
    ...[...AXES[spec.dims]].map((letter, axis) => [`Output ${letter}`, derivation(served, axis)] as const),
    ["Window reaches", plan.receptive_field.join(" × ")],
    ...(unread > 0 ? [["Inputs never read", `${unread} of ${read.length}`] as const] : []),
    ["Work", `${scaled(plan.flops.forward, "FLOP")} forward, ${scaled(plan.flops.backward, "FLOP")} backward`],
    ["Algorithm", info.algorithm],
  ];
}
