/** Seeded numbers by integer arithmetic alone, so that a link gives the same bits in every browser. */

export type Rng = () => number;

/** mulberry32: uniform in [0, 1). */
export function uniform(seed: number): Rng {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Close to a normal number of deviation one: four uniforms, centred; in hundredths, to be readable. */
export function bell(next: Rng): number {
  return Math.round((next() + next() + next() + next() - 2) * 173) / 100;
}
