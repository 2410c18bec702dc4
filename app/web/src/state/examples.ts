/** Layers worth a look, each with the cell that shows what is worth seeing. */

import { fill } from "../data/fill";
import type { Cell, Pick } from "./app";
import { type Spec, start } from "./spec";

export interface Example {
  readonly label: string;
  readonly spec: Spec;
  readonly cell: Cell;
  /** The channels on show, where they are not the first. */
  readonly pick?: Partial<Pick>;
}

function layer(op: string, change: Partial<Spec>, dims = 2): Spec {
  const first = start(op, dims);
  return { ...first, ...change, fills: { ...first.fills, ...change.fills } };
}

const dx = (...at: number[]): Cell => ({ role: "dx", at });

export const EXAMPLES: readonly Example[] = [
  { label: "Stride 2, two channels", spec: start("conv"), cell: dx(0, 0, 0, 2, 4) },
  {
    label: "Nine windows share a pixel",
    spec: layer("conv", { channels: 1, outputs: 1, size: [5, 5], config: {} }),
    cell: dx(0, 0, 0, 2, 2),
  },
  {
    label: "Pixels that nobody reads",
    spec: layer("conv", { channels: 1, outputs: 1, size: [6, 6], config: { stride: 2 } }),
    cell: dx(0, 0, 0, 5, 5),
  },
  {
    label: "Same padding",
    spec: layer("conv", { channels: 1, outputs: 1, size: [6, 6], config: { padding: "same" } }),
    cell: { role: "y", at: [0, 0, 0, 0, 0] },
  },
  {
    label: "Dilated",
    spec: layer("conv", { channels: 1, outputs: 1, size: [9, 9], config: { dilation: 2 } }),
    cell: dx(0, 0, 0, 4, 4),
  },
  {
    label: "Depthwise",
    spec: layer("conv", { channels: 3, outputs: 3, size: [6, 6], config: { groups: 3, padding: 1 } }),
    cell: { role: "dweight", at: [1, 0, 0, 1, 1] },
    pick: { c: 1, o: 1 },
  },
  {
    label: "Edge filter",
    spec: layer("conv", {
      channels: 1, outputs: 1, size: [8, 8], config: { padding: 1, padding_mode: "replicate" },
      fills: { ...start("conv").fills, x: fill("edge"), weight: fill("sobelx") },
    }),
    cell: { role: "y", at: [0, 0, 0, 3, 3] },
  },
  { label: "Transposed, 3 by 2", spec: start("conv_transpose"), cell: { role: "y", at: [0, 0, 0, 4, 4] } },
  {
    label: "Causal, one dimension",
    spec: layer("conv", { channels: 1, outputs: 1, size: [12], config: { padding: "causal", dilation: 2 } }, 1),
    cell: dx(0, 0, 0, 0, 5),
  },
  { label: "Max pool, windows overlap", spec: start("max_pool"), cell: { role: "dy", at: [0, 0, 0, 1, 1] } },
  {
    label: "Max pool, everything ties",
    spec: layer("max_pool", {
      size: [4, 4], config: { kernel: 2, ties: "all" }, fills: { ...start("max_pool").fills, x: fill("zeros") },
    }),
    cell: { role: "dy", at: [0, 0, 0, 0, 0] },
  },
  { label: "Average pool", spec: start("avg_pool"), cell: dx(0, 0, 0, 2, 2) },
  { label: "Unpooling", spec: start("max_unpool"), cell: { role: "x", at: [0, 0, 0, 1, 1] } },
];
