// A filter with few values; its first option, the label, means none.
import type { ReactNode } from "react";

type Given = { label: string; value: string | undefined; pick: (value?: string) => void; children: ReactNode };

export function Choice({ label, value, pick, children }: Given) {
  return (
    <select
      aria-label={label}
      className={value === undefined ? "chip" : "chip set"}
      value={value ?? ""}
      onChange={(event) => pick(event.target.value || undefined)}
    >
      <option value="">{label}</option>
      {children}
    </select>
  );
}
