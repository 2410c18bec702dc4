/** Tensors: a typed array with a shape, and its form on the wire. */

import { ProtocolError } from "./errors";

export type TypedArray =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

export interface Tensor<A extends TypedArray = TypedArray> {
  readonly shape: readonly number[];
  readonly data: A;
}

/** The contract's form: little-endian, row-major, exactly as many bytes as the shape asks for. */
export interface WireTensor {
  dtype: string;
  shape: number[];
  data: Uint8Array;
}

type Maker = { new (buffer: ArrayBuffer): TypedArray; readonly BYTES_PER_ELEMENT: number };

const MAKERS: Record<string, Maker> = {
  float32: Float32Array, float64: Float64Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

export function dtypeOf(data: TypedArray): string {
  const found = Object.entries(MAKERS).find(([, Maker]) => data instanceof Maker);
  if (!found) throw new TypeError(`no dtype for ${Object.prototype.toString.call(data)}`);
  return found[0];
}

export function tensor<A extends TypedArray>(data: A, shape: readonly number[]): Tensor<A> {
  const cells = shape.reduce((product, extent) => product * extent, 1);
  if (cells !== data.length) {
    throw new RangeError(`shape [${shape.join(", ")}] has ${cells} cells, the data ${data.length}`);
  }
  return { shape, data };
}

/** A view of the array's own bytes; nothing is copied. */
export function toWire({ data, shape }: Tensor): WireTensor {
  const bytes = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  return { dtype: dtypeOf(data), shape: [...shape], data: bytes };
}

export function isWire(value: unknown): value is WireTensor {
  const map = value as Partial<WireTensor> | null;
  return typeof map === "object" && map?.data instanceof Uint8Array && Array.isArray(map.shape);
}

/**
 * Reads a tensor of an answer. The bytes are copied: inside a message they begin anywhere, and a typed
 * array on them would throw wherever that is not a multiple of the element's size.
 */
export function fromWire({ dtype, shape, data }: WireTensor): Tensor {
  if (dtype === "float16") return tensor(halves(data), shape);
  const Maker = MAKERS[dtype];
  if (!Maker) throw new ProtocolError(`the answer has a tensor of unknown dtype ${dtype}`);
  if (data.byteLength % Maker.BYTES_PER_ELEMENT !== 0) {
    throw new ProtocolError(`${data.byteLength} bytes are no whole number of ${dtype} elements`);
  }
  return tensor(new Maker(data.slice().buffer), shape);
}

/** float16, widened: browsers' own half-precision arrays are too new to rely on. */
function halves(data: Uint8Array): Float32Array {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return Float32Array.from({ length: data.byteLength / 2 }, (_, at) => {
    const bits = view.getUint16(at * 2, true);
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

/** Plain numbers of any tensor, int64 included. */
export function numbers(data: TypedArray): Float64Array {
  return Float64Array.from(data as ArrayLike<number | bigint>, Number);
}
