/** Which part of each tensor is shown, and what of it is lit. */

import { computed, type Read } from "../../core/signal";
import { type Scale, scaleOf } from "../../grid/colour";
import type { Plane } from "../../grid/draw";
import { type Light, NO_LIGHT } from "../../grid/light";
import { PADDING } from "../../math/axis";
import { MADE, type Role, SPACE } from "../../math/layer";
import { type Shape5, size, unravel } from "../../math/shape";
import type { App } from "../../state/app";
import { weightPlane } from "../../state/channels";
import { type Served, valuesOf } from "../../state/served";
import { isConvolution } from "../../state/spec";
import { copiesOf, denseSpace, ringOf } from "./ring";

const SIGNED: ReadonlySet<Role> = new Set<Role>(["dx", "dweight", "dbias", "dy", "weight", "bias"]);

export interface Slice {
  readonly shape: Shape5;
  /** Flat index of the plane's first cell. */
  readonly base: number;
  readonly rows: number;
  readonly cols: number;
}

export function sliceOf(app: App, role: Role): Slice {
  const shape = app.shapes()[role]!;
  const [, s1, s2, rows, cols] = shape;
  const pick = app.pick();
  const { n, c, o, xd, yd, kd } = pick;
  if (SPACE[role] === "bias") return { shape, base: 0, rows: 1, cols: shape[1] };
  const [a, b, d] = SPACE[role] === "x" ? [n, c, xd] : SPACE[role] === "y" ? [n, o, yd] : [...weightPlane(app.session.served()!, pick), kd];
  return { shape, base: ((a * s1 + b) * s2 + d) * rows * cols, rows, cols };
}

/** What the sweep has made so far; null for tensors that it leaves alone. */
function partial(app: App): Read<Partial<Record<Role, Float64Array>>> {
  return computed(() => {
    const step = app.step();
    const served = app.session.served();
    if (step === null || !served) return {};
    const roles = MADE.filter((role) => role in served.made && (role === "y") === (app.direction() === "forward"));
    return Object.fromEntries(roles.map((role) => [role, served.layer.compute(role, step)]));
  });
}

const scales = new WeakMap<Served, Partial<Record<Role, Scale>>>();

/** The scale of a tensor's colours, found once for each answer: the pointer asks for it a hundred times per cell. */
export function scaleFor(served: Served, role: Role): Scale {
  let known = scales.get(served);
  if (!known) scales.set(served, (known = {}));
  return (known[role] ??= findScale(served, role));
}

/** A pool's output is made of its input's values, so the two share a scale. */
function findScale(served: Served, role: Role): Scale {
  const own = valuesOf(served, role) ?? [0];
  if (SIGNED.has(role)) return scaleOf(own, true);
  if (role === "indices" || isConvolution(served.spec.op)) return scaleOf(own, false);
  return scaleOf([...Array.from(valuesOf(served, "x")!), ...Array.from(valuesOf(served, "y")!)], false);
}

/** How many windows have their maximum at each input cell. */
function winCounts(served: Served): Uint8Array | null {
  if (!served.layer.winners(0)) return null;
  const counts = new Uint8Array(size(served.layer.shapes.x!));
  for (let y = 0; y < size(served.layer.shapes.y!); y += 1) {
    for (const x of served.layer.winners(y)!) if (x >= 0) counts[x] += 1;
  }
  return counts;
}

export class Planes {
  private readonly partial: Read<Partial<Record<Role, Float64Array>>>;
  private readonly wins: Read<Uint8Array | null>;
  private readonly planes = new Map<Role, Read<Plane>>();
  private readonly lights = new Map<Role, Read<Light>>();

  constructor(private readonly app: App) {
    this.partial = partial(app);
    this.wins = computed(() => {
      const served = app.session.served();
      return served && winCounts(served);
    });
  }

  plane(role: Role): Read<Plane> {
    let found = this.planes.get(role);
    if (!found) this.planes.set(role, (found = computed(() => this.makePlane(role))));
    return found;
  }

  light(role: Role): Read<Light> {
    let found = this.lights.get(role);
    if (!found) this.lights.set(role, (found = computed(() => this.makeLight(role))));
    return found;
  }

  private makePlane(role: Role): Plane {
    const served = this.app.session.served()!;
    const { base, rows, cols } = sliceOf(this.app, role);
    const all = valuesOf(served, role)!;
    const now = this.partial()[role] ?? all;
    const cells = rows * cols;
    const values = Array.from({ length: cells }, (_, i) => now[base + i]);
    const isX = SPACE[role] === "x" && role !== "indices";
    const wins = role === "x" ? this.wins() : null;
    return {
      rows, cols, values,
      scale: scaleFor(served, role),
      ring: ringOf(served, role),
      copies: copiesOf(served, role, rows, cols),
      unread: isX ? served.read.slice(base, base + cells).map((seen) => 1 - seen) : null,
      hidden: this.hidden(role, cells),
      wins: wins ? wins.slice(base, base + cells) : null,
    };
  }

  /** Cells on the sweep's own side are made one by one; the others grow from the first step on. */
  private hidden(role: Role, cells: number): Uint8Array | null {
    const step = this.app.step();
    const served = this.app.session.served()!;
    if (step === null || !this.partial()[role] || SPACE[role] !== served.layer.sweep) return null;
    const offset = sliceOf(this.app, role).base % this.app.steps();
    return Uint8Array.from({ length: cells }, (_, i) => (offset + i >= step ? 1 : 0));
  }

  private makeLight(role: Role): Light {
    const explained = this.app.explanation();
    if (!explained) return NO_LIGHT;
    const { base, rows, cols } = sliceOf(this.app, role);
    const inside = (index: number) => index >= base && index < base + rows * cols;
    const lit = new Uint8Array(rows * cols);
    for (const index of explained.lit[SPACE[role]]) if (inside(index)) lit[index - base] = 1;
    const own = role === explained.role && inside(explained.index);
    return {
      lit,
      strong: this.strong(role).filter(inside).map((index) => index - base),
      ring: this.ringLit(role),
      selected: own ? explained.index - base : -1,
    };
  }

  private strong(role: Role): number[] {
    const term = this.app.explanation()!.terms[this.app.term()];
    if (!term) return [];
    const parts = term.into ? [...term.parts, term.into] : term.parts;
    return parts.flatMap(({ role: name, index }) =>
      name !== "factor" && SPACE[name] === SPACE[role] && (name === role || term.parts.length === 1) ? [index] : []);
  }

  /** Where the window of the chosen cell reaches over the edge. */
  private ringLit(role: Role): [number, number][] {
    const served = this.app.session.served()!;
    const explained = this.app.explanation()!;
    const dense = denseSpace(served);
    const { axes } = served.layer;
    if (!axes || SPACE[role] !== dense) return [];
    if (SPACE[explained.role] !== (dense === "x" ? "y" : "x")) return [];
    const [, , d, r, c] = unravel(served.layer.shapes[explained.role]!, explained.index);
    const { xd, yd } = this.app.pick();
    const deep = axes[0].ofWindow[d].some((m) => m.at === (dense === "x" ? xd : yd) && m.at !== PADDING);
    if (!deep) return [];
    const ring = ringOf(served, role);
    const { rows, cols } = sliceOf(this.app, role);
    const found: [number, number][] = [];
    for (const a of axes[1].ofWindow[r]) {
      for (const b of axes[2].ofWindow[c]) {
        const [y, x] = [a.position, b.position];
        const within = y >= 0 && x >= 0 && y < rows && x < cols;
        const shown = y >= -ring.top && x >= -ring.left && y < rows + ring.bottom && x < cols + ring.right;
        if (!within && shown) found.push([y, x]);
      }
    }
    return found;
  }
}
