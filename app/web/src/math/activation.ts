/** Activations and their slopes, by the contract's names. Formulas: PyTorch's and ONNX's operators. */

export interface Activation {
  readonly name: string;
  readonly value: (z: number) => number;
  readonly slope: (z: number) => number;
  /** Where it is not smooth. */
  readonly kinks: readonly number[];
}

type Parameters = Record<string, unknown>;
type Pair = readonly [value: (z: number) => number, slope: (z: number) => number, kinks?: readonly number[]];

const logistic = (z: number) => (z < 0 ? Math.exp(z) / (1 + Math.exp(z)) : 1 / (1 + Math.exp(-z)));

/** s·(1 − s), but not so written: where s is near 1 the difference would have few digits left. */
const logisticSlope = (z: number) => logistic(z) * logistic(-z);

/** erfc by the series of erf near zero and its continued fraction elsewhere, to double precision on both sides. */
export function erfc(z: number): number {
  const a = Math.abs(z);
  if (a < 2) {
    let term = a;
    let sum = a;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n += 1) {
      term *= (-a * a) / n;
      sum += term / (2 * n + 1);
    }
    return 1 - Math.sign(z) * ((2 / Math.sqrt(Math.PI)) * sum || 0);
  }
  let fraction = 0;
  for (let n = 60; n >= 1; n -= 1) fraction = n / 2 / (a + fraction);
  const tail = Math.exp(-a * a) / (Math.sqrt(Math.PI) * (a + fraction));
  return z < 0 ? 2 - tail : tail;
}

function elu(alpha: number, scale: number): Pair {
  return [
    (z) => scale * (z > 0 ? z : alpha * Math.expm1(z)),
    (z) => scale * (z > 0 ? 1 : alpha * Math.exp(z)),
    [0],
  ];
}

function gelu(approximate: boolean): Pair {
  if (!approximate) {
    const phi = (z: number) => 0.5 * erfc(-z * Math.SQRT1_2);
    return [
      (z) => z * phi(z),
      (z) => phi(z) + (z * Math.exp((-z * z) / 2)) / Math.sqrt(2 * Math.PI),
    ];
  }
  // (1 + tanh u) / 2 is the logistic function of 2u.
  const twice = (z: number) => 2 * Math.sqrt(2 / Math.PI) * (z + 0.044715 * z ** 3);
  return [
    (z) => z * logistic(twice(z)),
    (z) => logistic(twice(z)) + z * logisticSlope(twice(z)) * 2 * Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * z * z),
  ];
}

function pair(name: string, p: Parameters): Pair {
  const number = (key: string, otherwise: number) => Number(p[key] ?? otherwise);
  switch (name) {
    case "relu":
      return [(z) => (z <= 0 ? 0 : z), (z) => (z <= 0 ? 0 : 1), [0]];
    case "leaky_relu": {
      const alpha = number("alpha", 0.01);
      return [(z) => (z > 0 ? z : alpha * z), (z) => (z > 0 ? 1 : alpha), [0]];
    }
    case "elu":
      return elu(number("alpha", 1), 1);
    case "selu":
      return elu(1.6732632423543772, 1.0507009873554805);
    case "gelu":
      return gelu(p.approximate === true);
    case "silu":
      return [
        (z) => z * logistic(z),
        (z) => logistic(z) + z * logisticSlope(z),
      ];
    case "sigmoid":
      return [logistic, logisticSlope];
    case "hard_sigmoid": {
      const [alpha, beta] = [number("alpha", 0.2), number("beta", 0.5)];
      const line = (z: number) => alpha * z + beta;
      return [
        (z) => Math.min(1, Math.max(0, line(z))),
        (z) => (line(z) > 0 && line(z) < 1 ? alpha : 0),
        [-beta / alpha, (1 - beta) / alpha],
      ];
    }
    case "tanh":
      return [Math.tanh, (z) => 4 * logisticSlope(2 * z)];
    case "softplus":
      return [(z) => Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z))), logistic];
    case "exponential":
      return [Math.exp, Math.exp];
    case "affine":
      return [
        (z) => number("slope", 1) * z + number("intercept", 0),
        () => number("slope", 1),
      ];
    default:
      return [(z) => z, () => 1];
  }
}

/** @param spec a name, `{name, …parameters}`, or null for none. */
export function activation(spec: unknown): Activation | null {
  if (spec === null || spec === undefined) return null;
  const parameters = (typeof spec === "string" ? { name: spec } : spec) as Parameters;
  const name = String(parameters.name);
  if (name === "identity") return null;
  const [value, slope, kinks = []] = pair(name, parameters);
  return { name, value, slope, kinks };
}
