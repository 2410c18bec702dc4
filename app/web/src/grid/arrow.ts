/** An arrow from a cell of one grid to a cell of another, drawn alike on the page and in exported pictures. */

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A cell and the grid that it is in. */
export interface Spot {
  readonly grid: Box;
  /** The cell's upper left corner, and its side. */
  readonly x: number;
  readonly y: number;
  readonly side: number;
}

/** Arrows to the side leave and reach a cell above its number, and so pass above those of its neighbours. */
const OVER = 0.36;
const [LONG, WIDE] = [7, 3.5];

/** A curve and its head, as the data of one path to be stroked. */
export function arrowBetween(from: Spot, to: Spot): string {
  const down = to.grid.top >= from.grid.bottom ? 1 : to.grid.bottom <= from.grid.top ? -1 : 0;
  const right = down ? 0 : from.grid.left < to.grid.left ? 1 : -1;
  const at = ({ x, y, side }: Spot, across: number, below: number) => [x + (0.5 + across) * side, y + (0.5 + below) * side] as const;
  const [ax, ay] = down ? at(from, 0, 0.25 * down) : at(from, 0.25 * right, -OVER);
  const [bx, by] = down ? at(to, 0, -0.45 * down) : at(to, -0.45 * right, -OVER);
  const [dx, dy] = down ? [0, (by - ay) * 0.45] : [(bx - ax) * 0.45, 0];
  const barb = (sign: 1 | -1) => [bx - right * LONG + (down ? sign * WIDE : 0), by - down * LONG + (down ? 0 : sign * WIDE)];
  const points = [[ax, ay], [ax + dx, ay + dy], [bx - dx, by - dy], [bx, by], barb(1), barb(-1)];
  const [a, b, c, d, e, f] = points.map((point) => point.map((value) => Math.round(value * 100) / 100).join(" "));
  return `M${a}C${b} ${c} ${d}M${e}L${d}L${f}`;
}
