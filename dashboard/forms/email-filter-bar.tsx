// The filters above the list of e-mails. Each change is at once in the page's address; there is nothing to submit.
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { type EmailFilters, isNarrowed, readSearch, STATUSES, searchText } from "../lib/email-filters.ts";
import { wordOf } from "../lib/states.ts";
import { Button } from "../ui/button.tsx";
import { Choice } from "../ui/choice.tsx";
import { DomainChoice } from "./domain-choice.tsx";
import { FilterText } from "./filter-text.tsx";

type Given = { filters: EmailFilters; change: (changed: Partial<EmailFilters>) => void; clear: () => void };
const MORE = ["from", "tag", "from_date", "to_date"] as const;

export function EmailFilterBar({ filters, change, clear }: Given) {
  const [isOpen, setOpen] = useState(MORE.some((name) => filters[name] !== undefined));
  return (
    <>
      <div className="filters">
        <Search key={searchText(filters)} filters={filters} change={change} />
        <Choice
          label="Status"
          value={filters.status}
          pick={(status) => change({ status: status as EmailFilters["status"] })}
        >
          {STATUSES.map((status) => (
            <option key={status} value={status}>
              {wordOf(status)}
            </option>
          ))}
        </Choice>
        <DomainChoice value={filters.domain_id} pick={(domain_id) => change({ domain_id })} />
        <Choice
          label="Keys"
          value={filters.environment}
          pick={(environment) => change({ environment: environment as EmailFilters["environment"] })}
        >
          <option value="live">Live</option>
          <option value="test">Test</option>
        </Choice>
        <Button look="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          More
        </Button>
        {isNarrowed(filters) && (
          <Button look="quiet" onClick={clear}>
            Clear
          </Button>
        )}
      </div>
      {isOpen && <MoreFilters filters={filters} change={change} />}
    </>
  );
}

function Search({ filters, change }: Pick<Given, "filters" | "change">) {
  const navigate = useNavigate();
  const search = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const sought = readSearch(String(new FormData(event.currentTarget).get("sought") ?? ""));
    if ("id" in sought) void navigate({ to: "/emails/$id", params: { id: sought.id } });
    else change({ to: undefined, subject: undefined, message_id: undefined, ...sought });
  };
  return (
    <form className="search" onSubmit={search}>
      <input
        data-search
        name="sought"
        type="search"
        className="input"
        aria-label="Search recipient, subject or id"
        placeholder="Search recipient, subject, id"
        defaultValue={searchText(filters)}
        onChange={(event) => event.target.value === "" && event.target.form?.requestSubmit()}
      />
      <kbd>/</kbd>
    </form>
  );
}

function MoreFilters({ filters, change }: Pick<Given, "filters" | "change">) {
  return (
    <div className="mb-3 grid grid-cols-2 gap-2 lg:grid-cols-4">
      <FilterText label="Sender contains" value={filters.from} set={(from) => change({ from })} />
      <FilterText label="Tag" value={filters.tag} set={(tag) => change({ tag })} />
      <FilterText
        label="From day (UTC)"
        type="date"
        value={filters.from_date}
        set={(from_date) => change({ from_date })}
      />
      <FilterText label="To day (UTC)" type="date" value={filters.to_date} set={(to_date) => change({ to_date })} />
    </div>
  );
}
