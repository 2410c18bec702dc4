/**
 * The three-way meetings of convolution: a cell on the window side, a weight, a cell on the dense side.
 * A convolution's windows are its outputs and its dense side its inputs; a transposed convolution has
 * the same meetings with input and output exchanged. Each role's value sums over its own meetings.
 */

import { type Axes, eachMeeting, PADDING } from "./axis";
import { type Shape5, unravel } from "./shape";

/** `other` is the flat index on the far side, or PADDING. */
type Visit = (other: number, weight: number) => void;

export class Correlation {
  private readonly windowGroup: number;
  private readonly denseGroup: number;

  /**
   * @param windowShape [N, channels of the window side, ...windows]
   * @param denseShape [N, channels of the dense side, ...]
   * @param weightShape [channels of the window side, channels of the dense side per group, ...taps]
   */
  constructor(
    readonly axes: Axes,
    readonly windowShape: Shape5,
    readonly denseShape: Shape5,
    readonly weightShape: Shape5,
    groups: number,
  ) {
    this.windowGroup = windowShape[1] / groups;
    this.denseGroup = denseShape[1] / groups;
  }

  /** Meetings of one window: dense cells (or PADDING) with their weights. */
  ofWindow(index: number, visit: Visit): void {
    const [n, c, ...q] = unravel(this.windowShape, index);
    const [, D, d1, d2, d3] = this.denseShape;
    const [, I, k1, k2, k3] = this.weightShape;
    const first = Math.floor(c / this.windowGroup) * this.denseGroup;
    const lists = this.lists("ofWindow", q);
    for (let i = 0; i < this.denseGroup; i += 1) {
      const plane = (n * D + first + i) * d1;
      const taps = (c * I + i) * k1;
      eachMeeting(lists, (a, b, e) => {
        const outside = a.at === PADDING || b.at === PADDING || e.at === PADDING;
        const weight = ((taps + a.tap) * k2 + b.tap) * k3 + e.tap;
        visit(outside ? PADDING : ((plane + a.at) * d2 + b.at) * d3 + e.at, weight);
      });
    }
  }

  /** Meetings of one dense cell: every window that touches it, with the weight it does so by. */
  ofDense(index: number, visit: Visit): void {
    const [n, c, ...p] = unravel(this.denseShape, index);
    const [, S, w1, w2, w3] = this.windowShape;
    const [, I, k1, k2, k3] = this.weightShape;
    const group = Math.floor(c / this.denseGroup);
    const within = c - group * this.denseGroup;
    const lists = this.lists("ofDense", p);
    for (let j = 0; j < this.windowGroup; j += 1) {
      const channel = group * this.windowGroup + j;
      const plane = (n * S + channel) * w1;
      const taps = (channel * I + within) * k1;
      eachMeeting(lists, (a, b, e) => {
        const weight = ((taps + a.tap) * k2 + b.tap) * k3 + e.tap;
        visit(((plane + a.window) * w2 + b.window) * w3 + e.window, weight);
      });
    }
  }

  /** Meetings of one weight: every window it is used in, with the dense cell it meets there. */
  ofWeight(index: number, visit: (window: number, dense: number) => void): void {
    const [channel, within, ...k] = unravel(this.weightShape, index);
    const [N, S, w1, w2, w3] = this.windowShape;
    const [, D, d1, d2, d3] = this.denseShape;
    const far = Math.floor(channel / this.windowGroup) * this.denseGroup + within;
    const lists = this.lists("ofTap", k);
    for (let n = 0; n < N; n += 1) {
      const windows = (n * S + channel) * w1;
      const plane = (n * D + far) * d1;
      eachMeeting(lists, (a, b, e) => {
        visit(
          ((windows + a.window) * w2 + b.window) * w3 + e.window,
          ((plane + a.at) * d2 + b.at) * d3 + e.at,
        );
      });
    }
  }

  private lists(by: "ofWindow" | "ofDense" | "ofTap", at: number[]) {
    return [this.axes[0][by][at[0]], this.axes[1][by][at[1]], this.axes[2][by][at[2]]] as const;
  }
}
