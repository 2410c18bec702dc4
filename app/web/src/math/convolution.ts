/** Convolution and transposed convolution: products, and for each cell the products it is the sum of. */

import { activation, type Activation } from "./activation";
import { type Axes, PADDING, repeated, touched } from "./axis";
import { Correlation } from "./correlation";
import {
  type Explanation, explanation, type Given, type Layer, Lit, type Made, type Part, type Role,
  type Term,
} from "./layer";
import { plane, type Shape5, size } from "./shape";

export interface ConvolutionParts {
  op: "conv" | "conv_transpose";
  dims: number;
  axes: Axes;
  shapes: Record<"x" | "weight" | "y", Shape5>;
  groups: number;
  activation: unknown;
  mean: boolean;
  given: Given;
}

export class Convolution implements Layer {
  readonly op: string;
  readonly dims: number;
  readonly axes: Axes;
  readonly shapes: Layer["shapes"];
  readonly sweep: "x" | "y";
  readonly homogeneous: boolean;
  private readonly meet: Correlation;
  private readonly act: Activation | null;
  private readonly channels: number;
  private readonly area: number;
  private readonly share: number;
  private z: Float64Array | null = null;

  constructor(private readonly of: ConvolutionParts) {
    const { x, weight, y } = of.shapes;
    this.op = of.op;
    this.dims = of.dims;
    this.axes = of.axes;
    this.sweep = of.op === "conv" ? "y" : "x";
    const [windows, dense] = of.op === "conv" ? [y, x] : [x, y];
    this.meet = new Correlation(of.axes, windows, dense, weight, of.groups);
    this.act = activation(of.activation);
    this.homogeneous = this.act === null && of.given.bias === undefined;
    this.channels = y[1];
    this.area = plane(y);
    this.share = of.mean && x[0] > 0 ? 1 / x[0] : 1;
    const bias: Shape5 = [1, y[1], 1, 1, 1];
    this.shapes = { x, dx: x, weight, dweight: weight, y, dy: y, bias, dbias: bias };
  }

  private get forward() {
    const { meet } = this;
    return this.op === "conv"
      ? { ofY: meet.ofWindow.bind(meet), ofX: meet.ofDense.bind(meet) }
      : { ofY: meet.ofDense.bind(meet), ofX: meet.ofWindow.bind(meet) };
  }

  /** Calls with (y, x) for each use of a weight, whichever of them the windows are. */
  private ofWeight(index: number, visit: (y: number, x: number) => void): void {
    if (this.op === "conv") this.meet.ofWeight(index, visit);
    else this.meet.ofWeight(index, (x, y) => visit(y, x));
  }

  private channelOf(y: number): number {
    return Math.floor(y / this.area) % this.channels;
  }

  /** Values before the activation. */
  private before(): Float64Array {
    this.z ??= this.outputs(Infinity);
    return this.z;
  }

  private dz(y: number): number {
    const { dy } = this.of.given;
    return dy![y] * (this.act ? this.act.slope(this.before()[y]) : 1);
  }

  private gradient(y: number): Part {
    if (!this.act) return { role: "dy", index: y, value: this.of.given.dy![y] };
    return { role: "dz", index: y, value: this.dz(y) };
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
    this.forward.ofY(index, (x, w) => {
      lit.add("weight", w);
      if (x === PADDING) {
        padding += 1;
        return;
      }
      lit.add("x", x);
      const parts = [this.cell("x", x), this.cell("weight", w)];
      terms.push({ parts, value: parts[0].value * parts[1].value });
    });
    const { bias } = this.of.given;
    if (bias) {
      const channel = this.channelOf(index);
      lit.add("bias", channel);
      const value = bias[channel];
      terms.push({ parts: [{ role: "bias", index: channel, value }], value });
    }
    const sum = terms.reduce((total, term) => total + term.value, 0);
    const after = this.act ? [{ label: this.act.name, value: this.act.value(sum) }] : [];
    return explanation("y", index, "sum", terms, lit, { padding, after });
  }

  private explainX(role: "x" | "dx", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    let padding = 0;
    this.forward.ofX(index, (y, w) => {
      lit.add("weight", w);
      if (y === PADDING) {
        padding += 1;
        return;
      }
      lit.add("y", y);
      terms.push(role === "dx" ? this.product(this.gradient(y), w) : this.use(index, w, y));
    });
    return explanation(role, index, role === "dx" ? "sum" : "given", terms, lit, { padding });
  }

  private product(gradient: Part, weight: number): Term {
    const w = this.cell("weight", weight);
    return { parts: [gradient, w], value: gradient.value * w.value };
  }

  private use(x: number, weight: number, y: number): Term {
    const parts = [this.cell("x", x), this.cell("weight", weight)];
    return { parts, value: parts[0].value * parts[1].value, into: { role: "y", index: y, value: 0 } };
  }

  private explainWeight(role: "weight" | "dweight", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    this.ofWeight(index, (y, x) => {
      lit.add("y", y);
      lit.add("x", x);
      if (role === "weight") {
        terms.push(this.use(x, index, y));
        return;
      }
      const parts = [this.gradient(y), this.cell("x", x), ...this.mean()];
      terms.push({ parts, value: parts[0].value * parts[1].value * this.share });
    });
    return explanation(role, index, role === "dweight" ? "sum" : "given", terms, lit);
  }

  private mean(): Part[] {
    if (this.share === 1) return [];
    return [{ role: "factor", index: -1, value: this.share, label: "1/N" }];
  }

  private explainBias(role: "bias" | "dbias", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    const outputs = size(this.shapes.y!);
    for (let y = 0; y < outputs; y += 1) {
      if (this.channelOf(y) !== index) continue;
      lit.add("y", y);
      if (role === "bias") {
        const value = this.of.given.bias?.[index] ?? 0;
        terms.push({ parts: [{ role, index, value }], value, into: { role: "y", index: y, value: 0 } });
      } else {
        const parts = [this.gradient(y), ...this.mean()];
        terms.push({ parts, value: parts[0].value * this.share });
      }
    }
    return explanation(role, index, role === "dbias" ? "sum" : "given", terms, lit);
  }

  private explainDy(index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    let padding = 0;
    const gradient = this.gradient(index);
    this.forward.ofY(index, (x, w) => {
      lit.add("weight", w);
      if (x === PADDING) {
        padding += 1;
        return;
      }
      lit.add("x", x);
      terms.push({ ...this.product(gradient, w), into: { role: "dx", index: x, value: 0 } });
    });
    if (this.of.given.bias) lit.add("bias", this.channelOf(index));
    return explanation("dy", index, "given", terms, lit, { padding });
  }

  compute(role: Made, until = Infinity): Float64Array {
    if (role === "y") return this.finish(this.outputs(until));
    const counts = this.counter(until);
    if (role === "dx") {
      const { weight } = this.of.given;
      const grads = this.gradients();
      return this.fill("dx", (index) => {
        let sum = 0;
        this.forward.ofX(index, (y, w) => {
          if (y !== PADDING && counts(index, y)) sum += grads[y] * weight![w];
        });
        return sum;
      });
    }
    if (role === "dweight") {
      const { x } = this.of.given;
      const grads = this.gradients();
      return this.fill("dweight", (index) => {
        let sum = 0;
        this.ofWeight(index, (y, at) => {
          if (counts(at, y)) sum += grads[y] * x![at];
        });
        return sum * this.share;
      });
    }
    const sums = new Float64Array(this.channels);
    this.gradients().forEach((value, y) => {
      if (this.sweep === "x" || counts(0, y)) sums[this.channelOf(y)] += value * this.share;
    });
    return sums;
  }

  private gradients(): Float64Array {
    return this.fill("dy", (y) => this.dz(y));
  }

  /** Whether the meeting of x and y belongs to the first `until` sweep positions. */
  private counter(until: number): (x: number, y: number) => boolean {
    if (until === Infinity) return () => true;
    const area = plane(this.shapes[this.sweep]!);
    return this.sweep === "y" ? (_, y) => y % area < until : (x) => x % area < until;
  }

  private outputs(until: number): Float64Array {
    const { x, weight, bias } = this.of.given;
    const counts = this.counter(until);
    return this.fill("y", (y) => {
      let sum = bias ? bias[this.channelOf(y)] : 0;
      this.forward.ofY(y, (at, w) => {
        if (at !== PADDING && counts(at, y)) sum += x![at] * weight![w];
      });
      return sum;
    });
  }

  private finish(z: Float64Array): Float64Array {
    return this.act ? z.map(this.act.value) : z;
  }

  private fill(role: Role, value: (index: number) => number): Float64Array {
    const out = new Float64Array(size(this.shapes[role]!));
    for (let index = 0; index < out.length; index += 1) out[index] = value(index);
    return out;
  }

  read(): Uint8Array {
    const plane = touched(this.axes, this.sweep === "y" ? "dense" : "windows");
    return repeated(plane, size(this.shapes.x!));
  }

  winners(): null {
    return null;
  }
}
