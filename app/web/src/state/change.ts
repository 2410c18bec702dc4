/** Another operation, or another number of dimensions: what of the layer stays as it is. */

import { guessOutput } from "./guess";
import { type Config, isConvolution, type Spec, start } from "./spec";

/** Another operation on the same x, as far as it makes sense. */
export function switched(spec: Spec, op: string): Spec {
  const next = start(op, spec.dims);
  if (op === "max_unpool" || spec.op === "max_unpool") return next;
  const alike = isConvolution(op) === isConvolution(spec.op) && op !== "conv_transpose";
  const fills = { ...next.fills, x: spec.fills.x.data ? next.fills.x : spec.fills.x };
  const same = { ...next, size: spec.size, samples: spec.samples, fills };
  return alike && guessOutput(same) ? same : { ...same, size: next.size };
}

export function redimensioned(spec: Spec, dims: number): Spec {
  const next = { ...start(spec.op, dims), channels: spec.channels, outputs: spec.outputs, bias: spec.bias };
  const config = Object.fromEntries(Object.entries(spec.config).filter(([name, value]) => stays(spec, name, value))
    .map(([name, value]) => [name, along(value, dims)]));
  const kept = { ...next, config: { ...config, ...unpooled(next) } };
  return guessOutput(kept) ? kept : next;
}

/** Names of axes do not stay, nor sizes of an output that is another now. */
function stays({ op }: Spec, name: string, value: unknown): boolean {
  return !name.includes("layout") && !(name === "padding" && value === "causal") && !(name === "output_size" && op === "conv_transpose");
}

/** Height and width keep their entries; axes before them take that of the first. */
function along(value: unknown, dims: number): unknown {
  if (!Array.isArray(value)) return value;
  return Array.from({ length: dims }, (_, axis) => value[Math.max(0, axis + value.length - dims)] as unknown);
}

const unpooled = ({ op, config }: Spec): Config => (op === "max_unpool" ? config : {});
