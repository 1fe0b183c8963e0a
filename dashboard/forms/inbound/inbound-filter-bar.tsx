// The filters above received mail. Each change is at once in the page's address.
import { useState } from "react";
import { INBOUND_STATES, type InboundFilters } from "../../lib/inbound-filters.ts";
import { wordOf } from "../../lib/states.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { DomainChoice } from "../domain-choice.tsx";
import { FilterText } from "../filter-text.tsx";
import { SearchField } from "../search-field.tsx";

type Given = { filters: InboundFilters; change: (changed: Partial<InboundFilters>) => void; clear: () => void };
const MORE = ["from", "to", "subject", "from_date", "to_date"] as const;

export function InboundFilterBar({ filters, change, clear }: Given) {
  const [isOpen, setOpen] = useState(MORE.some((name) => filters[name] !== undefined));
  const { live: _live, after: _after, ...narrowing } = filters;
  return (
    <>
      <div className="filters">
        <SearchField label="Search sender, recipient, subject" value={filters.q} search={(q) => change({ q })} />
        <Choice
          label="Status"
          value={filters.status}
          pick={(status) => change({ status: status as InboundFilters["status"] })}
        >
          {INBOUND_STATES.map((status) => (
            <option key={status} value={status}>
              {wordOf(status)}
            </option>
          ))}
        </Choice>
        <DomainChoice value={filters.domain_id} pick={(domain_id) => change({ domain_id })} />
        <Choice
          label="Files"
          value={filters.has_attachments?.toString()}
          pick={(files) => change({ has_attachments: files === undefined ? undefined : files === "true" })}
        >
          <option value="true">With files</option>
          <option value="false">Without files</option>
        </Choice>
        <Button look="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          More
        </Button>
        {Object.keys(narrowing).length > 0 && (
          <Button look="quiet" onClick={clear}>
            Clear
          </Button>
        )}
      </div>
      {isOpen && (
        <div className="mb-3 grid grid-cols-2 gap-2 lg:grid-cols-5">
          <FilterText label="Sender" value={filters.from} set={(from) => change({ from })} />
          <FilterText label="Recipient" value={filters.to} set={(to) => change({ to })} />
          <FilterText label="Subject" value={filters.subject} set={(subject) => change({ subject })} />
          <FilterText
            label="From day (UTC)"
            type="date"
            value={filters.from_date}
            set={(from_date) => change({ from_date })}
          />
          <FilterText label="To day (UTC)" type="date" value={filters.to_date} set={(to_date) => change({ to_date })} />
        </div>
      )}
    </>
  );
}
