/** What the page knows about a layer by itself: who meets whom, and the terms of every cell. */

import type { Axes } from "./axis";
import { both, type Doubt, overflowed } from "./doubt";
import type { Shape5 } from "./shape";

/** Tensors by the contract's names. */
export type Role =
  | "x" | "weight" | "bias" | "indices" | "y" | "dy" | "dx" | "dweight" | "dbias";

/** The tensors that the layer makes. */
export const MADE = ["y", "dx", "dweight", "dbias"] as const;
export type Made = (typeof MADE)[number];

/** A gradient has the cells of the tensor it belongs to. */
export type Space = "x" | "weight" | "bias" | "y";
export const SPACE: Record<Role, Space> = {
  x: "x", dx: "x", indices: "x",
  weight: "weight", dweight: "weight",
  bias: "bias", dbias: "bias",
  y: "y", dy: "y",
};

export type Values = ArrayLike<number>;
export type Given = Partial<Record<Role, Values>>;

/** One factor of a term: a cell of a tensor, or a plain coefficient (no role). */
export interface Part {
  readonly role: Role | "factor";
  readonly index: number;
  readonly value: number;
  readonly label?: string;
  /** What a coefficient is the function of. */
  readonly of?: { readonly name: string; readonly value: number };
}

export interface Term {
  readonly parts: readonly Part[];
  readonly value: number;
  /** The cell on the other side, for the terms of a given cell: where the product goes. */
  readonly into?: Part;
  readonly note?: string;
  /** Listed for completeness, adds nothing. */
  readonly idle?: boolean;
}

export interface Explanation {
  readonly role: Role;
  readonly index: number;
  /** given: nothing made it, the terms are what it goes into. */
  readonly kind: "sum" | "max" | "norm" | "given";
  readonly terms: readonly Term[];
  /** Terms that fall on the padding, which is zero or takes no part. */
  readonly padding: number;
  /** What the terms come to, before and after `after`. */
  readonly total: number;
  readonly after: readonly { readonly label: string; readonly value: number }[];
  readonly value: number;
  /** Σ|term|, or the part of it that counts: what a rounding error is measured against. */
  readonly scale: number;
  readonly doubt: Doubt | null;
  readonly lit: Readonly<Record<Space, ReadonlySet<number>>>;
}

export interface Layer {
  readonly op: string;
  readonly dims: number;
  readonly shapes: Partial<Record<Role, Shape5>>;
  /** The tensor along whose cells the sweep moves: y, or x where x's cells are stamped onto y. */
  readonly sweep: "x" | "y";
  explain(role: Role, index: number): Explanation;
  /** A whole tensor by the page's own arithmetic, in float64; `until`: only the first sweep steps. */
  compute(role: Made, until?: number): Float64Array;
  /** 1 for the input cells that some window reads. */
  read(): Uint8Array;
  /** The meetings along each axis; null where nothing slides. */
  readonly axes: Axes | null;
  /** Routing: for each output the input cells that send it its value; null where there is none. */
  winners(y: number): readonly number[] | null;
}

/** Collects the cells that an explanation touches. */
export class Lit {
  readonly x = new Set<number>();
  readonly weight = new Set<number>();
  readonly bias = new Set<number>();
  readonly y = new Set<number>();

  add(role: Role, index: number): void {
    if (index >= 0) this[SPACE[role]].add(index);
  }
}

/** @param more `share`: what the sum is multiplied by, where a gradient is the mean over samples; `scale` and `reach`: the size of the value and of what is summed for it, where it is not that of the terms. */
export function explanation(
  role: Role,
  index: number,
  kind: Explanation["kind"],
  terms: readonly Term[],
  lit: Lit,
  more: { padding?: number; total?: number; after?: Explanation["after"]; share?: number; scale?: number; reach?: number; doubt?: Doubt | null } = {},
): Explanation {
  let sum = 0;
  let size = 0;
  for (const term of terms) {
    if (term.idle) continue;
    sum += term.value;
    size += Math.abs(term.value);
  }
  lit.add(role, index);
  const total = more.total ?? sum;
  const share = more.share ?? 1;
  const after = share === 1 ? (more.after ?? []) : [{ label: `÷ ${Math.round(1 / share)} samples`, value: total * share }];
  const value = after.length > 0 ? after[after.length - 1].value : total;
  const doubt = both(more.doubt ?? null, overflowed(more.reach ?? size));
  return {
    role, index, kind, terms, total, after, value, scale: (more.scale ?? size) * share, doubt, lit, padding: more.padding ?? 0,
  };
}
