/** Shapes and flat indices. Inside the page every tensor has three spatial axes; missing ones are 1. */

/** [samples or out-channels, channels, depth, height, width]. */
export type Shape5 = readonly [number, number, number, number, number];
export type Triple = readonly [number, number, number];

export function size(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Adds leading spatial axes of extent 1: [N, C, W] becomes [N, C, 1, 1, W]. Flat indices stay. */
export function lift(shape: readonly number[]): Shape5 {
  const missing = 5 - shape.length;
  return [shape[0], shape[1], ...Array<number>(missing).fill(1), ...shape.slice(2)] as unknown as Shape5;
}

export function spatial(shape: Shape5): Triple {
  return [shape[2], shape[3], shape[4]];
}

export function plane(shape: Shape5): number {
  return shape[2] * shape[3] * shape[4];
}

export function flat(shape: readonly number[], at: readonly number[]): number {
  return at.reduce((index, position, axis) => index * shape[axis] + position, 0);
}

export function unravel(shape: readonly number[], index: number): number[] {
  const at = new Array<number>(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    at[axis] = index % shape[axis];
    index = Math.floor(index / shape[axis]);
  }
  return at;
}

export function same(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((extent, axis) => extent === other[axis]);
}

/** The least shape with all cells of both. */
export function around(one: readonly number[], other: readonly number[]): number[] {
  return one.map((extent, axis) => Math.max(extent, other[axis]));
}

/** The flat index that a cell of one shape has in another with as many axes; -1 where one of the two has no such cell. */
export function moved(index: number, from: readonly number[], to: readonly number[]): number {
  const at = unravel(from, index);
  return index < size(from) && at.every((place, axis) => place < to[axis]) ? flat(to, at) : -1;
}

/** Position of a cell as people write it: only the spatial axes that the tensor has. */
export function position(shape: Shape5, index: number, dims: number): number[] {
  const at = unravel(shape, index);
  return [at[0], at[1], ...at.slice(5 - dims)];
}
