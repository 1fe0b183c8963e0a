// The columns of an exported list by name, whatever the spelling: `Email Address`, `email_address` and `emailAddress`
// are one. It reads values; what they mean is in formats.ts.

export type Columns = {
  names: ReadonlySet<string>;
  /** The first values of a column, for recognizing a format by them. */
  sample(name: string): string[];
};
/** The value of a column in the row at hand, trimmed; empty when there is no such column. */
export type Get = (name: string) => string;

/** The spelling-independent name of a column. Letters of other scripts stay, so that they remain different names. */
export function columnName(heading: string): string {
  return heading
    .toLowerCase()
    .normalize("NFKC")
    .replace(/[^\p{L}\p{N}]/gu, "");
}

/** True if any of these columns is there. */
export function hasAny(columns: Columns, ...names: string[]): boolean {
  return names.some((name) => columns.names.has(name));
}

/** True if all of these columns are there. */
export function hasAll(columns: Columns, ...names: string[]): boolean {
  return names.every((name) => columns.names.has(name));
}

/** True if every column is one of these. */
export function hasOnly(columns: Columns, ...names: string[]): boolean {
  return [...columns.names].every((name) => name === "" || names.includes(name));
}

/** The first of these columns that is there. */
export function firstOf(columns: Columns, names: readonly string[]): string | null {
  return names.find((name) => columns.names.has(name)) ?? null;
}

/** The column where most of the first values are addresses, null when there is none. */
export function addressColumn(columns: Columns, holdsAddress: (text: string) => boolean): string | null {
  let best: { name: string; count: number } | null = null;
  for (const name of columns.names) {
    const values = columns.sample(name).filter((value) => value !== "");
    const count = values.filter(holdsAddress).length;
    if (count * 2 >= values.length && count > (best?.count ?? 0)) best = { name, count };
  }
  return best?.name ?? null;
}
