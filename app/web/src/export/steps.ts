const MOST_FRAMES = 400;

/** Steps to draw: all, or evenly spaced ones where there are too many; the last is always there. */
export function stepsOf(total: number): number[] {
  const every = Math.ceil(total / MOST_FRAMES);
  const steps: number[] = [];
  for (let step = 1; step <= total; step += every) steps.push(step);
  if (steps.at(-1) !== total) steps.push(total);
  return steps;
}
