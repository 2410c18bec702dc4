/** What a pool makes of one window: its value, and what each of its cells counts for. */

import { PADDING } from "./axis";
import { overflows } from "./doubt";
import type { Values } from "./layer";
import type { Windows } from "./windows";

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

/** ∂y/∂x for one window and one of its cells, and how to write it. */
export interface Slope {
  readonly value: number;
  readonly label: string;
}

export class Reduction {
  constructor(
    private readonly meet: Windows,
    readonly rule: PoolRule,
    private readonly x: Values,
  ) {}

  /** The cells under an output's window, PADDING for those on the padding. */
  window(y: number): number[] {
    const cells: number[] = [];
    this.meet.ofOutput(y, (x) => cells.push(x));
    return cells;
  }

  value(x: number): number {
    return x === PADDING ? (this.rule.pad ?? 0) : this.x[x];
  }

  /** The cells that give a maximum its value; PADDING among them where padding does. */
  winners(y: number): readonly number[] | null {
    if (this.rule.kind !== "max") return null;
    const cells = this.competing(y);
    const best = this.largest(cells);
    const same = cells.filter((x) => Object.is(this.value(x), best) || this.value(x) === best);
    return this.rule.ties === "first" ? same.slice(0, 1) : same;
  }

  output(y: number): number {
    switch (this.rule.kind) {
      case "max":
        return this.largest(this.competing(y));
      case "average": {
        const sum = this.window(y).reduce((total, x) => total + this.value(x), 0);
        // Where only padding lies under the window and does not count, there is nothing to divide, nor to divide by.
        return sum === 0 ? 0 : sum / this.divisor(y);
      }
      default:
        return this.window(y).reduce((total, x) => total + Math.abs(this.value(x)) ** this.rule.p, 0) ** (1 / this.rule.p);
    }
  }

  /** The size of what is summed on the way to an output; 0 where nothing is. */
  reach(y: number): number {
    const power = this.rule.kind === "lp" ? this.rule.p : 1;
    return this.rule.kind === "max" ? 0 : this.window(y).reduce((total, x) => total + Math.abs(this.value(x)) ** power, 0);
  }

  /** Whether a norm is ∞ in float32, by the sum of its powers or by itself. */
  leaves(y: number): boolean {
    return this.rule.kind === "lp" && (overflows(this.reach(y)) || overflows(this.output(y)));
  }

  /** Whether a norm of ∞ makes no number of a slope, which is |x|^(p−1)·norm^(1−p): 0·∞, or ∞ where p is below 1. */
  steep(x: number): boolean {
    return this.rule.p < 1 || overflows(Math.abs(this.value(x)) ** (this.rule.p - 1));
  }

  slope(y: number, x: number): Slope {
    switch (this.rule.kind) {
      case "max":
        return { value: this.winners(y)!.includes(x) ? 1 : 0, label: "" };
      case "average": {
        const divisor = this.divisor(y);
        return { value: 1 / divisor, label: `${divisor < 0 ? "−" : ""}1/${Math.abs(divisor)}` };
      }
      default: {
        const norm = this.output(y);
        const value = this.value(x);
        const { p } = this.rule;
        const size = norm === 0 || value === 0 ? 0 : (Math.abs(value) / norm) ** (p - 1);
        return { value: size === 0 ? 0 : Math.sign(value) * size, label: p === 2 ? "x/y" : "∂y/∂x" };
      }
    }
  }

  private divisor(y: number): number {
    if (this.rule.divisor !== null) return this.rule.divisor;
    const cells = this.window(y);
    return this.rule.countPadding ? cells.length : cells.filter((x) => x !== PADDING).length;
  }

  private competing(y: number): number[] {
    return this.window(y).filter((x) => x !== PADDING || this.rule.pad !== null);
  }

  /** NaN wins over every number; of nothing, −∞. */
  private largest(cells: readonly number[]): number {
    return cells.map((x) => this.value(x)).reduce((best, value) => (Number.isNaN(value) || value > best ? value : best), -Infinity);
  }
}
