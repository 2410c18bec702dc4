/** Whether the page's own value of a cell and the service's are the same number, as far as float32 can tell. */

import { medium, tiny } from "../../core/format";
import { ROUNDING } from "../../math/doubt";
import type { Explanation } from "../../math/layer";

/** The page adds up in float64, which has room beyond the range of float32: what leaves that is infinite there. */
export function same(own: number, served: number): boolean {
  return Object.is(Math.fround(own), served) || Math.fround(own) === served;
}

/** @param low,high how far below and above the service's may be beside rounding. */
function near({ value, scale }: Explanation, served: number, low = 0, high = 0): boolean {
  if (same(value, served)) return true;
  // Infinity is within every share of itself.
  if (!Number.isFinite(value) || !Number.isFinite(served)) return false;
  const room = ROUNDING * Math.max(scale, Math.abs(value), high - low, 1e-30);
  return served - value >= low - room && served - value <= high + room;
}

/** Whether they differ for a reason that is nobody's fault. */
export function excused(of: Explanation, served: number): boolean {
  if (!of.doubt || near(of, served)) return false;
  const { low, high, endless } = of.doubt;
  return (endless && !Number.isFinite(served)) || near(of, served, low, high);
}

export function agrees(of: Explanation, served: number): boolean {
  return near(of, served) || excused(of, served);
}

/** The comparison in a sentence. */
export function verdict(of: Explanation, served: number): string {
  const off = Math.abs(of.value - served);
  const known = off !== 0 && Number.isFinite(off);
  const differ = known ? `They differ by ${medium(off)}` : "They differ";
  if (excused(of, served)) return `${differ}, and may: ${of.doubt!.why}.`;
  if (!agrees(of, served)) return `${differ}.`;
  if (Number.isFinite(of.value) && !Number.isFinite(served)) return "They agree: float32 ends at 3.4e38, and beyond is ∞.";
  return known ? `They agree, but for ${tiny(off)}.` : "They agree.";
}
