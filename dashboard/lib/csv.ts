// A table as CSV (RFC 4180). A cell that a spreadsheet would run as a formula gets an apostrophe in front. Pure.

export type Cell = string | number | null;

export function toCsv(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [heads, ...rows].map((row) => `${row.map((cell) => sayCell(cell)).join(",")}\r\n`).join("");
}

function sayCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
