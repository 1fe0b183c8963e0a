// The audit log: who changed what, when and from where, with the values before and after of what may be kept.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { auditLog } from "../api/people.ts";
import { PAGE_ROWS } from "../api/queries.ts";
import { SearchField } from "../forms/search-field.tsx";
import { readOperation, sayChanges, sayOperation } from "../lib/operations.ts";
import { ListFoot } from "../ui/list-foot.tsx";
import { SettingsHead } from "../ui/settings-head.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/settings/audit-log");
type Entry = Schemas["AuditEntry"];

export function AuditLogPage() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(auditLog(filters));
  const narrow = (change: Partial<typeof filters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...change }) });
  return (
    <>
      <SettingsHead title="Audit log" />
      <div className="filters">
        <SearchField
          label="Act, such as Create API key"
          value={filters.operation && sayOperation(filters.operation)}
          search={(text) => narrow({ operation: text && readOperation(text) })}
        />
        <Day label="From day (UTC)" value={filters.from_date} pick={(from_date) => narrow({ from_date })} />
        <Day label="To day (UTC)" value={filters.to_date} pick={(to_date) => narrow({ to_date })} />
      </div>
      <div className="panel">
        <Loaded of={list}>
          {(page) =>
            page.entries.length === 0 ? (
              <Empty title="Nothing was changed here">
                No act fits these filters. An act is searched by its whole name, as the log shows it. The log keeps 400
                days.
              </Empty>
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
    </>
  );
}

function Day({ label, value, pick }: { label: string; value?: string; pick: (day?: string) => void }) {
  return (
    <label className="flex items-center gap-2 text-[13px] text-ink-2">
      {label}
      <input
        type="date"
        className="input"
        value={value ?? ""}
        onChange={(event) => pick(event.target.value || undefined)}
      />
    </label>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["AuditEntryList"]; readAtMs: number }) {
  const filters = route.useSearch();
  return (
    <>
      <table className="table">
        <caption className="sr-only">Acts, newest first</caption>
        <thead>
          <tr>
            <th className="w-[116px] sm:w-[132px]">When</th>
            <th className="hide-s w-[20%]">Who</th>
            <th>What</th>
            <th className="hide-s w-[30%]">Changed</th>
            <th className="hide-s w-[150px]">From</th>
          </tr>
        </thead>
        <tbody>
          {page.entries.map((entry) => (
            <Row key={entry.id} entry={entry} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="act" readAtMs={readAtMs}>
        {page.entries.length === PAGE_ROWS && (
          <Link to="/settings/audit-log" search={{ ...filters, after: page.entries.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

const ACTORS: Record<Entry["actor"], string> = { key: "key", person: "", command: "command line" };

function Row({ entry }: { entry: Entry }) {
  const { at, actor, name, ip, operation, target } = entry;
  const what = Object.values(target).join(" ");
  const said = sayChanges(entry);
  return (
    <tr>
      <td className="dim">
        <When at={at} />
      </td>
      <td className="hide-s" title={name}>
        {name}
        {ACTORS[actor] && <span className="dim"> · {ACTORS[actor]}</span>}
      </td>
      <td title={`${operation} ${what}`}>
        {sayOperation(operation)} <code className="dim hide-s">{what}</code>
        <div className="show-s dim truncate text-[12.5px]">{name}</div>
      </td>
      <td className="hide-s dim" title={said.join("\n")}>
        {said.join(", ")}
      </td>
      <td className="hide-s">{ip === null ? "" : <code>{ip}</code>}</td>
    </tr>
  );
}
