/** Convolution and transposed convolution: for each cell the products that it is the sum of. */

import { type Axes, PADDING, repeated, touched } from "./axis";
import { type Doubt, Slack } from "./doubt";
import {
  type Explanation, explanation, type Layer, Lit, type Made, type Part, type Role, type Term,
} from "./layer";
import { type ConvolutionParts, KINK, Products } from "./products";
import { size } from "./shape";

function product(...parts: readonly Part[]): Term {
  return { parts, value: parts.reduce((value, part) => value * part.value, 1) };
}

export class Convolution implements Layer {
  readonly op: string;
  readonly dims: number;
  readonly axes: Axes;
  readonly shapes: Layer["shapes"];
  readonly sweep: "x" | "y";
  private readonly products: Products;

  constructor(private readonly of: ConvolutionParts) {
    this.op = of.op;
    this.dims = of.dims;
    this.axes = of.axes;
    this.products = new Products(of);
    this.shapes = this.products.shapes;
    this.sweep = this.products.sweep;
  }

  private cell(role: "x" | "weight", index: number): Part {
    return { role, index, value: index < 0 ? 0 : this.of.given[role]![index] };
  }

  explain(role: Role, index: number): Explanation {
    switch (role) {
      case "y":
        return this.explainY(index);
      case "x":
      case "dx":
        return this.explainX(role, index);
      case "weight":
      case "dweight":
        return this.explainWeight(role, index);
      case "bias":
      case "dbias":
        return this.explainBias(role, index);
      default:
        return this.explainDy(index);
    }
  }

  private explainY(index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    let padding = 0;
    this.products.ofY(index, (x, w) => {
      lit.add("weight", w);
      if (x === PADDING) {
        padding += 1;
        return;
      }
      lit.add("x", x);
      terms.push(product(this.cell("x", x), this.cell("weight", w)));
    });
    const { bias } = this.of.given;
    if (bias) {
      const channel = this.products.channelOf(index);
      lit.add("bias", channel);
      const value = bias[channel];
      terms.push({ parts: [{ role: "bias", index: channel, value }], value });
    }
    const sum = terms.reduce((total, term) => total + term.value, 0);
    const after = this.products.act ? [{ label: this.products.act.name, value: this.products.act.value(sum) }] : [];
    return explanation("y", index, "sum", terms, lit, { padding, after });
  }

  private explainX(role: "x" | "dx", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    let padding = 0;
    const slack = new Slack();
    this.products.ofX(index, (y, w) => {
      lit.add("weight", w);
      if (y === PADDING) {
        padding += 1;
        return;
      }
      lit.add("y", y);
      terms.push(role === "dx" ? product(...this.products.gradient(y), this.cell("weight", w)) : this.use(index, w, y));
      if (role === "dx") this.products.loosen(slack, y, this.of.given.weight![w]);
    });
    return explanation(role, index, role === "dx" ? "sum" : "given", terms, lit, { padding, doubt: slack.doubt(KINK) });
  }

  private use(x: number, weight: number, y: number): Term {
    return { ...product(this.cell("x", x), this.cell("weight", weight)), into: { role: "y", index: y, value: 0 } };
  }

  private explainWeight(role: "weight" | "dweight", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    const slack = new Slack();
    this.products.ofWeight(index, (y, x) => {
      lit.add("y", y);
      lit.add("x", x);
      if (role === "weight") {
        terms.push(this.use(x, index, y));
        return;
      }
      const met = this.cell("x", x);
      terms.push(product(...this.products.gradient(y), met));
      this.products.loosen(slack, y, met.value);
    });
    if (role === "weight") return explanation(role, index, "given", terms, lit);
    return explanation(role, index, "sum", terms, lit, this.mean(slack));
  }

  private explainBias(role: "bias" | "dbias", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    const outputs = size(this.shapes.y!);
    const slack = new Slack();
    for (let y = 0; y < outputs; y += 1) {
      if (this.products.channelOf(y) !== index) continue;
      lit.add("y", y);
      if (role === "bias") {
        const value = this.of.given.bias?.[index] ?? 0;
        terms.push({ parts: [{ role, index, value }], value, into: { role: "y", index: y, value: 0 } });
      } else {
        terms.push(product(...this.products.gradient(y)));
        this.products.loosen(slack, y);
      }
    }
    if (role === "bias") return explanation(role, index, "given", terms, lit);
    return explanation(role, index, "sum", terms, lit, this.mean(slack));
  }

  private explainDy(index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    let padding = 0;
    const gradient = this.products.gradient(index);
    this.products.ofY(index, (x, w) => {
      lit.add("weight", w);
      if (x === PADDING) {
        padding += 1;
        return;
      }
      lit.add("x", x);
      terms.push({ ...product(...gradient, this.cell("weight", w)), into: { role: "dx", index: x, value: 0 } });
    });
    if (this.of.given.bias) lit.add("bias", this.products.channelOf(index));
    return explanation("dy", index, "given", terms, lit, { padding });
  }

  /** A parameter's gradient is one sum over all samples, or its share. */
  private mean(slack: Slack): { share: number; doubt: Doubt | null } {
    const { share } = this.products;
    return { share, doubt: slack.doubt(KINK, share) };
  }

  compute(role: Made, until = Infinity): Float64Array {
    return this.products.compute(role, until);
  }

  read(): Uint8Array {
    const plane = touched(this.axes, this.sweep === "y" ? "dense" : "windows");
    return repeated(plane, size(this.shapes.x!));
  }

  winners(): null {
    return null;
  }
}
