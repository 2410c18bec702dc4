/** Why the service's value may rightly be another than the page's: it rounds to float32 on the way. */

/** What float32 and another order of adding may make of a sum, in parts of the size of its terms. */
export const ROUNDING = 1e-5;

const LARGEST_FLOAT32 = 3.4028234663852886e38;

export interface Doubt {
  /** How far below and above the page's value it may be: never more than zero, never less. */
  readonly low: number;
  readonly high: number;
  /** It may be no number at all instead. */
  readonly endless: boolean;
  readonly why: string;
}

export const OVERFLOW = "a sum on the way leaves float32, which ends at 3.4e38";

/** Whether float32 has only ∞ for it. */
export const overflows = (size: number): boolean => size > LARGEST_FLOAT32;

/** @param size of what is summed. What is infinite here is so in float32, and no reason to differ. */
export function overflowed(size: number): Doubt | null {
  return Number.isFinite(size) && overflows(size) ? { low: 0, high: 0, endless: true, why: OVERFLOW } : null;
}

/** Two reasons at once. */
export function both(a: Doubt | null, b: Doubt | null): Doubt | null {
  if (!a || !b) return a ?? b;
  const why = a.why === b.why ? a.why : `${a.why}; ${b.why}`;
  return { low: a.low + b.low, high: a.high + b.high, endless: a.endless || b.endless, why };
}

/** How far a sum may be off by its terms, each of which is either as the page has it or off by what is added here. */
export class Slack {
  private low = 0;
  private high = 0;
  private endless = false;

  add(by: number, factor = 1): void {
    // No jump times ∞ is no jump: the term is as the page has it.
    if (by === 0) return;
    const off = by * factor;
    if (!Number.isFinite(off)) return this.end();
    this.low += Math.min(0, off);
    this.high += Math.max(0, off);
  }

  /** A term may be no number. */
  end(): void {
    this.endless = true;
  }

  /** @param share what the sum is multiplied by. */
  doubt(why: string, share = 1): Doubt | null {
    if (this.low === 0 && this.high === 0 && !this.endless) return null;
    return { low: this.low * share, high: this.high * share, endless: this.endless, why };
  }
}
