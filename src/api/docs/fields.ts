// The fields of the reference: tables of names, types and meanings. What a field holds is shown beneath it, folded, and so on
// down; a record that holds itself is named there alone.
import { escapeHtml } from "../../http/public-page.ts";
import { type Described, exampleOf, resolved, type Schema } from "./schema.ts";

export type Row = { name: string; place?: string; required?: boolean; description?: string; schema: Schema };
type Record = { name: string; schema: Schema };
/** What a table needs: the components, how text becomes HTML, and the records that it stands in. */
export type Shown = { description: Described; markdown: (text: string) => string; within?: string[] };

/** A table of fields or parameters. */
export function rowsOf(title: string, rows: Row[], shown: Shown): string {
  if (rows.length === 0) return "";
  const lines = rows.map((row) => {
    const need = row.required ? ' <span class="need">required</span>' : "";
    const place = row.place ? `${row.place}, ` : "";
    const type = `<span class="dim">${escapeHtml(place + typeOf(shown.description, row.schema))}</span>`;
    const words = shown.markdown(row.description ?? meaningOf(shown.description, row.schema));
    return `<tr><td><code>${escapeHtml(row.name)}</code>${need}<br>${type}</td><td>${words}${beneath(row.schema, shown)}</td></tr>`;
  });
  const head = title === "" ? "" : `<h3>${title}</h3>`;
  return `${head}<div class="wide" tabindex="0"><table><tbody>${lines.join("")}</tbody></table></div>`;
}

/** A body or an answer: its fields, or each form that it may have. */
export function formsOf(title: string, schema: Schema | undefined, shown: Shown): string {
  if (!schema) return "";
  const whole = resolved(shown.description, schema);
  const forms = whole.anyOf ?? whole.oneOf ?? [];
  if (forms.length < 2 && !whole.items) return rowsOf(title, fieldsOf(shown.description, schema), shown);
  const head = title === "" ? "" : `<h3>${title}</h3>`;
  if (forms.length < 2) return head + formOf("A", schema, shown);
  const list = forms.map((form, at) => {
    const example = form.$ref ? jsonOf(exampleOf(shown.description, form)) : "";
    return formOf(at === 0 ? "Either: a" : "Or: a", form, shown) + example;
  });
  return head + list.join("");
}

function formOf(article: string, form: Schema, shown: Shown): string {
  const type = escapeHtml(typeOf(shown.description, form));
  return `<p>${article} ${type}. ${escapeHtml(meaningOf(shown.description, form))}</p>${beneath(form, shown)}`;
}

/** An example as it stands in a page; nothing where there is none. */
export function jsonOf(example: unknown): string {
  if (example === undefined) return "";
  return `<pre tabindex="0"><code>${escapeHtml(JSON.stringify(example, null, 2))}</code></pre>`;
}

/** Whatever a field holds, folded. */
function beneath(schema: Schema, shown: Shown): string {
  const { description, within = [] } = shown;
  const records = recordsIn(description, schema).filter(({ name }) => name === "" || !within.includes(name));
  return records
    .map(({ name, schema: record }) => {
      const inner = { ...shown, within: [...within, name] };
      const title = name === "" ? "Its fields" : `Fields of ${escapeHtml(name)}`;
      return `<details><summary>${title}</summary>${rowsOf("", fieldsOf(description, record), inner)}</details>`;
    })
    .join("");
}

/** The records that a schema holds: itself, the items of a list, the values of a map, or each of several forms. */
function recordsIn(description: Described, schema: Schema): Record[] {
  const whole = resolved(description, schema);
  if (whole.items) return recordsIn(description, whole.items);
  const forms = whole.anyOf ?? whole.oneOf;
  if (forms) return forms.flatMap((form) => recordsIn(description, form));
  if (fieldsOf(description, schema).length > 0) return [{ name: nameOf(schema), schema }];
  return typeof whole.additionalProperties === "object" ? recordsIn(description, whole.additionalProperties) : [];
}

/** All fields, those of the components that it is put together of as well. */
export function fieldsOf(description: Described, schema: Schema | undefined): Row[] {
  if (!schema) return [];
  const whole = resolved(description, schema);
  const own = Object.entries(whole.properties ?? {}).map(([name, inner]) => ({
    name,
    required: whole.required?.includes(name) ?? false,
    schema: inner,
  }));
  return [...(whole.allOf ?? []).flatMap((part) => fieldsOf(description, part)), ...own];
}

/** Names and meanings of all fields, to be searched. */
export function wordsIn(description: Described, schema: Schema | undefined, within: string[] = []): string {
  if (!schema) return "";
  const records = recordsIn(description, schema).filter(({ name }) => name === "" || !within.includes(name));
  return records
    .flatMap(({ name, schema: record }) => fieldsOf(description, record).map((row) => ({ row, name })))
    .map(({ row, name }) =>
      [row.name, meaningOf(description, row.schema), wordsIn(description, row.schema, [...within, name])].join(" "),
    )
    .join(" ");
}

/** A field's own words, else those of the component that it refers to. */
function meaningOf(description: Described, schema: Schema): string {
  const { description: own, allOf = [] } = resolved(description, schema);
  const [only, ...others] = allOf;
  return schema.description ?? own ?? (only && others.length === 0 ? meaningOf(description, only) : "");
}

function typeOf(description: Described, schema: Schema): string {
  const whole = resolved(description, schema);
  const orNull = whole.nullable ? " or null" : "";
  if (whole.enum) return whole.enum.map(String).join(" | ");
  if (whole.items) return `list of ${typeOf(description, whole.items)}${orNull}`;
  if (fieldsOf(description, schema).length > 0) return (nameOf(schema) || "object") + orNull;
  const several = whole.anyOf ?? whole.oneOf ?? whole.allOf;
  if (several) return [...new Set(several.map((one) => typeOf(description, one)))].join(" or ") + orNull;
  const values = whole.additionalProperties;
  if (typeof values === "object") return `object of ${typeOf(description, values)}${orNull}`;
  return (whole.format ?? whole.type ?? "any") + orNull;
}

/** The component's name; empty for a record that has none. */
function nameOf({ $ref, allOf = [] }: Schema): string {
  const named = $ref ?? (allOf.length === 1 ? allOf[0]?.$ref : undefined) ?? "";
  return named.slice(named.lastIndexOf("/") + 1);
}
