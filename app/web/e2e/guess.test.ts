/** The shape that the page guesses for the first request of a layer, against the service's plan. */

import { expect, inject, it } from "vitest";
import { Client, ProblemError } from "../src/client";
import { guessOutput } from "../src/state/guess";
import { plannedOutput, planRequest } from "../src/state/served";
import { OPERATIONS, type Spec, start } from "../src/state/spec";
import { integer, random } from "../tests/random";

const rng = random(5);
const one = <T>(options: readonly T[]): T => options[integer(rng, 0, options.length - 1)];

function config(op: string, dims: number): Record<string, unknown> {
  const each = (low: number, high: number) => Array.from({ length: dims }, () => integer(rng, low, high));
  const some = (low: number, high: number): unknown => one([integer(rng, low, high), each(low, high)]);
  if (op === "activation") return { name: "relu" };
  if (op === "max_unpool") return { output_size: each(6, 9) };
  if (op.startsWith("adaptive")) return { output_size: one([2, each(1, 5), each(1, 5).map((size, axis) => (axis ? size : null))]) };
  const pool = op.endsWith("pool");
  const padding = [0, some(0, 1), Array.from({ length: dims }, () => [integer(rng, 0, 1), integer(rng, 0, 3)]), "valid", "same", "same_lower"];
  const found: Record<string, unknown> = { stride: some(1, 3), dilation: some(1, 2), padding: one(pool ? padding : [...padding, "full", ...(dims === 1 ? ["causal"] : [])]) };
  if (pool) Object.assign(found, { kernel: some(2, 3), ceil_mode: one([false, true]) });
  if (pool && one([false, true])) delete found.stride;
  if (!pool) found.groups = one([1, 2]);
  if (op === "conv_transpose" && one([false, true])) Object.assign(found, { stride: 3, output_padding: some(0, 2) });
  return found;
}

it("is that of the plan, for layers of every operation", async () => {
  const client = new Client(inject("url"));
  const planned: Record<string, number> = {};
  for (let i = 0; i < 400; i += 1) {
    const op = one(Object.keys(OPERATIONS));
    const dims = integer(rng, 1, 3);
    const spec: Spec = { ...start(op, dims), channels: 2, outputs: 4, config: config(op, dims) };
    const plan = await client.plan(op, planRequest(spec)).catch((error: unknown) => {
      if (error instanceof ProblemError && error.status === 422) return null;
      throw error;
    });
    if (!plan) continue;
    planned[op] = (planned[op] ?? 0) + 1;
    expect(guessOutput(spec), JSON.stringify(spec)).toEqual(plannedOutput(spec, plan));
  }
  for (const op of Object.keys(OPERATIONS)) expect(planned[op], op).toBeGreaterThan(20);
});

it("is not made where the numbers are not plain, or too many", () => {
  const guess = (config: Record<string, unknown>) => guessOutput({ ...start("conv"), config });
  for (const config of [{ padding: "nothing" }, { stride: 0 }, { padding: -9 }, { stride: [[]] , padding: [[1]] }, { padding: 1e9 }]) {
    expect(guess(config), JSON.stringify(config)).toBeNull();
  }
});
