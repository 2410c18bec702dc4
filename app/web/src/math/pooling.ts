/** Pools: which input made each output, or how much of it, and which gradients come back to an input. */

import { type Axes, PADDING, repeated, touched } from "./axis";
import { OVERFLOW, Slack } from "./doubt";
import { type Explanation, explanation, type Given, type Layer, Lit, type Made, type Part, type Role, type Term } from "./layer";
import { type PoolRule, Reduction, type Slope } from "./reduction";
import { plane, type Shape5, size } from "./shape";
import { Windows } from "./windows";

export class Pooling implements Layer {
  readonly shapes: Layer["shapes"];
  readonly sweep = "y" as const;
  private readonly meet: Windows;
  private readonly reduce: Reduction;

  constructor(
    readonly op: string,
    readonly dims: number,
    readonly axes: Axes,
    x: Shape5,
    y: Shape5,
    private readonly rule: PoolRule,
    private readonly given: Given,
  ) {
    this.meet = new Windows(axes, x, y);
    this.reduce = new Reduction(this.meet, rule, given.x!);
    this.shapes = { x, dx: x, y, dy: y };
  }

  winners(y: number): readonly number[] | null {
    return this.reduce.winners(y);
  }

  explain(role: Role, index: number): Explanation {
    if (role === "y") return this.explainY(index);
    if (role === "dy") return this.explainDy(index);
    return this.explainX(role as "x" | "dx", index);
  }

  private explainY(index: number): Explanation {
    const lit = new Lit();
    const cells = this.reduce.window(index);
    const winners = this.winners(index);
    const terms: Term[] = [];
    for (const x of cells) {
      lit.add("x", x);
      if (x === PADDING) continue;
      terms.push(this.contribution(index, x, winners));
    }
    const padding = cells.length - terms.length;
    const { kind, p } = this.rule;
    if (kind === "average") return explanation("y", index, "sum", terms, lit, { padding, reach: this.reduce.reach(index) });
    const value = this.reduce.output(index);
    // A maximum sums nothing.
    if (kind === "max") return explanation("y", index, "max", terms, lit, { padding, total: value, reach: 0 });
    const after = [{ label: `^(1/${p})`, value }];
    // A root of a small p makes more of the rounding of its sum.
    return explanation("y", index, "norm", terms, lit, { padding, after, scale: value / Math.min(1, p) });
  }

  private contribution(y: number, x: number, winners: readonly number[] | null): Term {
    const part: Part = { role: "x", index: x, value: this.reduce.value(x) };
    if (this.rule.kind === "average") {
      const { value, label } = this.reduce.slope(y, x);
      const parts = [part, { role: "factor", index: -1, value, label } as const];
      return { parts, value: part.value * value };
    }
    if (this.rule.kind === "lp") {
      return { parts: [part], value: Math.abs(part.value) ** this.rule.p };
    }
    const wins = winners!.includes(x);
    return { parts: [part], value: part.value, idle: !wins, note: wins ? "maximum" : undefined };
  }

  private explainX(role: "x" | "dx", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    const slack = new Slack();
    this.meet.ofInput(index, (y) => {
      lit.add("y", y);
      const slope = this.reduce.slope(y, index);
      const into: Part = { role: "y", index: y, value: 0 };
      if (role === "dx") {
        const term = this.routed(y, slope);
        terms.push(term);
        // A norm that is ∞ leaves nothing of a slope, or makes no number of it.
        if (this.reduce.leaves(y)) slack.add(-term.value);
        if (this.reduce.leaves(y) && this.reduce.steep(index)) slack.end();
      } else {
        const wins = this.rule.kind !== "max" || slope.value === 1;
        const note = this.rule.kind === "max" ? (wins ? "maximum" : "not the maximum") : undefined;
        const value = this.given.x![index];
        terms.push({ parts: [{ role: "x", index, value }], value, into, note, idle: !wins });
      }
    });
    return explanation(role, index, role === "dx" ? "sum" : "given", terms, lit, { doubt: slack.doubt(OVERFLOW) });
  }

  private routed(y: number, slope: Slope): Term {
    const gradient: Part = { role: "dy", index: y, value: this.given.dy![y] };
    if (this.rule.kind !== "max") {
      const factor: Part = { role: "factor", index: -1, ...slope };
      return { parts: [gradient, factor], value: gradient.value * slope.value };
    }
    if (slope.value === 1) return { parts: [gradient], value: gradient.value, note: "maximum here" };
    return { parts: [gradient], value: 0, idle: true, note: "goes to another cell" };
  }

  private explainDy(index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    let padding = 0;
    for (const x of this.reduce.window(index)) {
      if (x === PADDING) {
        padding += 1;
        continue;
      }
      lit.add("x", x);
      const slope = this.reduce.slope(index, x);
      const term = this.routed(index, slope);
      if (this.rule.kind === "max" && slope.value === 0) continue;
      terms.push({ ...term, note: undefined, into: { role: "dx", index: x, value: 0 } });
    }
    return explanation("dy", index, "given", terms, lit, { padding });
  }

  compute(role: Made, until = Infinity): Float64Array {
    const area = plane(this.shapes.y!);
    const outputs = size(this.shapes.y!);
    if (role === "y") {
      return Float64Array.from({ length: outputs }, (_, y) => (y % area < until ? this.reduce.output(y) : 0));
    }
    const dx = new Float64Array(size(this.shapes.x!));
    for (let y = 0; y < outputs; y += 1) {
      if (y % area >= until) continue;
      const cells = this.rule.kind === "max" ? this.winners(y)! : this.reduce.window(y);
      for (const x of cells) if (x >= 0) dx[x] += this.given.dy![y] * this.slopeOf(y, x);
    }
    return dx;
  }

  private slopeOf(y: number, x: number): number {
    return this.rule.kind === "max" ? 1 : this.reduce.slope(y, x).value;
  }

  read(): Uint8Array {
    return repeated(touched(this.axes, "dense"), size(this.shapes.x!));
  }
}
