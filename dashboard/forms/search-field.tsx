// The search above a list: Enter searches, an emptied field shows everything again. `/` comes here.
import type { FormEvent } from "react";

type Given = { label: string; value: string | undefined; search: (text?: string) => void };

export function SearchField({ label, value, search }: Given) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    search(String(new FormData(event.currentTarget).get("sought") ?? "").trim() || undefined);
  };
  return (
    <form className="search" onSubmit={submit}>
      <input
        data-search
        key={value}
        name="sought"
        type="search"
        className="input"
        aria-label={label}
        placeholder={label}
        defaultValue={value}
        onChange={(event) => event.target.value === "" && event.target.form?.requestSubmit()}
      />
      <kbd>/</kbd>
    </form>
  );
}
