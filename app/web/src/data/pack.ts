/** Many numbers as a short text: their bytes, those of one place together, deflated, in base64url. */

/** What a packed text may unpack to, in bytes, whatever it says: more than the largest tensor of the page has. */
export const MOST_BYTES = 1 << 21;

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** null where the text is no base64url. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[\w-]*$/.test(text)) return null;
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

/** First bytes of all numbers, then second ones, and so on: alike bytes stand together, and deflate better. */
function planes(values: Float32Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return Uint8Array.from(bytes, (_, at) => bytes[(at % values.length) * 4 + Math.floor(at / values.length)]);
}

function unplanes(bytes: Uint8Array): Float32Array | null {
  const count = bytes.length / 4;
  if (!Number.isInteger(count)) return null;
  return new Float32Array(Uint8Array.from(bytes, (_, at) => bytes[(at % 4) * count + Math.floor(at / 4)]).buffer);
}

/** Whole numbers in steps from one to the next, seven bits a byte, low ones first. */
function steps(indices: readonly number[]): number[] {
  const out: number[] = [];
  let before = 0;
  for (const index of indices) {
    let step = index - before;
    before = index;
    for (; step > 127; step = Math.floor(step / 128)) out.push((step % 128) + 128);
    out.push(step);
  }
  return out;
}

async function through(bytes: Uint8Array<ArrayBuffer>, change: CompressionStream | DecompressionStream): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes]).stream().pipeThrough(change).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
    length += next.value.length;
    if (length > MOST_BYTES) {
      await reader.cancel();
      throw new RangeError(`more than ${MOST_BYTES} bytes`);
    }
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function deflated(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toBase64(await through(bytes, new CompressionStream("deflate-raw")));
}

/** null where the text is not what `deflated` makes, or would be too large. */
async function inflated(text: string): Promise<Uint8Array<ArrayBuffer> | null> {
  const bytes = fromBase64(text);
  if (!bytes) return null;
  try {
    return await through(bytes, new DecompressionStream("deflate-raw"));
  } catch {
    return null;
  }
}

export function packNumbers(values: Float32Array): Promise<string> {
  return deflated(planes(values));
}

export async function unpackNumbers(text: string): Promise<Float32Array | null> {
  const bytes = await inflated(text);
  return bytes && unplanes(bytes);
}

/** Numbers at places, the places in any order. */
export function packEdits(edits: ReadonlyMap<number, number>): Promise<string> {
  const sorted = [...edits].sort(([a], [b]) => a - b);
  const values = planes(Float32Array.from(sorted, ([, value]) => value));
  return deflated(Uint8Array.from([...steps([sorted.length, ...sorted.map(([index]) => index + sorted.length)]), ...values]));
}

export async function unpackEdits(text: string): Promise<Map<number, number> | null> {
  const bytes = await inflated(text);
  if (!bytes) return null;
  let at = 0;
  let sum = 0;
  const next = (): number => {
    let step = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at];
      at += 1;
      step += (byte % 128) * scale;
      if (!(byte > 127)) break;
    }
    return (sum += step);
  };
  const count = next();
  if (!(count * 5 <= bytes.length)) return null;
  const indices = Array.from({ length: count }, () => next() - count);
  const values = unplanes(bytes.subarray(at));
  if (values?.length !== count || !indices.every(Number.isSafeInteger) || values.some(Number.isNaN)) return null;
  return new Map(indices.map((index, i) => [index, values[i]]));
}
