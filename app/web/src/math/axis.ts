/**
 * Which positions meet along one axis: window `q`, tap `k` (position within the window) and the
 * position `at` on the dense side that they touch, at = q·stride + k·dilation − low.
 * Everything the page says about who made what is a product of such lists, one per axis.
 */

/** The tap falls on padding: it reads zero (or nothing), and its gradient goes nowhere. */
export const PADDING = -1;

export interface Meeting {
  readonly window: number;
  readonly tap: number;
  readonly at: number;
  /** Before the padding is looked at: negative or past the end where the tap is on it. */
  readonly position: number;
}

export interface Axis {
  readonly dense: number;
  readonly windows: number;
  readonly taps: number;
  /** By window, taps in order, those on padding included. */
  readonly ofWindow: readonly (readonly Meeting[])[];
  /** By dense position and by tap: only meetings on real positions, windows in order. */
  readonly ofDense: readonly (readonly Meeting[])[];
  readonly ofTap: readonly (readonly Meeting[])[];
}

export type PaddingMode = "zeros" | "reflect" | "replicate" | "circular";

export interface Sliding {
  dense: number;
  windows: number;
  kernel: number;
  stride: number;
  dilation: number;
  low: number;
  high: number;
  mode: PaddingMode;
  flip: boolean;
}

/** The real position that a position on the padding copies; PADDING where the padding is zeros. */
export function source(position: number, extent: number, mode: PaddingMode): number {
  if (position >= 0 && position < extent) return position;
  if (mode === "zeros") return PADDING;
  if (mode === "replicate") return position < 0 ? 0 : extent - 1;
  if (mode === "circular") return ((position % extent) + extent) % extent;
  if (extent === 1) return 0;
  const period = 2 * (extent - 1);
  const folded = ((position % period) + period) % period;
  return folded < extent ? folded : period - folded;
}

/** A window of fixed size, moved by `stride`. What lies beyond the padded extent meets nothing. */
export function slidingAxis(of: Sliding): Axis {
  const meetings: Meeting[] = [];
  for (let window = 0; window < of.windows; window += 1) {
    for (let step = 0; step < of.kernel; step += 1) {
      const position = window * of.stride + step * of.dilation - of.low;
      if (position < -of.low || position >= of.dense + of.high) continue;
      const tap = of.flip ? of.kernel - 1 - step : step;
      meetings.push({ window, tap, at: source(position, of.dense, of.mode), position });
    }
  }
  return collect(of.dense, of.windows, of.kernel, meetings);
}

/** Windows [floor(q·n/m), ceil((q+1)·n/m)), as adaptive pools use. */
export function adaptiveAxis(dense: number, windows: number): Axis {
  const meetings: Meeting[] = [];
  let taps = 1;
  for (let window = 0; window < windows; window += 1) {
    const start = Math.floor((window * dense) / windows);
    const stop = Math.ceil(((window + 1) * dense) / windows);
    taps = Math.max(taps, stop - start);
    for (let at = start; at < stop; at += 1) meetings.push({ window, tap: at - start, at, position: at });
  }
  return collect(dense, windows, taps, meetings);
}

/** An axis that the tensor does not have, or one that is copied position by position. */
export function plainAxis(extent: number): Axis {
  const meetings = Array.from({ length: extent }, (_, at) => ({ window: at, tap: 0, at, position: at }));
  return collect(extent, extent, 1, meetings);
}

function collect(dense: number, windows: number, taps: number, meetings: Meeting[]): Axis {
  const lists = (count: number): Meeting[][] => Array.from({ length: count }, () => []);
  const ofWindow = lists(windows);
  const ofDense = lists(dense);
  const ofTap = lists(taps);
  for (const meeting of meetings) {
    ofWindow[meeting.window].push(meeting);
    if (meeting.at === PADDING) continue;
    ofDense[meeting.at].push(meeting);
    ofTap[meeting.tap].push(meeting);
  }
  return { dense, windows, taps, ofWindow, ofDense, ofTap };
}

export type Axes = readonly [Axis, Axis, Axis];

/** Of one plane, row by row: 1 for the positions that meet anything at all. */
export function touched(axes: Axes, side: "dense" | "windows"): Uint8Array {
  const [a, b, c] = axes.map((axis) =>
    side === "dense"
      ? axis.ofDense.map((list) => list.length > 0)
      : axis.ofWindow.map((list) => list.some((meeting) => meeting.at !== PADDING)));
  return Uint8Array.from(a.flatMap((x) => b.flatMap((y) => c.map((z) => (x && y && z ? 1 : 0)))));
}

/** The same plane again and again, for every sample and channel. */
export function repeated(plane: Uint8Array, length: number): Uint8Array {
  const out = new Uint8Array(length);
  for (let at = 0; at < length; at += plane.length) out.set(plane, at);
  return out;
}

/** Every combination of one meeting per axis, in row-major order. */
export function eachMeeting(
  lists: readonly [readonly Meeting[], readonly Meeting[], readonly Meeting[]],
  visit: (a: Meeting, b: Meeting, c: Meeting) => void,
): void {
  for (const a of lists[0]) for (const b of lists[1]) for (const c of lists[2]) visit(a, b, c);
}
