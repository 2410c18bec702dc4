/** Numbers for people: few digits, a real minus sign, no trailing zeros. */

const MINUS = "−";

function trim(text: string): string {
  const short = text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
  return short === "-0" ? "0" : short;
}

function minus(text: string): string {
  return text.replaceAll("-", MINUS);
}

function odd(value: number): string | null {
  if (Number.isNaN(value)) return "NaN";
  if (value === Infinity) return "∞";
  return value === -Infinity ? `${MINUS}∞` : null;
}

/** About four characters, to fit into a cell. */
export function brief(value: number): string {
  const special = odd(value);
  if (special) return special;
  const size = Math.abs(value);
  if (size !== 0 && size < 0.005) return minus(value.toExponential(0).replace("e-", "e-"));
  if (size >= 9999.5) return minus(value.toExponential(0).replace("e+", "e"));
  return minus(trim(value.toFixed(size >= 99.5 ? 0 : size >= 9.95 ? 1 : 2)));
}

/** About three characters, for cells where `brief` is too long. */
export function coarse(value: number): string {
  const special = odd(value);
  if (special) return special;
  const size = Math.abs(value);
  if (size !== 0 && size < 0.05) return "≈0";
  return size >= 9999.5 ? brief(value) : minus(trim(value.toFixed(size >= 9.95 ? 0 : 1)));
}

/** Up to four significant digits, for columns of numbers. */
export function medium(value: number): string {
  return odd(value) ?? (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 ? minus(trim(String(Number(value.toPrecision(4))))) : full(Number(value.toPrecision(2))));
}

/** Up to seven significant digits: all that a float32 holds. */
export function full(value: number): string {
  const special = odd(value);
  if (special) return special;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    return minus(trim(value.toExponential(3)).replace(/\.?0+e/, "e").replace("e+", "e"));
  }
  return minus(trim(value.toPrecision(7)));
}

/** A difference, in one or two digits. */
export function tiny(value: number): string {
  return value === 0 ? "0" : (odd(value) ?? minus(value.toExponential(1).replace(".0e", "e").replace("e+", "e")));
}

/** "an average pool". */
export function article(words: string): string {
  return /^([aeiou]|Lp)/i.test(words) ? "an" : "a";
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

/** 1.2 k, 3.4 M: for operations and bytes. */
export function scaled(value: number, unit = ""): string {
  const steps = ["", " k", " M", " G", " T"];
  let at = 0;
  while (Math.abs(value) >= 1000 && at < steps.length - 1) {
    value /= 1000;
    at += 1;
  }
  const text = trim(value.toFixed(at === 0 || value >= 100 ? 0 : 1));
  return `${text}${steps[at] || (unit ? " " : "")}${unit}`;
}
