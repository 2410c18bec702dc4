/** The same layer in PyTorch, gradients by its own autograd. */

import type { Values } from "../../math/layer";
import type { Action, Served } from "../../state/served";
import { FILE, MOST_NUMBERS } from "./snippets";
import { list, python, tuple } from "./literal";

const perAxis = (value: unknown, dims: number, otherwise: unknown): number[] => {
  const given = value ?? otherwise;
  return Array.isArray(given) ? (given as number[]) : (Array(dims).fill(given) as number[]);
};

/** F.pad counts from the last axis. */
function padCall(name: string, padding: readonly (readonly [number, number])[], more: string): string | null {
  if (padding.every(([low, high]) => low === 0 && high === 0)) return null;
  return `${name} = F.pad(${name}, ${tuple([...padding].reverse().flat())}${more})`;
}

function activationCall(spec: unknown, argument: string): string | null {
  if (spec === null || spec === undefined) return null;
  const map = (typeof spec === "string" ? { name: spec } : spec) as Record<string, number | boolean> & { name: string };
  const a = (key: string, otherwise: number) => map[key] ?? otherwise;
  switch (map.name) {
    case "identity": return null;
    case "leaky_relu": return `F.leaky_relu(${argument}, ${a("alpha", 0.01)})`;
    case "elu": return `F.elu(${argument}, ${a("alpha", 1)})`;
    case "gelu": return `F.gelu(${argument}, approximate="${map.approximate ? "tanh" : "none"}")`;
    case "sigmoid": case "tanh": return `torch.${map.name}(${argument})`;
    case "exponential": return `torch.exp(${argument})`;
    case "hard_sigmoid": return `torch.clamp(${a("alpha", 0.2)} * ${argument} + ${a("beta", 0.5)}, 0, 1)`;
    case "affine": return `${a("slope", 1)} * ${argument} + ${a("intercept", 0)}`;
    default: return `F.${map.name}(${argument})`;
  }
}

function convolution(served: Served): string[] {
  const { config, dims, op } = served.spec;
  const { padding } = served;
  const stride = perAxis(config.stride, dims, 1);
  const dilation = perAxis(config.dilation, dims, 1);
  const groups = Number(config.groups ?? 1);
  const bias = served.given.bias ? "bias" : "None";
  const lines = ["w = weight"];
  if (config.flip_kernel) lines.push(`w = w.flip(${tuple(Array.from({ length: dims }, (_, axis) => axis + 2))})`);
  const mode = config.padding_mode ?? "zeros";
  const options = `stride=${tuple(stride)}, dilation=${tuple(dilation)}, groups=${groups}`;
  if (op === "conv") {
    lines.push("inner = x");
    const pad = padCall("inner", padding, mode === "zeros" ? "" : `, mode="${String(mode)}"`);
    if (pad) lines.push(pad);
    lines.push(`y = F.conv${dims}d(inner, w, ${bias}, ${options})`);
  } else {
    // PyTorch crops both ends alike: cut the whole result, adding zeros where it must be longer.
    lines.push(`y = F.conv_transpose${dims}d(x, w, ${bias}, ${options})`, ...crop(served, stride, dilation));
  }
  const active = activationCall(config.activation, "y");
  return active ? [...lines, `y = ${active}`] : lines;
}

function crop(served: Served, stride: number[], dilation: number[]): string[] {
  const spatial = served.shapes.y.slice(2);
  const { dims } = served.spec;
  const whole = spatial.map((_, axis) => (served.shapes.x[2 + axis] - 1) * stride[axis] + dilation[axis] * (served.spec.kernel[axis] - 1) + 1);
  const longer = spatial.map((extent, axis) => Math.max(0, served.padding[axis][0] + extent - whole[axis]));
  const lines: string[] = [];
  if (longer.some((n) => n > 0)) {
    const extra = longer.map((n): [number, number] => [0, n]);
    const fill = served.given.bias ? " # then add the bias there" : "";
    lines.push(`${padCall("y", extra, "")}${fill}`);
    if (served.given.bias) lines.splice(0, 1, ...withBias(extra, dims));
  }
  const cuts = spatial.map((extent, axis) => `${served.padding[axis][0]}:${served.padding[axis][0] + extent}`);
  return [...lines, `y = y[:, :, ${cuts.join(", ")}]`];
}

/** What lies beyond the last window holds the bias alone. */
function withBias(extra: readonly (readonly [number, number])[], dims: number): string[] {
  const shape = `bias.reshape(-1${", 1".repeat(dims)})`;
  return [`y = y - ${shape}`, padCall("y", extra, "")!, `y = y + ${shape}`];
}

interface Slide {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  /** How far the last window reaches beyond the padded input; negative where it ends before. */
  readonly beyond: readonly (readonly [number, number])[];
}

function slideOf({ spec, shapes, padding }: Served): Slide {
  const { config, dims } = spec;
  const kernel = perAxis(config.kernel, dims, 1);
  const stride = perAxis(config.stride, dims, kernel);
  const dilation = perAxis(config.dilation, dims, 1);
  const beyond = kernel.map((taps, axis): [number, number] => {
    const end = (shapes.y[2 + axis] - 1) * stride[axis] + (taps - 1) * dilation[axis] + 1;
    return [0, end - shapes.x[2 + axis] - padding[axis][0] - padding[axis][1]];
  });
  return { kernel, stride, dilation, beyond };
}

const present = (lines: readonly (string | null)[]): string[] => lines.filter((line) => line !== null);

/** Sums over windows that PyTorch's own average cannot have: dilated, cut at the end, unevenly padded. */
function windowSums(served: Served): string[] {
  const { config, dims, op } = served.spec;
  const { kernel, stride, dilation, beyond } = slideOf(served);
  const slides = kernel.map((taps, axis) => tuple([(taps - 1) * dilation[axis] + 1, stride[axis]])).join(", ");
  const sums = [
    "def sums(t):", `    for axis, (reach, stride) in enumerate([${slides}]):`, "        t = t.unfold(2 + axis, reach, stride)",
    `    return t[..., ${dilation.map((step) => `::${step}`).join(", ")}].sum(${tuple(kernel.map((_, axis) => axis - dims))})`, "",
  ];
  const padded = (name: string, more = "") => [padCall(name, served.padding, more), padCall(name, beyond, "")];
  if (op === "lp_pool") {
    const p = Number(config.p ?? 2);
    return present([...sums, "inner = x", ...padded("inner"), `y = sums(inner.abs() ** ${p}) ** (1 / ${p})`]);
  }
  if (typeof config.divisor_override === "number") return present([...sums, "inner = x", ...padded("inner"), `y = sums(inner) / ${config.divisor_override}`]);
  const counted = config.count_include_pad === false ? "" : ", value=1.0";
  return present([...sums, "inner = x", ...padded("inner"), "members = torch.ones_like(x)", ...padded("members", counted), "y = sums(inner) / sums(members)"]);
}

function pool(served: Served): { lines: string[]; caveat?: string } {
  const { config, dims, op } = served.spec;
  const { padding } = served;
  const { kernel, stride, dilation, beyond } = slideOf(served);
  const size = tuple(served.shapes.y.slice(2));
  if (op === "adaptive_max_pool") return { lines: [`y = F.adaptive_max_pool${dims}d(x, ${size})`] };
  if (op === "adaptive_avg_pool") return { lines: [`y = F.adaptive_avg_pool${dims}d(x, ${size})`] };
  const dilated = dilation.some((d) => d > 1);
  const pad = padCall("inner", padding, "");
  if (op === "max_pool") {
    const lowest = ', value=float("-inf")';
    const pads = [padCall("inner", padding, config.pad_value === "zero" ? ", value=0.0" : lowest), config.ceil_mode ? padCall("inner", beyond, lowest) : null];
    const caveat = config.ties === "all" ? "PyTorch gives the gradient of a tie to one maximum only." : undefined;
    return { caveat, lines: present(["inner = x", ...pads, `y = F.max_pool${dims}d(inner, ${tuple(kernel)}, ${tuple(stride)}, dilation=${tuple(dilation)})`]) };
  }
  if (op === "lp_pool") {
    if (dilated || config.ceil_mode) return { lines: windowSums(served) };
    const p = Number(config.p ?? 2);
    const call = `F.avg_pool${dims}d(inner.abs() ** ${p}, ${tuple(kernel)}, ${tuple(stride)})`;
    return { lines: present(["inner = x", pad, `y = (${call} * ${kernel.reduce((a, b) => a * b, 1)}) ** (1 / ${p})`]) };
  }
  const symmetric = padding.every(([low, high]) => low === high);
  const divided = typeof config.divisor_override === "number";
  // PyTorch's padding is at most half the kernel, and in one dimension it has no divisor of one's own.
  const narrow = padding.every(([low], axis) => 2 * low <= kernel[axis]);
  if (dilated || !symmetric || !narrow || (divided && dims === 1)) return { lines: windowSums(served) };
  const options = `padding=${tuple(padding.map(([low]) => low))}, count_include_pad=${python(config.count_include_pad ?? true)}`;
  const divisor = divided ? `, divisor_override=${String(config.divisor_override)}` : "";
  const ceil = config.ceil_mode ? ", ceil_mode=True" : "";
  return { lines: [`y = F.avg_pool${dims}d(x, ${tuple(kernel)}, ${tuple(stride)}, ${options}${divisor}${ceil})`] };
}

function body(served: Served): { lines: string[]; caveat?: string } {
  const { op, config } = served.spec;
  if (op === "conv" || op === "conv_transpose") return { lines: convolution(served) };
  if (op === "activation") return { lines: [`y = ${activationCall(config, "x") ?? "x * 1"}`] };
  if (op !== "max_unpool") return pool(served);
  const shape = served.shapes.y;
  const cells = shape.slice(2).reduce((a, b) => a * b, 1);
  return { lines: [`y = torch.zeros(${shape[0]}, ${shape[1]}, ${cells}).scatter(2, indices.flatten(2), x.flatten(2)).reshape${tuple(shape)}`] };
}

const GRADIENTS = ["x", "weight", "bias"] as const;

export function pytorch(served: Served, action: Action): string {
  const { given, shapes, spec } = served;
  const names = Object.keys(given).filter((name) => action === "backward" || name !== "dy") as (keyof typeof given)[];
  const long = names.reduce((sum, name) => sum + (given[name]?.length ?? 0), 0) > MOST_NUMBERS;
  const odd = names.some((name) => Array.from(given[name] as Values).some((value) => !Number.isFinite(value)));
  const moved = spec.config.layout || spec.config.weight_layout;
  const tensor = (name: keyof typeof given) => {
    const kind = name === "indices" ? ", dtype=torch.int64" : ", dtype=torch.float32";
    const values = long ? (odd ? `list(map(float, saved["${name}"]["data"]))` : `saved["${name}"]["data"]`) : list(given[name] as Values, "");
    const needs = action === "backward" && GRADIENTS.some((one) => one === name) ? ".requires_grad_()" : "";
    return `${name} = torch.tensor(${values}${kind}).reshape${tuple(shapes[name])}${needs}`;
  };
  const { lines, caveat } = body(served);
  const share = spec.config.grad_reduction === "mean" ? ` / ${spec.samples}` : "";
  const prints = action === "forward" ? [] : GRADIENTS.filter((name) => given[name]).map((name) =>
    `print("d${name}", (${name}.grad${name === "x" ? "" : share}).tolist())`);
  return [
    ...(long ? ["import json", ""] : []), ...(odd && !long ? ["from math import inf, nan", ""] : []), "import torch", "import torch.nn.functional as F", "",
    ...(caveat ? [`# ${caveat}`] : []),
    ...(moved ? ["# PyTorch’s own order of axes; the request’s layout differs."] : []),
    ...(long ? [`# The tensors are in the file ${FILE}, from the button below.`, `with open("${FILE}") as file:`, "    saved = json.load(file)"] : []),
    ...names.map(tensor), "", ...lines, 'print("y", y.tolist())',
    ...(action === "backward" ? ["y.backward(dy)", ...prints] : []), "",
  ].join("\n");
}
