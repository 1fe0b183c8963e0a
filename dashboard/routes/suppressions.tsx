// The addresses that get no mail, and why: search, add, remove, export.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { domains, PAGE_ROWS, suppressions } from "../api/queries.ts";
import { AddSuppression } from "../forms/add-suppression.tsx";
import { DownloadButton } from "../forms/download-button.tsx";
import { SearchField } from "../forms/search-field.tsx";
import { useAct } from "../lib/act.ts";
import { REASONS, type SuppressionFilters } from "../lib/list-filters.ts";
import { wordOf } from "../lib/states.ts";
import { Button } from "../ui/button.tsx";
import { Choice } from "../ui/choice.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/suppressions");
type Suppression = Schemas["Suppression"];

export function Suppressions() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [isAdding, add] = useState(false);
  const list = useQuery(suppressions(filters));
  const change = (changed: Partial<SuppressionFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead
        title="Suppressions"
        always={
          <DownloadButton fetch={() => exportCsv(filters)} name="suppressions.csv" label="Export CSV" look="plain" />
        }
        acts={
          <>
            <Link to="/suppressions/import" search={{}} className="btn">
              Import
            </Link>
            <Button look="primary" onClick={() => add(true)}>
              Add an address
            </Button>
          </>
        }
      />
      <div className="filters">
        <SearchField label="Search addresses" value={filters.query} search={(query) => change({ query })} />
        <Choice
          label="Reason"
          value={filters.reason}
          pick={(reason) => change({ reason: reason as SuppressionFilters["reason"] })}
        >
          {REASONS.map((reason) => (
            <option key={reason} value={reason}>
              {wordOf(reason)}
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.suppressions.length === 0 ? (
              <None filters={filters} />
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <AddSuppression open={isAdding} close={() => add(false)} />
    </>
  );
}

function exportCsv({ query, reason }: SuppressionFilters): Promise<unknown> {
  return take(v1.GET("/v1/suppressions/export", { params: { query: { query, reason } }, parseAs: "blob" }));
}

function None({ filters: { query, reason, after } }: { filters: SuppressionFilters }) {
  const all = (
    <Link to="/suppressions" search={{}} className="btn">
      Show all
    </Link>
  );
  if (after !== undefined) return <Empty title="No older entries" acts={all} />;
  if (query === undefined && reason === undefined)
    return (
      <Empty title="Nobody is suppressed">
        Addresses that bounce hard, complain or unsubscribe come here by themselves, and get no more mail.
      </Empty>
    );
  return (
    <Empty title="No entry fits" acts={all}>
      {sayNone(query, reason)}
    </Empty>
  );
}

/** Only of a whole address, and where all reasons were looked at, is it known that mail goes out. */
function sayNone(query: string | undefined, reason: SuppressionFilters["reason"]): string {
  if (reason !== undefined) return `Entries with other reasons than “${wordOf(reason)}” are not shown.`;
  if (query !== undefined && /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(query))
    return `${query} is not suppressed: mail to it goes out.`;
  return "Try a part of the address.";
}

function Rows({ page, readAtMs }: { page: Schemas["SuppressionList"]; readAtMs: number }) {
  const filters = route.useSearch();
  const [leaving, remove] = useState<Suppression | null>(null);
  const removing = useAct({
    run: ({ id }: Suppression) =>
      take(v1.DELETE("/v1/suppressions/{identifier}", { params: { path: { identifier: id } } })),
    refresh: [["suppressions"]],
    done: (_out, { email }) => {
      remove(null);
      return `${email} gets mail again.`;
    },
  });
  return (
    <>
      <table className="table">
        <caption className="sr-only">Suppressed addresses, newest first</caption>
        <thead>
          <tr>
            <th>Address</th>
            <th className="hide-s w-[150px]">Reason</th>
            <th className="hide-s w-[24%]">What it covers</th>
            <th className="r hide-s w-[130px]">Since</th>
            <th className="w-[112px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.suppressions.map((entry) => (
            <Row key={entry.id} entry={entry} remove={() => remove(entry)} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="address" many="addresses" readAtMs={readAtMs}>
        {page.suppressions.length === PAGE_ROWS && (
          <Link to="/suppressions" search={{ ...filters, after: page.suppressions.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
      <Confirm
        title={`Let mail reach ${leaving?.email} again?`}
        act="Remove the entry"
        open={leaving !== null}
        busy={removing.isPending}
        close={() => remove(null)}
        confirm={() => leaving && removing.mutate(leaving)}
      >
        {leaving?.reason === "complaint" || leaving?.reason === "unsubscribe"
          ? "This person did not want mail. Remove the entry only if they asked for mail again: further complaints hurt the delivery of all your mail."
          : "If the address still takes no mail, it bounces again and comes back here."}
      </Confirm>
    </>
  );
}

function Row({ entry, remove }: { entry: Suppression; remove: () => void }) {
  const { email, reason, note, bounce_code, diag_code } = entry;
  const code = [bounce_code, diag_code].filter(Boolean).join(" ");
  return (
    <tr>
      <td title={note === null ? email : `${email}: ${note}`}>
        {email}
        {note && <span className="dim hide-s"> · {note}</span>}
        <div className="show-s dim truncate text-[12.5px]">{[wordOf(reason), ...(note ? [note] : [])].join(" · ")}</div>
      </td>
      <td className="hide-s">
        {wordOf(reason)} {code && <span className="dim hide-s num">{code}</span>}
      </td>
      <td className="hide-s text-ink-2">
        <Scope entry={entry} />
        {entry.expires_at && (
          <span className="dim">
            {" "}
            · until <When at={entry.expires_at} />
          </span>
        )}
      </td>
      <td className="r dim hide-s">
        <When at={entry.created_at} />
      </td>
      <td className="r">
        <Button changes look="quiet" onClick={remove} aria-label={`Remove ${email}`}>
          Remove
        </Button>
      </td>
    </tr>
  );
}

function Scope({ entry: { scope_type, scope_id } }: { entry: Suppression }) {
  const owned = useQuery(domains).data?.domains ?? [];
  if (scope_type === "org") return "Every mail";
  const name = owned.find(({ id }) => id === scope_id)?.domain ?? scope_id;
  return `${wordOf(scope_type)} ${name}`;
}
