// The sending addresses of all organizations: whose they are, how they are called, how warm, what waits. For operators.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { sources } from "../../api/operator-queries.ts";
import { SourceActs } from "../../forms/operator/source-acts.tsx";
import { SOURCE_STATES, type SourceFilters } from "../../lib/operator-filters.ts";
import { toneOfSource, wordOf } from "../../lib/states.ts";
import { sayCount, sayFigure, sayPercent } from "../../lib/times.ts";
import { ListFilters } from "../../ui/list-filters.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/operator/sources");
type Source = PeopleSchemas["OperatedSource"];

export function Sources() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(sources(filters));
  const change = (changed: Partial<SourceFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Sources" />
      <OperatorNav />
      <ListFilters
        label="Search addresses and organizations"
        states={SOURCE_STATES}
        filters={filters}
        change={change}
      />
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {({ sources: rows, total, next }) => (
            <>
              {rows.length === 0 ? <None /> : <Rows rows={rows} />}
              <ListFoot page={{ total }} one="address" many="addresses" readAtMs={list.dataUpdatedAt}>
                {next !== null && (
                  <Link to="/operator/sources" search={{ ...filters, after: next }} className="btn quiet">
                    Next
                  </Link>
                )}
              </ListFoot>
            </>
          )}
        </Loaded>
      </div>
    </>
  );
}

/** The shared address is always there. */
function None() {
  return (
    <Empty
      title="No address fits"
      acts={
        <Link to="/operator/sources" search={{}} className="btn">
          Show all
        </Link>
      }
    />
  );
}

function Rows({ rows }: { rows: Source[] }) {
  return (
    <table className="table">
      <caption className="sr-only">Sending addresses, the shared one first</caption>
      <thead>
        <tr>
          <th>Address</th>
          <th className="hide-s w-[19%]">Used by</th>
          <th className="hide-s w-[164px]">State</th>
          <th className="r hide-s w-[112px]">Delivered, 7 d</th>
          <th className="r hide-s w-[104px]">Blocked, 7 d</th>
          <th className="r w-[72px] sm:w-[96px]">Waits</th>
          <th className="hide-s w-[128px]">
            <span className="sr-only">Acts</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((source) => (
          <Row key={source.id} source={source} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ source }: { source: Source }) {
  const { ip, ehlo, waiting, is_at_least, resting, resting_reason, last_7_days: week, held_note } = source;
  const attempts = week.delivered + week.deferred + week.bounced;
  return (
    <tr>
      <td className="py-2!" title={[ip, ehlo, ...source.machines].filter(Boolean).join(" · ")}>
        <div className="num truncate">{ip ?? "Shared address"}</div>
        <div className="dim truncate text-[12.5px]">{ehlo}</div>
        <Reverse source={source} />
        {held_note !== null && <div className="truncate text-[12.5px] text-ink-2">“{held_note}”</div>}
        <div className="show-s truncate text-[12.5px] text-ink-2">{usedBy(source)}</div>
        <div className="show-s mt-1">
          <State source={source} />
        </div>
        <div className="show-s -ml-3">
          <SourceActs source={source} />
        </div>
      </td>
      <td className="hide-s" title={usedBy(source)}>
        <div className="truncate">{source.organization ?? "All organizations"}</div>
        {source.pool !== null && (
          <div className="dim truncate text-[12.5px]">
            {source.pool}
            {source.weight > 1 && `, weight ${source.weight}`}
          </div>
        )}
      </td>
      <td className="hide-s">
        <State source={source} />
      </td>
      <td className="r hide-s">{ip === null ? <NotCounted /> : sayFigure(week.delivered)}</td>
      <td className="r hide-s" title={`${sayFigure(week.blocked)} of ${sayFigure(attempts)} attempts`}>
        {ip === null ? <NotCounted /> : sayPercent(week.blocked, attempts)}
      </td>
      <td className="r" title={resting_reason ?? undefined}>
        {sayFigure(waiting, is_at_least)}
        {resting > 0 && <div className="dim text-[12.5px]">{sayFigure(resting)} resting</div>}
      </td>
      <td className="r hide-s">
        <SourceActs source={source} />
      </td>
    </tr>
  );
}

function usedBy({ organization, pool }: Source): string {
  return organization === null ? "All organizations" : `${organization} · ${pool}`;
}

function NotCounted() {
  return (
    <span className="dim" title="Counted by domain, not by address">
      –
    </span>
  );
}

const REVERSE = {
  matches: null,
  unknown: "Reverse name not looked up",
  missing: "No reverse name",
  differs: "Reverse name differs",
  one_way: "Name leads elsewhere",
} as const;

/** What others would hold against it; nothing where all is well. */
function Reverse({ source: { reverse, ehlo } }: { source: Source }) {
  const said = reverse && REVERSE[reverse.state];
  if (!reverse || !said) return null;
  const why = {
    unknown: "Its name servers did not answer in time",
    missing: `Its provider sets a PTR record: ${ehlo}`,
    differs: `It is ${reverse.names.join(", ")}, and says ${ehlo} in EHLO`,
    one_way: `${ehlo} has no record that names this address`,
    matches: "",
  }[reverse.state];
  return (
    <div className={`truncate text-[12.5px] ${reverse.state === "unknown" ? "dim" : "text-warn"}`} title={why}>
      {said}
    </div>
  );
}

function State({ source: { state, warmup, held_at, held_by, machines } }: { source: Source }) {
  return (
    <>
      <Tag tone={toneOfSource(state)}>{wordOf(state)}</Tag>
      <div className="dim mt-0.5 truncate text-[12.5px]">
        {held_at !== null ? (
          <span title={`By ${held_by}`}>
            since <When at={held_at} as="short" />
          </span>
        ) : warmup !== null ? (
          <span title={`Day ${warmup.day} of its warm-up`} className="num">
            {sayFigure(warmup.used_today)} of {sayFigure(warmup.daily_limit)} today
          </span>
        ) : (
          machines.length > 0 && sayCount(machines.length, { one: "machine" })
        )}
      </div>
    </>
  );
}
