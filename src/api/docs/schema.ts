// What of a schema of OpenAPI 3.0 the documentation reads, and how a reference is followed.

export type Schema = {
  $ref?: string;
  type?: string;
  description?: string;
  enum?: unknown[];
  items?: Schema;
  properties?: { [name: string]: Schema };
  additionalProperties?: boolean | Schema;
  required?: string[];
  example?: unknown;
  format?: string;
  nullable?: boolean;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
};
export type Described = { components: { [kind: string]: { [name: string]: unknown } } };

/** Whatever `$ref` names. A reference to nothing is an error of the description. */
export function resolved<T extends { $ref?: string }>(description: Described, given: T): T {
  if (given.$ref === undefined) return given;
  const [kind = "", name = ""] = given.$ref.replace("#/components/", "").split("/");
  const found = description.components[kind]?.[name];
  if (found === undefined) throw new Error(`the description has no ${given.$ref}`);
  return resolved(description, found as T);
}

/** A schema's own example, or one made of those of its parts; undefined where they have none. */
export function exampleOf(description: Described, schema: Schema): unknown {
  const own = resolved(description, schema);
  if (own.example !== undefined) return own.example;
  if (own.enum) return own.enum[0];
  if (own.items) {
    const item = exampleOf(description, own.items);
    return item === undefined ? undefined : [item];
  }
  const base = Object.assign({}, ...(own.allOf ?? []).map((part) => exampleOf(description, part)));
  const fields = Object.entries(own.properties ?? {}).filter(
    ([name, part]) => own.required?.includes(name) || part.example !== undefined,
  );
  const made = fields.map(([name, part]) => [name, exampleOf(description, part)]);
  const whole = { ...base, ...Object.fromEntries(made) };
  return Object.keys(whole).length === 0 ? undefined : whole;
}
