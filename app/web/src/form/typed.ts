/** What is typed into a field of numbers: the number that it stands for, and words for where that is not the one that is set. */

import { numberIn } from "../data/block";

export interface Range {
  readonly minimum: number;
  readonly maximum: number;
  readonly whole: boolean;
}

export interface Typed {
  /** null where what was typed stands for no number of the field. */
  readonly value: number | null;
  /** Why what is set is not what was typed; null where it is. */
  readonly said: string | null;
}

function wanted({ minimum, maximum, whole }: Range): string {
  const kind = whole ? "a whole number" : "a number";
  return Number.isFinite(minimum) && Number.isFinite(maximum) ? `${kind} from ${minimum} to ${maximum}` : kind;
}

const quoted = (text: string) => `“${text.length > 24 ? `${text.slice(0, 24)}…` : text}”`;

/** @param kept what is set, in words: it stays where what was typed is no number. */
export function readTyped(text: string, range: Range, kept: string): Typed {
  const value = numberIn(text);
  if (!Number.isFinite(value) || (range.whole && !Number.isInteger(value))) {
    return { value: null, said: `Expected ${wanted(range)}, got ${quoted(text.trim())}: still ${kept}.` };
  }
  if (value > range.maximum) return { value: range.maximum, said: `${range.maximum} is the page’s limit: set in place of ${quoted(text.trim())}.` };
  if (value < range.minimum) return { value: range.minimum, said: `${range.minimum} is the least: set in place of ${quoted(text.trim())}.` };
  return { value, said: null };
}
