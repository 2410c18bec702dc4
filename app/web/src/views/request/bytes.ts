/** A msgpack message taken apart: which bytes say what. */

export interface Token {
  readonly offset: number;
  readonly length: number;
  readonly depth: number;
  readonly meaning: string;
  /** A map's key, or a list's position. */
  readonly name: string;
  /** For a tensor's data: how many bytes they are, and the dtype that came before them. */
  readonly payload?: number;
  readonly dtype?: string;
}

const NUMBERS: Record<number, [string, number]> = {
  0xca: ["float32", 4], 0xcb: ["float64", 8], 0xcc: ["uint8", 1], 0xcd: ["uint16", 2], 0xce: ["uint32", 4],
  0xcf: ["uint64", 8], 0xd0: ["int8", 1], 0xd1: ["int16", 2], 0xd2: ["int32", 4], 0xd3: ["int64", 8],
};

class Walker {
  readonly tokens: Token[] = [];
  private at = 0;
  private key = "";
  private dtype = "";
  private readonly view: DataView;

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** One value and all inside it. */
  value(depth: number, name: string): void {
    const offset = this.at;
    const lead = this.bytes[this.at];
    this.at += 1;
    const token = (meaning: string) => this.tokens.push({ offset, length: this.at - offset, depth, meaning, name });
    if (lead <= 0x7f) token(`${lead}`);
    else if (lead >= 0xe0) token(`${lead - 256}`);
    else if (lead <= 0x8f) this.entries(lead & 15, depth, token);
    else if (lead <= 0x9f) this.items(lead & 15, depth, token);
    else if (lead <= 0xbf) this.text(lead & 31, token);
    else this.long(lead, depth, token);
  }

  private long(lead: number, depth: number, token: (meaning: string) => void): void {
    const sized = (base: number) => this.unsigned(1 << (lead - base));
    if (lead === 0xc0) token("null");
    else if (lead === 0xc2 || lead === 0xc3) token(lead === 0xc3 ? "true" : "false");
    else if (lead >= 0xc4 && lead <= 0xc6) {
      const length = sized(0xc4);
      this.at += length;
      token(`${length.toLocaleString("en")} bytes of data`);
      const data = this.tokens.length - 1;
      this.tokens[data] = { ...this.tokens[data], payload: length, dtype: this.dtype };
    } else if (lead >= 0xd9 && lead <= 0xdb) this.text(sized(0xd9), token);
    else if (lead === 0xdc || lead === 0xdd) this.items(this.unsigned(lead === 0xdc ? 2 : 4), depth, token);
    else if (lead === 0xde || lead === 0xdf) this.entries(this.unsigned(lead === 0xde ? 2 : 4), depth, token);
    else this.number(lead, token);
  }

  private number(lead: number, token: (meaning: string) => void): void {
    const [kind, length] = NUMBERS[lead] ?? ["unknown", 0];
    const { view, at } = this;
    const readers: Record<string, () => number | bigint> = {
      float32: () => view.getFloat32(at), float64: () => view.getFloat64(at), uint8: () => view.getUint8(at),
      uint16: () => view.getUint16(at), uint32: () => view.getUint32(at), uint64: () => view.getBigUint64(at),
      int8: () => view.getInt8(at), int16: () => view.getInt16(at), int32: () => view.getInt32(at), int64: () => view.getBigInt64(at),
    };
    this.at += length;
    token(`${String(readers[kind]?.() ?? "?")} (${kind})`);
  }

  private unsigned(length: number): number {
    let value = 0;
    for (let i = 0; i < length; i += 1) value = value * 256 + this.bytes[this.at + i];
    this.at += length;
    return value;
  }

  private string(length: number): string {
    this.at += length;
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at));
  }

  private text(length: number, token: (meaning: string) => void): void {
    const text = this.string(length);
    if (this.key === "dtype") this.dtype = text;
    token(`“${text}”`);
  }

  private items(count: number, depth: number, token: (meaning: string) => void): void {
    token(`list of ${count}`);
    for (let i = 0; i < count; i += 1) this.value(depth + 1, String(i));
  }

  private entries(count: number, depth: number, token: (meaning: string) => void): void {
    token(`map of ${count}`);
    for (let i = 0; i < count; i += 1) {
      const from = this.tokens.length;
      this.key = "";
      this.value(depth + 1, "");
      const key = this.tokens[from];
      this.tokens[from] = { ...key, meaning: `key ${key.meaning}` };
      this.key = key.meaning.slice(1, -1);
      this.value(depth + 2, this.key);
    }
  }
}

export function takeApart(bytes: Uint8Array): Token[] {
  const walker = new Walker(bytes);
  walker.value(0, "");
  return walker.tokens;
}

/** At most `most` bytes in hexadecimal. */
export function hex(bytes: Uint8Array, { offset, length }: Token, most = 12): string {
  const shown = Array.from(bytes.subarray(offset, offset + Math.min(length, most)), (byte) => byte.toString(16).padStart(2, "0"));
  return shown.join(" ") + (length > most ? " …" : "");
}
