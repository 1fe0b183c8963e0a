// A filter with a text or a day: it counts when the field is left, or on Enter.
import { useId } from "react";

type Given = { label: string; value: string | undefined; set: (value?: string) => void; type?: "text" | "date" };

export function FilterText({ label, value, set, type = "text" }: Given) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        key={value}
        type={type}
        className="input"
        defaultValue={value}
        onBlur={(event) => event.target.value !== (value ?? "") && set(event.target.value || undefined)}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      />
    </div>
  );
}
