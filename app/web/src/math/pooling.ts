/** Pools: which input made each output, or how much of it, and which gradients come back to an input. */

import { type Axes, PADDING, repeated, touched } from "./axis";
import {
  type Explanation, explanation, type Given, type Layer, Lit, type Made, type Part, type Role,
  type Term,
} from "./layer";
import { plane, type Shape5, size } from "./shape";
import { Windows } from "./windows";

export interface PoolRule {
  kind: "max" | "average" | "lp";
  /** max: what padding holds; null: it takes no part. */
  pad: number | null;
  ties: "first" | "all";
  /** average: what to divide by, or null for the number of cells. */
  divisor: number | null;
  countPadding: boolean;
  p: number;
}

export class Pooling implements Layer {
  readonly shapes: Layer["shapes"];
  readonly sweep = "y" as const;
  readonly homogeneous = true;
  private readonly meet: Windows;

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
    this.shapes = { x, dx: x, y, dy: y };
  }

  private window(y: number): number[] {
    const cells: number[] = [];
    this.meet.ofOutput(y, (x) => cells.push(x));
    return cells;
  }

  private value(x: number): number {
    return x === PADDING ? (this.rule.pad ?? 0) : this.given.x![x];
  }

  /** The cells that give a maximum its value; PADDING among them where padding does. */
  winners(y: number): readonly number[] | null {
    if (this.rule.kind !== "max") return null;
    const cells = this.window(y).filter((x) => x !== PADDING || this.rule.pad !== null);
    const best = maximum(cells.map((x) => this.value(x)));
    const same = cells.filter((x) => Object.is(this.value(x), best) || this.value(x) === best);
    return this.rule.ties === "first" ? same.slice(0, 1) : same;
  }

  private divisor(y: number): number {
    if (this.rule.divisor !== null) return this.rule.divisor;
    const cells = this.window(y);
    return this.rule.countPadding ? cells.length : cells.filter((x) => x !== PADDING).length;
  }

  private output(y: number): number {
    const values = this.window(y).map((x) => this.value(x));
    switch (this.rule.kind) {
      case "max":
        return maximum(this.rule.pad === null ? this.reals(y) : values);
      case "average":
        return values.reduce((sum, value) => sum + value, 0) / this.divisor(y);
      default:
        return this.norm(values);
    }
  }

  private reals(y: number): number[] {
    return this.window(y).filter((x) => x !== PADDING).map((x) => this.value(x));
  }

  private norm(values: readonly number[]): number {
    const { p } = this.rule;
    return values.reduce((sum, value) => sum + Math.abs(value) ** p, 0) ** (1 / p);
  }

  /** ∂y/∂x for one window and one of its cells, and how to write it. */
  private slope(y: number, x: number): { value: number; label: string } {
    switch (this.rule.kind) {
      case "max":
        return { value: this.winners(y)!.includes(x) ? 1 : 0, label: "" };
      case "average": {
        const divisor = this.divisor(y);
        return { value: 1 / divisor, label: `1/${divisor}` };
      }
      default: {
        const norm = this.output(y);
        const value = this.value(x);
        if (norm === 0 || value === 0) return { value: 0, label: "0" };
        const { p } = this.rule;
        return {
          value: Math.sign(value) * (Math.abs(value) / norm) ** (p - 1),
          label: p === 2 ? "x/y" : "sgn(x)·(|x|/y)^(p−1)",
        };
      }
    }
  }

  explain(role: Role, index: number): Explanation {
    if (role === "y") return this.explainY(index);
    if (role === "dy") return this.explainDy(index);
    return this.explainX(role as "x" | "dx", index);
  }

  private explainY(index: number): Explanation {
    const lit = new Lit();
    const cells = this.window(index);
    const winners = this.winners(index);
    const terms: Term[] = [];
    for (const x of cells) {
      lit.add("x", x);
      if (x === PADDING) continue;
      terms.push(this.contribution(index, x, winners));
    }
    const padding = cells.length - terms.length;
    const { kind, p } = this.rule;
    if (kind === "average") return explanation("y", index, "sum", terms, lit, { padding });
    const value = this.output(index);
    if (kind === "max") return explanation("y", index, "max", terms, lit, { padding, total: value });
    const after = [{ label: `^(1/${p})`, value }];
    return explanation("y", index, "norm", terms, lit, { padding, after });
  }

  private contribution(y: number, x: number, winners: readonly number[] | null): Term {
    const part: Part = { role: "x", index: x, value: this.value(x) };
    if (this.rule.kind === "average") {
      const { value, label } = this.slope(y, x);
      const parts = [part, { role: "factor", index: -1, value, label } as const];
      return { parts, value: part.value * value };
    }
    if (this.rule.kind === "lp") {
      return { parts: [part], value: Math.abs(part.value) ** this.rule.p, note: "|x|^p" };
    }
    const wins = winners!.includes(x);
    return { parts: [part], value: part.value, idle: !wins, note: wins ? "maximum" : undefined };
  }

  private explainX(role: "x" | "dx", index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    this.meet.ofInput(index, (y) => {
      lit.add("y", y);
      const slope = this.slope(y, index);
      const into: Part = { role: "y", index: y, value: 0 };
      if (role === "dx") terms.push(this.routed(y, slope));
      else {
        const wins = this.rule.kind !== "max" || slope.value === 1;
        const note = this.rule.kind === "max" ? (wins ? "maximum" : "not the maximum") : undefined;
        const value = this.given.x![index];
        terms.push({ parts: [{ role: "x", index, value }], value, into, note, idle: !wins });
      }
    });
    return explanation(role, index, role === "dx" ? "sum" : "given", terms, lit);
  }

  private routed(y: number, slope: { value: number; label: string }): Term {
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
    for (const x of this.window(index)) {
      if (x === PADDING) {
        padding += 1;
        continue;
      }
      lit.add("x", x);
      const slope = this.slope(index, x);
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
      return Float64Array.from({ length: outputs }, (_, y) => (y % area < until ? this.output(y) : 0));
    }
    const dx = new Float64Array(size(this.shapes.x!));
    for (let y = 0; y < outputs; y += 1) {
      if (y % area >= until) continue;
      const cells = this.rule.kind === "max" ? this.winners(y)! : this.window(y);
      for (const x of cells) if (x >= 0) dx[x] += this.given.dy![y] * this.slopeOf(y, x);
    }
    return dx;
  }

  private slopeOf(y: number, x: number): number {
    return this.rule.kind === "max" ? 1 : this.slope(y, x).value;
  }

  read(): Uint8Array {
    return repeated(touched(this.axes, "dense"), size(this.shapes.x!));
  }
}

/** NaN wins over every number; of nothing, −∞. */
function maximum(values: readonly number[]): number {
  return values.reduce((best, value) => (Number.isNaN(value) || value > best ? value : best), -Infinity);
}
