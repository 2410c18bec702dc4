/** Pooling's meetings: the input cells under each window, channel by channel. */

import { type Axes, eachMeeting, PADDING } from "./axis";
import { type Shape5, unravel } from "./shape";

export class Windows {
  constructor(
    readonly axes: Axes,
    readonly x: Shape5,
    readonly y: Shape5,
  ) {}

  /** The cells under one window in row-major order; PADDING for taps on the padding. */
  ofOutput(index: number, visit: (x: number) => void): void {
    const [n, c, ...q] = unravel(this.y, index);
    const [, C, d1, d2, d3] = this.x;
    const plane = (n * C + c) * d1;
    eachMeeting(this.lists("ofWindow", q), (a, b, e) => {
      const outside = a.at === PADDING || b.at === PADDING || e.at === PADDING;
      visit(outside ? PADDING : ((plane + a.at) * d2 + b.at) * d3 + e.at);
    });
  }

  /** The outputs whose windows cover one input cell. */
  ofInput(index: number, visit: (y: number) => void): void {
    const [n, c, ...p] = unravel(this.x, index);
    const [, C, w1, w2, w3] = this.y;
    const plane = (n * C + c) * w1;
    eachMeeting(this.lists("ofDense", p), (a, b, e) => {
      visit(((plane + a.window) * w2 + b.window) * w3 + e.window);
    });
  }

  private lists(by: "ofWindow" | "ofDense", at: number[]) {
    return [this.axes[0][by][at[0]], this.axes[1][by][at[1]], this.axes[2][by][at[2]]] as const;
  }
}
