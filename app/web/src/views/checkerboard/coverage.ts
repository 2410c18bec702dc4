/** How many windows cover each position, from integers alone. */

/** Windows of `kernel` taps, `stride` apart: how many of `windows` cover each position. */
export function coverage(kernel: number, stride: number, windows: number): number[] {
  const counts = Array<number>((windows - 1) * stride + kernel).fill(0);
  for (let window = 0; window < windows; window += 1) {
    for (let tap = 0; tap < kernel; tap += 1) counts[window * stride + tap] += 1;
  }
  return counts;
}

export interface Evenness {
  readonly least: number;
  readonly most: number;
  readonly even: boolean;
}

/** Far from the borders a position is covered by kernel/stride windows, rounded down or up. */
export function evenness(kernel: number, stride: number): Evenness {
  const least = Math.floor(kernel / stride);
  const most = Math.ceil(kernel / stride);
  return { least, most, even: least === most };
}

/** Coverage in two dimensions is the product of that along each. */
export function plane(counts: readonly number[]): number[] {
  return counts.flatMap((a) => counts.map((b) => a * b));
}
