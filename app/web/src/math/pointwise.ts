/** Operations that carry each value to one place: unpooling to where `indices` say, activations in place. */

import { activation, type Activation } from "./activation";
import {
  type Explanation, explanation, type Given, type Layer, Lit, type Made, type Part, type Role,
  type Term,
} from "./layer";
import { plane, type Shape5, size } from "./shape";

export class Pointwise implements Layer {
  readonly shapes: Layer["shapes"];
  readonly sweep = "x" as const;
  readonly axes = null;
  /** For each input its output, and for each output its inputs, in order. */
  private readonly target: Int32Array;
  private readonly sources = new Map<number, number[]>();
  private readonly act: Activation | null;

  constructor(
    readonly op: "max_unpool" | "activation",
    readonly dims: number,
    x: Shape5,
    y: Shape5,
    config: Record<string, unknown>,
    private readonly given: Given,
  ) {
    this.shapes = { x, dx: x, y, dy: y, ...(op === "max_unpool" ? { indices: x } : {}) };
    this.act = op === "activation" ? activation(config) : null;
    const [from, to] = [plane(x), plane(y)];
    this.target = Int32Array.from({ length: size(x) }, (_, index) =>
      op === "activation" ? index : Math.floor(index / from) * to + given.indices![index],
    );
    this.target.forEach((y, x) => this.sources.set(y, [...(this.sources.get(y) ?? []), x]));
  }

  private value(x: number): number {
    const value = this.given.x![x];
    return this.act ? this.act.value(value) : value;
  }

  private slope(x: number): number {
    return this.act ? this.act.slope(this.given.x![x]) : 1;
  }

  /** Of several inputs with one target, the last is the one that stays. */
  private settled(y: number): number | undefined {
    return this.sources.get(y)?.at(-1);
  }

  explain(role: Role, index: number): Explanation {
    const lit = new Lit();
    const terms: Term[] = [];
    if (role === "y" || role === "dy") {
      const x = this.settled(index);
      if (x !== undefined) {
        lit.add("x", x);
        terms.push(role === "y" ? this.carried(x) : { ...this.returned(x), into: cell("dx", x) });
      }
      const after = role === "y" && this.act && x !== undefined
        ? [{ label: this.act.name, value: this.value(x) }]
        : [];
      return explanation(role, index, role === "y" ? "sum" : "given", terms, lit, { after });
    }
    lit.add("y", this.target[index]);
    if (role === "dx") terms.push(this.returned(index));
    else terms.push({ ...this.carried(index), into: cell("y", this.target[index]) });
    return explanation(role, index, role === "dx" ? "sum" : "given", terms, lit);
  }

  private carried(x: number): Term {
    const value = this.given.x![x];
    return { parts: [{ role: "x", index: x, value }], value };
  }

  private returned(x: number): Term {
    const y = this.target[x];
    const gradient: Part = { role: "dy", index: y, value: this.given.dy![y] };
    if (!this.act) return { parts: [gradient], value: gradient.value };
    const slope = this.slope(x);
    const factor: Part = { role: "factor", index: -1, value: slope, label: "φ′", of: { name: "x", value: this.given.x![x] } };
    return { parts: [gradient, factor], value: gradient.value * slope };
  }

  compute(role: Made, until = Infinity): Float64Array {
    const area = plane(this.shapes.x!);
    const out = new Float64Array(size(this.shapes[role]!));
    this.target.forEach((y, x) => {
      if (x % area >= until) return;
      if (role === "y") out[y] = this.value(x);
      else out[x] = this.given.dy![y] * this.slope(x);
    });
    return out;
  }

  read(): Uint8Array {
    return new Uint8Array(size(this.shapes.x!)).fill(1);
  }

  winners(): null {
    return null;
  }
}

function cell(role: Role, index: number): Part {
  return { role, index, value: 0 };
}
