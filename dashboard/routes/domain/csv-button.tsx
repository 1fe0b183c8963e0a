// The rows of a table as a file.
import { DownloadButton } from "../../forms/download-button.tsx";
import { type Cell, toCsv } from "../../lib/csv.ts";

type Given = { name: string; heads: readonly string[]; rows: readonly (readonly Cell[])[] };

export function CsvButton({ name, heads, rows }: Given) {
  const make = () => Promise.resolve(new Blob([toCsv(heads, rows)], { type: "text/csv;charset=utf-8" }));
  return <DownloadButton fetch={make} name={name} label="CSV" what={name} />;
}
