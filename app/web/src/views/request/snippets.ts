/** The request as programs: what each prints is what the page shows. */

import type { Tensor } from "../../client";
import type { Action } from "../../state/served";
import { float, list, python, tuple } from "./literal";

export interface Asked {
  readonly url: string;
  readonly action: Action;
  readonly op: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** As they are sent. */
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly wants: readonly string[];
  /** A key goes with it. Programs take theirs from the environment: they are copied and sent around. */
  readonly keyed: boolean;
}

/** More numbers than this are not written out; the program reads the exported file instead. */
export const MOST_NUMBERS = 600;
export const FILE = "convoke.json";
export const BODY = "convoke.msgpack";
/** The variable of the environment that programs read the key from; those named CONVOKE_… are settings of a service. */
export const KEY = "SERVICE_KEY";

export function numbersIn(asked: Asked): number {
  return Object.values(asked.tensors).reduce((sum, { data }) => sum + data.length, 0);
}

const plain = (data: Tensor["data"]) => Array.from(data as ArrayLike<number | bigint>, Number);
const kindOf = (data: Tensor["data"]) => (data instanceof BigInt64Array ? "int64" : "float32");
const isLong = (asked: Asked) => numbersIn(asked) > MOST_NUMBERS;

/** The body in the contract's JSON. */
export function jsonBody({ config, tensors, wants, action }: Asked): string {
  const entries = [
    `"config": ${JSON.stringify(config)}`,
    ...Object.entries(tensors).map(([name, { data, shape }]) =>
      `"${name}": {"dtype": "${kindOf(data)}", "shape": [${shape.join(", ")}], "data": [${plain(data).map(jsonNumber).join(", ")}]}`),
    ...(action === "backward" ? [`"wants": ${JSON.stringify(wants)}`] : []),
  ];
  return `{\n  ${entries.join(",\n  ")}\n}`;
}

function jsonNumber(value: number): string {
  if (Number.isNaN(value)) return '"NaN"';
  return Number.isFinite(value) ? float(value) : value > 0 ? '"Infinity"' : '"-Infinity"';
}

export function curl(asked: Asked): string {
  const url = `${asked.url}v1/${asked.op}/${asked.action}`;
  const note = asked.keyed ? [`# The key is in the environment, as ${KEY}.`] : [];
  const key = asked.keyed ? [`  -H "authorization: Bearer $${KEY}" \\`] : [];
  if (isLong(asked)) {
    return [...note, `# The body is the file ${BODY}, from the button below.`, `curl -s ${url} \\`, ...key,
      "  -H 'content-type: application/vnd.msgpack' -H 'accept: application/json' \\", `  --data-binary @${BODY}`].join("\n");
  }
  return [...note, `curl -s ${url} \\`, ...key, "  -H 'content-type: application/json' \\", `  -d '${jsonBody(asked)}'`].join("\n");
}

function pythonData(asked: Asked): string {
  if (isLong(asked)) {
    return `# The tensors are in the file ${FILE}, from the button below.
with open("${FILE}") as file:
    saved = json.load(file)
tensors = {
    name: np.array(saved[name]["data"], saved[name]["dtype"]).reshape(saved[name]["shape"])
    for name in ${python(Object.keys(asked.tensors))}
}`;
  }
  const entries = Object.entries(asked.tensors).map(([name, { data, shape }]) =>
    `    "${name}": np.array(${list(plain(data), "    ")}, "${kindOf(data)}").reshape${tuple(shape)},`);
  return `tensors = {\n${entries.join("\n")}\n}`;
}

export function pythonProgram(asked: Asked): string {
  const wants = asked.action === "backward" ? `, "wants": ${python(asked.wants)}` : "";
  const kind = '"content-type": "application/vnd.msgpack"';
  const headers = !asked.keyed ? `{${kind}}` : `{
        ${kind},
        # The key is in the environment, as ${KEY}.
        "authorization": f"Bearer {os.environ['${KEY}']}",
    }`;
  return `${isLong(asked) ? "import json\n" : ""}${asked.keyed ? "import os\n" : ""}import urllib.request

import msgpack
import numpy as np
${isLong(asked) ? "" : hasOdd(asked) ? "from numpy import inf, nan\n" : ""}

def packed(array):
    dtype, shape = str(array.dtype), array.shape
    return {"dtype": dtype, "shape": shape, "data": array.tobytes()}


def unpacked(tensor):
    return np.frombuffer(tensor["data"], tensor["dtype"]).reshape(tensor["shape"])


${pythonData(asked)}
body = {"config": ${python(asked.config)}${wants}}
body |= {name: packed(array) for name, array in tensors.items()}
request = urllib.request.Request(
    "${asked.url}v1/${asked.op}/${asked.action}",
    msgpack.packb(body),
    ${headers},
)
with urllib.request.urlopen(request) as response:
    answer = msgpack.unpackb(response.read())
for name in ${python(asked.action === "backward" ? asked.wants : ["y"])}:
    print(name, unpacked(answer[name]).tolist())
`;
}

function hasOdd(asked: Asked): boolean {
  return Object.values(asked.tensors).some(({ data }) => plain(data).some((value) => !Number.isFinite(value)));
}

export function javascript(asked: Asked): string {
  const long = isLong(asked);
  const key = asked.keyed ? `, authorization: \`Bearer \${process.env.${KEY}}\`` : "";
  const note = asked.keyed ? `  // The key is in the environment, as ${KEY}.\n` : "";
  const entries = Object.entries(asked.tensors).map(([name, { data, shape }]) => {
    const int = kindOf(data) === "int64";
    const values = long ? `saved.${name}.data` : list(plain(data), "  ").replaceAll("nan", "NaN").replaceAll("inf", "Infinity");
    const array = int ? `BigInt64Array.from(${values}, BigInt)` : `Float32Array.from(${values})`;
    return `  ${name}: tensor("${kindOf(data)}", [${shape.join(", ")}], ${array}),`;
  });
  return `import { decode, encode } from "@msgpack/msgpack";
${long ? `import saved from "./${FILE}" with { type: "json" };\n` : ""}
const tensor = (dtype, shape, array) => ({ dtype, shape, data: new Uint8Array(array.buffer) });

const body = {
  config: ${JSON.stringify(asked.config)},
${entries.join("\n")}${asked.action === "backward" ? `\n  wants: ${JSON.stringify(asked.wants)},` : ""}
};
const response = await fetch("${asked.url}v1/${asked.op}/${asked.action}", {
  method: "POST",
${note}  headers: { "content-type": "application/vnd.msgpack"${key} },
  body: encode(body),
});
const answer = decode(new Uint8Array(await response.arrayBuffer()));
// Inside a message bytes begin anywhere: slice() copies them to where a typed array may begin.
for (const name of ${JSON.stringify(asked.action === "backward" ? asked.wants : ["y"])}) {
  console.log(name, answer[name].shape, new Float32Array(answer[name].data.slice().buffer));
}
`;
}
