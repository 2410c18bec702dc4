/** Numbers and plain values as source text. */

/** The fewest digits that give the same float32 again. */
export function float(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  for (let digits = 1; digits <= 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === Math.fround(value)) return String(Number(text));
  }
  return String(value);
}

/** A list broken into lines that fit a page. */
export function list(values: ArrayLike<number>, indent: string, width = 66): string {
  const lines: string[] = [];
  let line = "";
  for (const text of Array.from(values, float)) {
    if (line.length + text.length + 2 > width) {
      lines.push(line);
      line = "";
    }
    line += line ? `, ${text}` : text;
  }
  lines.push(line);
  if (lines.length === 1) return `[${lines[0]}]`;
  return `[\n${lines.map((one) => `${indent}    ${one},`).join("\n")}\n${indent}]`;
}

export function python(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
  }
  return String(value);
}

export function tuple(values: readonly number[]): string {
  return values.length === 1 ? `(${values[0]},)` : `(${values.join(", ")})`;
}
