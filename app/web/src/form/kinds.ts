/** From a config field's JSON Schema to the kind of control that it needs. Nothing here names a field. */

export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly default?: unknown;
  readonly description?: string;
  readonly examples?: readonly unknown[];
}

export type Kind =
  | { readonly kind: "choice"; readonly options: readonly string[]; readonly nullable: boolean }
  | { readonly kind: "flag" }
  | { readonly kind: "number"; readonly integer: boolean; readonly minimum: number; readonly nullable: boolean }
  | { readonly kind: "axes"; readonly minimum: number; readonly nullable: boolean }
  | { readonly kind: "padding"; readonly names: readonly string[] }
  | { readonly kind: "layout"; readonly examples: readonly string[] }
  | { readonly kind: "named"; readonly options: readonly Named[]; readonly nullable: boolean }
  | { readonly kind: "other" };

/** A name with parameters of its own, such as an activation. */
export interface Named {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, Schema>>;
}

export interface Field {
  readonly name: string;
  readonly kind: Kind;
  readonly description: string;
  readonly required: boolean;
  readonly otherwise: unknown;
}

function branches(schema: Schema): readonly Schema[] {
  return (schema.anyOf ?? schema.oneOf ?? [schema]).flatMap((one) =>
    one.anyOf || one.oneOf ? branches(one) : [one],
  );
}

export function kindOf(schema: Schema): Kind {
  const all = branches(schema);
  const nullable = all.some((one) => one.type === "null");
  const some = all.filter((one) => one.type !== "null");
  const names = some.flatMap((one) => one.enum ?? []).filter((one) => typeof one === "string") as string[];
  const array = some.find((one) => one.type === "array");
  const number = some.find((one) => one.type === "integer" || one.type === "number");
  const maps = some.filter((one) => one.type === "object" && one.properties?.name?.const !== undefined);
  if (maps.length > 0) return { kind: "named", options: maps.map(named), nullable };
  if (array && names.length > 0) return { kind: "padding", names };
  if (array && number) {
    const hole = array.items ? branches(array.items).some((one) => one.type === "null") : false;
    return { kind: "axes", minimum: number.minimum ?? 0, nullable: nullable || hole };
  }
  if (names.length > 0) return { kind: "choice", options: names, nullable };
  if (some.some((one) => one.type === "boolean")) return { kind: "flag" };
  if (number) {
    const integer = number.type === "integer";
    return { kind: "number", integer, minimum: number.minimum ?? number.exclusiveMinimum ?? -Infinity, nullable };
  }
  if (array?.items && branches(array.items).some((one) => one.type === "integer")) {
    return { kind: "axes", minimum: branches(array.items)[0].minimum ?? 0, nullable };
  }
  const text = some.find((one) => one.type === "string");
  if (text?.examples) return { kind: "layout", examples: text.examples.map(String) };
  return { kind: "other" };
}

function named(schema: Schema): Named {
  const { name, ...parameters } = schema.properties ?? {};
  return { name: String(name?.const), description: schema.description ?? "", parameters };
}

interface Described {
  readonly config?: Schema & { readonly required?: readonly string[] };
}

/** Stands for a config that is one named map as a whole, as an activation's is. Not empty, as what no field asked for is. */
export const WHOLE = "config";

/** The fields of an operation in the catalogue's order. */
export function fieldsOf(operation: unknown): Field[] {
  const { config } = operation as Described;
  if (config && !config.properties) {
    const kind = kindOf(config);
    return [{ name: WHOLE, kind, description: "", required: true, otherwise: undefined }];
  }
  const required = config?.required ?? [];
  return Object.entries(config?.properties ?? {}).map(([name, schema]) => ({
    name,
    kind: kindOf(schema),
    description: schema.description ?? "",
    required: required.includes(name),
    otherwise: schema.default,
  }));
}
