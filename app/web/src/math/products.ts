/**
 * The products of a convolution: which x, weight and y meet in one, whichever of x and y the windows are, and
 * whole tensors as their sums, in float64.
 */

import { activation, type Activation } from "./activation";
import { type Axes, PADDING } from "./axis";
import { Correlation } from "./correlation";
import { overflows, ROUNDING, type Slack } from "./doubt";
import type { Given, Made, Part, Role } from "./layer";
import { plane, type Shape5, size } from "./shape";

export interface ConvolutionParts {
  op: "conv" | "conv_transpose";
  dims: number;
  axes: Axes;
  shapes: Record<"x" | "weight" | "y", Shape5>;
  groups: number;
  activation: unknown;
  mean: boolean;
  /** Whether the service adds up plain products; other algorithms round even where those would not. */
  direct: boolean;
  given: Given;
}

/** `other` is the flat index on the far side, or PADDING. */
type Visit = (other: number, weight: number) => void;

/** Sums of integers below it are exact in float32, in any order. */
const EXACT = 2 ** 24;

/** Near enough to a kink to be beside it and nothing else. */
const BESIDE = 1e-9;

export const KINK = "some z is at a kink within rounding, where either slope is right";

export class Products {
  readonly shapes: Record<Exclude<Role, "indices">, Shape5>;
  /** The side that windows are on: the sweep moves along its cells. */
  readonly sweep: "x" | "y";
  readonly act: Activation | null;
  /** What each term of a parameter's gradient is multiplied by. */
  readonly share: number;
  private readonly meet: Correlation;
  private readonly channels: number;
  private readonly area: number;
  private z: Float64Array | null = null;
  private readonly jumps = new Map<number, readonly number[]>();

  constructor(private readonly of: ConvolutionParts) {
    const { x, weight, y } = of.shapes;
    this.sweep = of.op === "conv" ? "y" : "x";
    const [windows, dense] = of.op === "conv" ? [y, x] : [x, y];
    this.meet = new Correlation(of.axes, windows, dense, weight, of.groups);
    this.act = activation(of.activation);
    this.channels = y[1];
    this.area = plane(y);
    this.share = of.mean && x[0] > 0 ? 1 / x[0] : 1;
    const bias: Shape5 = [1, y[1], 1, 1, 1];
    this.shapes = { x, dx: x, weight, dweight: weight, y, dy: y, bias, dbias: bias };
  }

  /** The inputs, with their weights, that an output is the sum of. */
  ofY(y: number, visit: Visit): void {
    if (this.sweep === "y") this.meet.ofWindow(y, visit);
    else this.meet.ofDense(y, visit);
  }

  /** The outputs that an input went into, with the weights it did so by. */
  ofX(x: number, visit: Visit): void {
    if (this.sweep === "y") this.meet.ofDense(x, visit);
    else this.meet.ofWindow(x, visit);
  }

  /** Calls with (y, x) for each use of a weight. */
  ofWeight(index: number, visit: (y: number, x: number) => void): void {
    if (this.sweep === "y") this.meet.ofWeight(index, visit);
    else this.meet.ofWeight(index, (x, y) => visit(y, x));
  }

  channelOf(y: number): number {
    return Math.floor(y / this.area) % this.channels;
  }

  /** An output before its activation. */
  private before(y: number): number {
    this.z ??= this.outputs(Infinity);
    return this.z[y];
  }

  private slope(y: number): number {
    return this.act ? this.act.slope(this.before(y)) : 1;
  }

  /** The factors whose product is the gradient of an output before its activation. */
  gradient(y: number): readonly Part[] {
    const dy: Part = { role: "dy", index: y, value: this.of.given.dy![y] };
    if (!this.act) return [dy];
    return [dy, { role: "factor", index: -1, value: this.slope(y), label: "φ′", of: { name: "z", value: this.before(y) } }];
  }

  /** Adds how far a term, a factor times the gradient of an output before its activation, may be off since z is at a kink within rounding. */
  loosen(slack: Slack, y: number, factor = 1): void {
    if (!this.act || this.act.kinks.length === 0) return;
    let jump = this.jumps.get(y);
    if (jump === undefined) this.jumps.set(y, (jump = this.jump(y, this.act)));
    for (const by of jump) slack.add(by, this.of.given.dy![y] * factor);
  }

  /** From the slope that the page takes to the least and the largest that z may have; none where z is at no kink. */
  private jump(y: number, { kinks, slope }: Activation): readonly number[] {
    const { x, weight, bias } = this.of.given;
    const z = this.before(y);
    const first = bias ? bias[this.channelOf(y)] : 0;
    let reach = Math.abs(first);
    let whole = Number.isInteger(first);
    this.ofY(y, (at, w) => {
      if (at === PADDING) return;
      const term = x![at] * weight![w];
      reach += Math.abs(term);
      whole &&= Number.isInteger(term);
    });
    if (reach === 0 || !Number.isFinite(reach)) return [];
    // Beyond float32 a z may be anywhere.
    const room = overflows(reach) ? Infinity : ROUNDING * reach;
    const near = kinks.filter((kink) => Math.abs(z - kink) <= room);
    // At a kink other than 0 a second sum rounds: that of hard_sigmoid's line.
    const exact = whole && reach < EXACT && this.of.direct;
    if (near.every((kink) => exact && kink === 0)) return [];
    const slopes = [z - room, z + room, ...near.flatMap((kink) => [kink - BESIDE, kink + BESIDE])].map((one) => slope(one) - slope(z));
    return [Math.min(0, ...slopes), Math.max(0, ...slopes)];
  }

  /** A whole tensor; `until`: only what the first sweep positions add to it. */
  compute(role: Made, until = Infinity): Float64Array {
    switch (role) {
      case "y": {
        const z = this.outputs(until);
        return this.act ? z.map(this.act.value) : z;
      }
      case "dx":
        return this.inputGradients(until);
      case "dweight":
        return this.weightGradients(until);
      default:
        return this.biasGradients(until);
    }
  }

  private outputs(until: number): Float64Array {
    const { x, weight, bias } = this.of.given;
    const counts = this.counter(until);
    return this.fill("y", (y) => {
      let sum = bias ? bias[this.channelOf(y)] : 0;
      this.ofY(y, (at, w) => {
        if (at !== PADDING && counts(at, y)) sum += x![at] * weight![w];
      });
      return sum;
    });
  }

  private inputGradients(until: number): Float64Array {
    const { weight } = this.of.given;
    const counts = this.counter(until);
    const grads = this.gradients();
    return this.fill("dx", (x) => {
      let sum = 0;
      this.ofX(x, (y, w) => {
        if (y !== PADDING && counts(x, y)) sum += grads[y] * weight![w];
      });
      return sum;
    });
  }

  private weightGradients(until: number): Float64Array {
    const { x } = this.of.given;
    const counts = this.counter(until);
    const grads = this.gradients();
    return this.fill("dweight", (w) => {
      let sum = 0;
      this.ofWeight(w, (y, at) => {
        if (counts(at, y)) sum += grads[y] * x![at];
      });
      return sum * this.share;
    });
  }

  private biasGradients(until: number): Float64Array {
    const counts = this.counter(until);
    const sums = new Float64Array(this.channels);
    this.gradients().forEach((value, y) => {
      if (this.sweep === "x" || counts(0, y)) sums[this.channelOf(y)] += value * this.share;
    });
    return sums;
  }

  private gradients(): Float64Array {
    return this.fill("dy", (y) => this.of.given.dy![y] * this.slope(y));
  }

  /** Whether the meeting of x and y belongs to the first `until` sweep positions. */
  private counter(until: number): (x: number, y: number) => boolean {
    if (until === Infinity) return () => true;
    const area = plane(this.shapes[this.sweep]);
    return this.sweep === "y" ? (_, y) => y % area < until : (x) => x % area < until;
  }

  private fill(role: "y" | "dy" | "dx" | "dweight", value: (index: number) => number): Float64Array {
    const out = new Float64Array(size(this.shapes[role]));
    for (let index = 0; index < out.length; index += 1) out[index] = value(index);
    return out;
  }
}
