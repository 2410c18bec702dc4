/** The sentence that says why a cell is what it is. */

import { count, full } from "../../core/format";
import { activation } from "../../math/activation";
import type { Explanation } from "../../math/layer";
import { type Config, isConvolution, meanOf, type Spec } from "../../state/spec";
import type { Served } from "../../state/served";

function paddingWords(of: Explanation): string {
  if (of.padding === 0) return "";
  return ` ${count(of.padding, "tap")} ${of.padding === 1 ? "falls" : "fall"} on the padding.`;
}

function convolutionWords(of: Explanation, transposed: boolean): string {
  const bias = of.role === "y" && of.terms.some((term) => term.parts[0].role === "bias");
  const n = of.terms.length - (bias ? 1 : 0);
  switch (of.role) {
    case "y":
      if (n === 0 && transposed) return `No stamp covers this output: it is ${bias ? "the bias alone" : "0"}.`;
      return `The sum of ${count(n, "product")}${bias ? " and the bias" : ""}: ${transposed
        ? "each input whose stamp covers this output, times the weight that it is covered by."
        : `each input under the window times its weight.${paddingWords(of)}`}`;
    case "dx":
      return n === 0
        ? "No output reads this input, so nothing comes back to it: its gradient is 0."
        : `${count(n, "product")} came back to this input: the gradient of each output that read it, times the weight it was read by.`;
    case "dweight":
      return `This weight was used ${count(n, "time")}. Each use adds the output’s gradient times the input that the weight met there.`;
    case "dbias":
      return `The bias went into all ${count(n, "output")} of its channel, so their gradients add up.`;
    case "x":
      return n === 0 ? "No window reads this input." : `This input went into ${count(n, "product")}.`;
    case "weight":
      return `This weight went into ${count(n, "product")}.`;
    case "bias":
      return `Added to ${count(n, "output")}.`;
    default:
      return `This gradient is given. It goes back to the ${count(n, "input")} that its output read, by the weight of each.${paddingWords(of)}`;
  }
}

/** What a pool makes of the padding under its window. */
function poolPadding(of: Explanation, op: string, config: Config): string {
  if (of.padding === 0) return "";
  const counts = op.includes("max") ? config.pad_value === "zero" : config.count_include_pad !== false || typeof config.divisor_override === "number";
  const one = of.padding === 1;
  return ` ${count(of.padding, "tap")} ${one ? "falls" : "fall"} on the padding and ${counts ? `${one ? "counts" : "count"} as 0` : `${one ? "takes" : "take"} no part`}.`;
}

const maxima = (n: number) => (n === 0 ? "none, so nothing comes back to it" : n === 1 ? "1, and gets its gradient" : `${n}, and gets the gradient of each`);

const covers = (n: number) => `${count(n, "window")} ${n === 1 ? "covers" : "cover"} this input`;

/** How an average is made, as far as its config says so. */
function meanWords(of: Explanation, op: string, config: Config): string {
  const divisor = config.divisor_override;
  const what = typeof divisor === "number" ? `The sum of what is under the window, divided by ${full(divisor)}.` : "The mean of what is under the window.";
  return `${what}${poolPadding(of, op, config)}`;
}

function poolWords(of: Explanation, op: string, config: Config): string {
  const active = of.terms.filter((term) => !term.idle).length;
  const max = op.includes("max");
  const padding = poolPadding(of, op, config);
  switch (of.role) {
    case "y":
      if (of.terms.length === 0) return "The window covers no input.";
      return max
        ? `The largest of ${count(of.terms.length, "input")} under the window${active > 1 ? `; ${active} are equally large` : ""}.${padding}`
        : op.includes("lp")
          ? `The p-norm of ${count(of.terms.length, "input")} under the window.${padding}`
          : meanWords(of, op, config);
    case "dx":
      if (of.terms.length === 0) return "No window covers this input, so its gradient is 0.";
      if (max) return `${covers(of.terms.length)}; it is the maximum of ${maxima(active)}.`;
      return `${covers(of.terms.length)}. ${of.terms.length === 1 ? "It" : "Each"} sends back ${op.includes("lp")
        ? "dY times ∂y/∂x = sgn(x)·(|x|/y)ᵖ⁻¹"
        : `its gradient divided by ${typeof config.divisor_override === "number" ? full(config.divisor_override) : "its count"}`}.`;
    case "x":
      if (of.terms.length === 0) return "No window covers this input.";
      return max
        ? `Under ${count(of.terms.length, "window")}, and the maximum of ${active === 0 ? "none" : active}.`
        : `Under ${count(of.terms.length, "window")}.`;
    default:
      if (of.terms.length === 0) return `This gradient goes nowhere: its ${max && config.pad_value === "zero" ? "maximum is in the padding" : "window covers no input"}.`;
      return max
        ? `This gradient goes back whole to ${active === 1 ? "the maximum" : `each of ${active} equal maxima`} of its window.`
        : `This gradient is spread over ${count(active, "input")} of its window.`;
  }
}

function carriedWords(of: Explanation, op: string): string {
  const unpool = op === "max_unpool";
  switch (of.role) {
    case "y":
      return of.terms.length === 0 ? "No input was put here: 0." : unpool ? "The input whose index points here." : "The function of one input.";
    case "dx":
      return unpool ? "The gradient of the place that this input was put." : "The output’s gradient times the slope of the function here.";
    case "dy":
      return of.terms.length === 0 ? "No input was put here, so this gradient goes nowhere." : "Goes back to the one input that made this output.";
    default:
      return "Goes to one output.";
  }
}

/** What φ′ and z are, where they are among the factors; of a single output z is told too. */
function slopeWords(of: Explanation, config: Config): string {
  const bent = of.terms.flatMap(({ parts }) => parts.find((part) => part.of) ?? [])[0];
  if (!bent) return "";
  const z = of.role === "dy" ? `z = ${full(bent.of!.value)}` : "z";
  return ` φ′ is the slope of ${activation(config.activation)!.name} at ${z}, the output before it.`;
}

export function sentence(served: Served, of: Explanation): string {
  const { op, config } = served.spec;
  if (isConvolution(op)) return convolutionWords(of, op === "conv_transpose") + slopeWords(of, config);
  return op.includes("unpool") || op === "activation" ? carriedWords(of, op) : poolWords(of, op, config);
}

interface Formulas {
  readonly forward: string;
  readonly backward: string;
}

/** What goes back through a layer is its output's gradient, times the activation's slope where there is one. */
function convolutionFormulas(spec: Spec): Formulas {
  const { op, config, bias } = spec;
  const bent = activation(config.activation) !== null;
  const gradient = bent ? "(dY·φ′)" : "dY";
  // A kernel that is flipped convolves, and its gradient is the correlation the other way round.
  const flipped = config.flip_kernel === true;
  const sign = flipped ? "∗" : "⋆";
  const transposed = op === "conv_transpose";
  const stamped = (of: string) => (of.startsWith("(") ? `Wᵀ${of}` : `Wᵀ ${of}`);
  const linear = `${transposed ? "Wᵀ X" : `W ${sign} X`}${bias ? " + b" : ""}`;
  const dx = transposed ? `W ${sign} ${gradient}` : stamped(gradient);
  const dw = transposed === flipped ? `${gradient} ⋆ X` : `X ⋆ ${gradient}`;
  const share = (sum: string) => (meanOf(spec) === null ? sum : `(${sum}) / N`);
  return {
    forward: `Y = ${bent ? `φ(${linear})` : linear}`,
    backward: `dX = ${dx},  dW = ${share(dw)}${bias ? `,  db = ${share(`Σ ${bent ? "dY·φ′" : "dY"}`)}` : ""}`,
  };
}

/** The two lines above the rows of grids. */
export function formulas(spec: Spec): Formulas {
  const { op } = spec;
  switch (op) {
    case "conv":
    case "conv_transpose":
      return convolutionFormulas(spec);
    case "max_unpool":
      return { forward: "Y[I] = X", backward: "dX = dY[I]" };
    case "activation":
      return { forward: "Y = φ(X)", backward: "dX = dY · φ′(X)" };
    default:
      if (op.includes("max")) return { forward: "Y = max over each window of X", backward: "dX: each dY to its maximum" };
      if (op.includes("lp")) return { forward: "Y = (Σ |X|ᵖ)¹ᐟᵖ over each window", backward: "dX = Σ dY · ∂Y/∂X" };
      return { forward: "Y = mean over each window of X", backward: "dX = Σ dY / count" };
  }
}
