/**
 * Recipes as text, for links: `preset.seed`, or all numbers as `raw:` and base64url of their bytes; then, after a `~`,
 * edits as `index:value,…`. Many numbers are packed: `z:…` stands in place of all numbers, or of the edits, or of both.
 * A text has no shape: it is flat in the one on show, and so is made (`within`) the recipe that is written.
 */

import { type Fill, fill } from "./fill";
import { fromBase64, packEdits, packNumbers, toBase64, unpackEdits, unpackNumbers } from "./pack";
import { isPreset } from "./presets";

const RAW = "raw:";
const PACKED = "z:";
/** Shorter texts can be read by people, and stay so. */
const PLAIN = 400;

type Edits = Fill["edits"];

/** The shortest text that reads back as this float32. */
export function shortest(value: number): string {
  if (Object.is(value, -0)) return "-0";
  for (let digits = 1; digits < 9; digits += 1) {
    const near = Number(value.toPrecision(digits));
    if (Math.fround(near) === value) return String(near);
  }
  return String(value);
}

function writeHead({ data, preset, seed }: Fill): string {
  return data ? RAW + toBase64(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)) : `${preset}.${seed}`;
}

function writeEdits(edits: Edits): string {
  return [...edits].map(([index, value]) => `${index}:${shortest(value)}`).join(",");
}

const joined = (head: string, tail: string) => (tail ? `${head}~${tail}` : head);

export function writeFill(of: Fill): string {
  return joined(writeHead(of), writeEdits(of.edits));
}

const texts = new WeakMap<Fill, Promise<string>>();

/** As `writeFill`, with what is long packed. */
export function packFill(of: Fill): Promise<string> {
  let text = texts.get(of);
  if (!text) texts.set(of, (text = pack(of)));
  return text;
}

async function pack(of: Fill): Promise<string> {
  const [head, tail] = [writeHead(of), writeEdits(of.edits)];
  if (typeof CompressionStream === "undefined") return joined(head, tail);
  return joined(
    of.data && head.length > PLAIN ? PACKED + (await packNumbers(of.data)) : head,
    tail.length > PLAIN ? PACKED + (await packEdits(of.edits)) : tail,
  );
}

function readHead(text: string): Fill | null {
  if (text.startsWith(RAW)) {
    const bytes = fromBase64(text.slice(RAW.length));
    return bytes && bytes.length % 4 === 0 ? { ...fill("zeros"), data: new Float32Array(bytes.buffer) } : null;
  }
  const [preset, seed = "1"] = text.split(".", 2);
  return isPreset(preset) && /^\d{1,9}$/.test(seed) ? fill(preset, Number(seed)) : null;
}

function readEdits(text: string): Edits | null {
  const edits = new Map<number, number>();
  for (const edit of text ? text.split(",") : []) {
    const [index, value] = edit.split(":").map(Number);
    if (!Number.isInteger(index) || index < 0 || Number.isNaN(value)) return null;
    edits.set(index, Math.fround(value));
  }
  return edits;
}

const parts = (text: string): readonly [head: string, tail: string] => {
  const [head, tail = ""] = text.split("~", 2);
  return [head, tail];
};

/** null where the text is no recipe, or has something packed. Data of the wrong size is left out by `realise`. */
export function readFill(text: string): Fill | null {
  const [head, tail] = parts(text);
  const [of, edits] = [readHead(head), readEdits(tail)];
  return of && edits && { ...of, edits };
}

export function isPacked(text: string): boolean {
  return parts(text).some((part) => part.startsWith(PACKED));
}

/** As `readFill`, of a text that has something packed. */
export async function unpackFill(text: string): Promise<Fill | null> {
  if (typeof DecompressionStream === "undefined") return null;
  const [head, tail] = parts(text);
  const [of, edits] = await Promise.all([
    head.startsWith(PACKED) ? unpackData(head.slice(PACKED.length)) : readHead(head),
    tail.startsWith(PACKED) ? unpackEdits(tail.slice(PACKED.length)) : readEdits(tail),
  ]);
  return of && edits && { ...of, edits };
}

async function unpackData(text: string): Promise<Fill | null> {
  const data = await unpackNumbers(text);
  return data && { ...fill("zeros"), data };
}
