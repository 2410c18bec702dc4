/** The sentence that says why a cell is what it is. */

import { count } from "../../core/format";
import type { Explanation } from "../../math/layer";
import { isConvolution } from "../../state/spec";
import type { Served } from "../../state/served";

function paddingWords(of: Explanation): string {
  if (of.padding === 0) return "";
  return ` ${count(of.padding, "tap")} ${of.padding === 1 ? "falls" : "fall"} on the padding.`;
}

function convolutionWords(of: Explanation, transposed: boolean): string {
  const n = of.terms.length;
  switch (of.role) {
    case "y":
      return transposed
        ? `The sum of ${count(n, "term")}: each input whose stamp covers this output, times the weight that it is covered by.`
        : `The sum of ${count(n, "term")}: each input under the window times its weight.${paddingWords(of)}`;
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

function poolWords(of: Explanation, op: string): string {
  const active = of.terms.filter((term) => !term.idle).length;
  const max = op.includes("max");
  switch (of.role) {
    case "y":
      if (of.terms.length === 0) return "The window covers no input.";
      return max
        ? `The largest of ${count(of.terms.length, "input")} under the window${active > 1 ? `; ${active} are equally large` : ""}.${paddingWords(of)}`
        : op.includes("lp")
          ? `The p-norm of ${count(of.terms.length, "input")} under the window.${paddingWords(of)}`
          : `The mean of what is under the window.${paddingWords(of)}`;
    case "dx":
      if (of.terms.length === 0) return "No window covers this input, so its gradient is 0.";
      return max
        ? `${count(of.terms.length, "window")} cover this input; it is the maximum of ${active}, and gets the gradient of each.`
        : `${count(of.terms.length, "window")} cover this input, and each sends back its share.`;
    case "x":
      if (of.terms.length === 0) return "No window covers this input.";
      return max
        ? `Under ${count(of.terms.length, "window")}, and the maximum of ${active}.`
        : `Under ${count(of.terms.length, "window")}.`;
    default:
      if (active === 0) return "This gradient goes nowhere: its maximum is in the padding.";
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

export function sentence(served: Served, of: Explanation): string {
  const { op } = served.spec;
  if (isConvolution(op)) return convolutionWords(of, op === "conv_transpose");
  return op.includes("unpool") || op === "activation" ? carriedWords(of, op) : poolWords(of, op);
}

/** The two lines above the rows of grids. */
export function formulas(op: string): { forward: string; backward: string } {
  switch (op) {
    case "conv":
      return { forward: "Y = W ⋆ X", backward: "dX = Wᵀ dY,  dW = dY ⋆ X" };
    case "conv_transpose":
      return { forward: "Y = Wᵀ X", backward: "dX = W ⋆ dY,  dW = X ⋆ dY" };
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
