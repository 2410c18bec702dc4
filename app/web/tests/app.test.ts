import { describe, expect, it } from "vitest";
import { Client } from "../src/client";
import { signal } from "../src/core/signal";
import { fill, realise } from "../src/data/fill";
import { readFill, writeFill } from "../src/data/text";
import { buildLayer } from "../src/math/build";
import { App, FIRST_BOARD } from "../src/state/app";
import { planeWords } from "../src/state/channels";
import type { Key } from "../src/state/key";
import type { Served } from "../src/state/served";
import { type Editable, start } from "../src/state/spec";
import { linkedOf, readHash } from "../src/state/url";

/** A page that shows a max pool of 2×2, two samples, without overlap; nothing answers it. */
function shown(side: number): App {
  const app = new App(new Client("http://nowhere/"), signal<string | null>(null) as unknown as Key);
  show(app, side);
  return app;
}

function show(app: App, side: number): void {
  const config = { kernel: 2, stride: 2 };
  const shapes = { x: [2, 1, 2 * side, 2 * side], y: [2, 1, side, side] };
  const given = { x: new Float32Array(8 * side * side), dy: new Float32Array(2 * side * side) };
  const layer = buildLayer("max_pool", config, { shapes, padding: [[0, 0], [0, 0]] }, given);
  const spec = { ...start("max_pool"), config };
  app.session.draft.set(spec);
  app.session.served.set({ spec, shapes: { ...shapes, indices: shapes.x }, given, made: {}, layer } as unknown as Served);
}

describe("a sweep", () => {
  it("is at no step that the layer on show does not have", () => {
    const app = shown(3);
    app.step.set(9);
    show(app, 2);
    expect([app.steps(), app.step(), app.step.peek()]).toEqual([4, 4, 4]);
    expect(app.swept()!.index).toBe(3);
    app.step.update((step) => step! - 1);
    expect(app.step()).toBe(3);
    app.step.set(9999);
    expect(app.step()).toBe(4);
    app.endSweep();
    expect(app.step()).toBeNull();
  });

  it("keeps the step that a link asks for until its layer is there", () => {
    const app = shown(2);
    app.session.served.set(null);
    app.step.set(7);
    expect(app.step()).toBe(7);
    show(app, 3);
    expect(app.step()).toBe(7);
  });
});

it("a link's padding that would take away all of a checkerboard is not valid", () => {
  expect(readHash("#board=3.2.9.ones")).toMatchObject({ board: FIRST_BOARD, ignored: ["board"] });
  expect(readHash("#board=7.2.3.ones")).toMatchObject({ board: { kernel: 7, padding: 3 }, ignored: [] });
});

/** A page that shows a layer of 1×1 with two groups: X has `c` channels, Y `o`. */
function grouped(op: "conv" | "conv_transpose", c: number, o: number, groups = 2): App {
  const app = shown(1);
  const config = { groups };
  const shapes = { x: [1, c, 2, 2], weight: op === "conv" ? [o, c / groups, 1, 1] : [c, o / groups, 1, 1], y: [1, o, 2, 2] };
  const given = { x: new Float32Array(4 * c), weight: new Float32Array((c * o) / groups), dy: new Float32Array(4 * o) };
  const layer = buildLayer(op, config, { shapes, padding: [[0, 0], [0, 0]] }, given);
  app.session.served.set({ spec: { ...start(op), config }, shapes, given, made: {}, layer } as unknown as Served);
  return app;
}

describe("channels with groups", () => {
  const onShow = (app: App) => [app.pick().c, app.pick().o, ...planeWords(app.session.served()!, app.pick())];

  it("are shown beside those of their group, whichever of them is chosen", () => {
    const app = grouped("conv", 4, 6);
    expect(onShow(app)).toEqual([0, 0, "o = 0, i = 0", "reads X channel 0"]);
    app.showChannel("c", 3);
    expect(onShow(app)).toEqual([3, 3, "o = 3, i = 1", "reads X channel 3"]);
    app.showChannel("o", 5);
    expect(onShow(app)).toEqual([3, 5, "o = 5, i = 1", "reads X channel 3"]);
    app.showChannel("o", 1);
    expect(onShow(app)).toEqual([1, 1, "o = 1, i = 1", "reads X channel 1"]);
    app.reveal("weight", 4 * 2 + 1);
    expect(onShow(app)).toEqual([3, 4, "o = 4, i = 1", "reads X channel 3"]);
    app.reveal("dy", 0);
    expect(onShow(app).slice(0, 2)).toEqual([1, 0]);
    // As an older link may have them: the chosen cell stays on show.
    app.wish.set({ ...app.wish(), c: 2, o: 1 });
    expect(onShow(app)).toEqual([0, 1, "o = 1, i = 0", "reads X channel 0"]);
    app.unpin();
    expect(onShow(app)).toEqual([2, 4, "o = 4, i = 0", "reads X channel 2"]);
  });

  it("have the order and the meaning of a transposed convolution's weight", () => {
    const app = grouped("conv_transpose", 4, 6);
    app.showChannel("o", 5);
    expect(onShow(app)).toEqual([2, 5, "i = 2, o = 2", "adds to Y channel 5"]);
    app.reveal("weight", 1 * 3 + 1);
    expect(onShow(app)).toEqual([1, 1, "i = 1, o = 1", "adds to Y channel 1"]);
  });

  it("any meets any where there is one group, and a lone plane is not named", () => {
    const app = grouped("conv", 2, 2, 1);
    app.showChannel("c", 1);
    expect(onShow(app)).toEqual([1, 0, "o = 0, i = 1"]);
    expect(onShow(grouped("conv", 1, 1, 1))).toEqual([0, 0]);
  });
});

describe("another sample", () => {
  it("takes the chosen cell of X, Y or a gradient along, so that it is lit there", () => {
    const app = shown(2);
    app.pinned.set({ role: "dx", at: [0, 0, 0, 1, 2] });
    app.showSample(1);
    expect([app.pick().n, app.pinned()!.at]).toEqual([1, [1, 0, 0, 1, 2]]);
    expect([...app.explanation()!.lit.y].every((y) => y >= 4)).toBe(true);
    app.pinned.set({ role: "weight", at: [0, 0, 0, 1, 1] });
    app.showSample(0);
    expect(app.pinned()!.at).toEqual([0, 0, 0, 1, 1]);
    app.unpin();
    app.showSample(1);
    expect(app.pinned()).toBeNull();
  });
});

describe("a cell", () => {
  const edit = (role: Editable, value: number) => {
    const app = shown(3);
    app.edit(role, 0, value);
    return [app.session.draft().fills[role].edits.get(0), app.notice()];
  };

  it("takes a number that float32 has, an index a cell of the output's plane, and else the page says what it takes", () => {
    expect(edit("x", 0.5)).toEqual([0.5, null]);
    expect(edit("x", 1e39)).toEqual([undefined, "Nothing was changed. The cell: expected a finite number, got 1e+39."]);
    expect(edit("indices", 8)).toEqual([8, null]);
    for (const value of [9, -1, 2.7]) {
      expect(edit("indices", value)).toEqual([undefined, `Nothing was changed. The cell: expected a whole number from 0 to 8, got ${value}.`]);
    }
  });

  it("takes none while another layer is asked for, in which it has no place", () => {
    const app = shown(2);
    const wanted = start("max_pool", 3);
    app.session.draft.set(wanted);
    app.edit("x", 0, 1);
    expect(app.session.draft()).toBe(wanted);
    expect(app.notice()).toMatch(/^Nothing was changed: the layer has changed/);
  });

  it("typed in one size stays in its place in another, in the links too", () => {
    const app = shown(2);
    const wide = (cols: number) => app.session.change((spec) => ({ ...spec, size: [4, cols] }));
    const x = () => writeFill(linkedOf(app).spec.fills.x);
    app.session.change((spec) => ({ ...spec, channels: 1, samples: 2, size: [4, 4] }));
    for (const index of [0, 5, 10, 15]) app.edit("x", index, 9);
    expect(x()).toBe("integers.66~0:9,5:9,10:9,15:9");
    wide(5);
    expect(x()).toBe("integers.66~0:9,6:9,12:9,18:9");
    wide(2);
    expect(x()).toBe("integers.66~0:9,3:9");
    wide(4);
    expect(x()).toBe("integers.66~0:9,5:9,10:9,15:9");
  });

  it("given as a number stays in its place, and a link has all that is on show", () => {
    const app = shown(2);
    const two = { ...fill("ones"), data: Float32Array.of(5, 6, 7, 8) };
    app.session.want({ ...start("max_pool"), size: [2, 2], fills: { ...start("max_pool").fills, x: two } });
    const x = (cols: number) => {
      app.session.change((spec) => ({ ...spec, size: [2, cols] }));
      const read = readFill(writeFill(linkedOf(app).spec.fills.x))!;
      expect(realise(read, [1, 1, 2, cols])).toEqual(realise(app.session.draft().fills.x, [1, 1, 2, cols]));
      return [...realise(read, [1, 1, 2, cols])];
    };
    expect([x(3), x(1), x(2)]).toEqual([[5, 6, 1, 7, 8, 1], [5, 7], [5, 6, 7, 8]]);
  });

  it("of dY stays in its place too, where a link came without saying what size it was typed in", () => {
    const app = shown(2);
    const { spec } = readHash("#op=max_pool&size=6.6&dy=ones.1~0:2,3:3");
    const y = (side: number) => {
      app.session.change((one) => ({ ...one, size: [side, side] }));
      return writeFill(linkedOf(app).spec.fills.dy);
    };
    app.session.want({ ...spec, config: { kernel: 3, stride: 3 } });
    expect([y(9), y(3), y(6)]).toEqual(["ones.1~0:2,4:3", "ones.1~0:2", "ones.1~0:2,3:3"]);
  });
});
