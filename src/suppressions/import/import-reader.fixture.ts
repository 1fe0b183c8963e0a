// What a list becomes, row by row, in a form that tests can write down.
import type { Provider } from "./formats.ts";
import { createImportReader, type ImportRow } from "./import-reader.ts";

export type Options = { provider?: Provider; filename?: string; piece?: number };

/** Reads a whole file in pieces, on 20 November 2026. */
export function read(content: string | Buffer, { provider, filename = "", piece = 64 * 1024 }: Options = {}) {
  const reader = createImportReader({ provider: provider ?? null, filename, now_ms: Date.UTC(2026, 10, 20) });
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const rows: ImportRow[] = [];
  for (let at = 0; at < bytes.length; at += piece) rows.push(...reader.push(bytes.subarray(at, at + piece)));
  rows.push(...reader.end());
  return { provider: reader.format()?.provider ?? null, rows };
}

/** One word a row: the reason (with its scopes unless org), or the message of what is wrong. */
export function words(content: string | Buffer, options?: Options): string[] {
  return read(content, options).rows.map((row) => {
    if ("message" in row) return `no: ${row.message}`;
    const scopes = row.scopes.filter(({ scope_type }) => scope_type !== "org");
    return [row.reason, ...scopes.map(({ scope_type, scope_id }) => `${scope_type}=${scope_id}`)].join(" ");
  });
}
export const no = (column: string, what: string) => `no: '${column}' ${what}`;
export const TEMPORARY = "is a temporary failure, which does not suppress";
export const POLICY = "is about the sender or the content, which does not suppress the recipient";
export const FINE = "says that the address is not suppressed";
export const UNKNOWN = "is not a reason that we know";
