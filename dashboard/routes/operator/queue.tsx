// The queue of all organizations by destination: how much waits, since when, why. For operators.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { queue } from "../../api/operator-queries.ts";
import { QUEUE_STATES, type QueueFilters } from "../../lib/operator-filters.ts";
import { toneOfQueue, wordOf } from "../../lib/states.ts";
import { DomainName } from "../../ui/domain-name.tsx";
import { ListFilters } from "../../ui/list-filters.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/operator/queue");
type Destination = PeopleSchemas["QueuedDestination"];

export function Queue() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(queue(filters));
  const change = (changed: Partial<QueueFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Queue" />
      <OperatorNav />
      <ListFilters label="Search destinations" states={QUEUE_STATES} filters={filters} change={change} />
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {({ destinations, total, next }) => (
            <>
              {destinations.length === 0 ? <None filters={filters} /> : <Rows rows={destinations} />}
              <ListFoot page={{ total }} one="destination" readAtMs={list.dataUpdatedAt}>
                {next !== null && (
                  <Link to="/operator/queue" search={{ ...filters, after: next }} className="btn quiet">
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

function None({ filters: { query, state, after } }: { filters: QueueFilters }) {
  if (query === undefined && state === undefined && after === undefined)
    return <Empty title="Nothing waits">Mail that is accepted stands here until it is delivered or given up.</Empty>;
  return (
    <Empty
      title="No destination fits"
      acts={
        <Link to="/operator/queue" search={{}} className="btn">
          Show all
        </Link>
      }
    />
  );
}

function Rows({ rows }: { rows: Destination[] }) {
  return (
    <table className="table">
      <caption className="sr-only">Destinations, those with the most mail first</caption>
      <thead>
        <tr>
          <th className="sm:w-[210px]">Destination</th>
          <th className="hide-s w-[124px]">State</th>
          <th className="r w-[70px] sm:w-[90px]">Waits</th>
          <th className="r hide-s w-[80px]">Due</th>
          <th className="r hide-s w-[96px]">Deferred</th>
          <th className="r hide-s w-[96px]">Scheduled</th>
          <th className="r hide-s w-[104px]">Oldest</th>
          <th className="hide-s">Last reply</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((one) => (
          <Row key={one.domain} one={one} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ one }: { one: Destination }) {
  const figure = (count: number) => `${count.toLocaleString("en-GB")}${one.is_at_least && count > 0 ? "+" : ""}`;
  const said = one.last_reply ?? one.note;
  return (
    <tr>
      <td title={one.domain}>
        <Link to="/operator/queue/$domain" params={{ domain: one.domain }} className="row-link">
          <DomainName name={one.domain} />
        </Link>
        <div className="show-s mt-1">
          <Tag tone={toneOfQueue(one.state)}>{wordOf(one.state)}</Tag>
        </div>
      </td>
      <td className="hide-s">
        <Tag tone={toneOfQueue(one.state)}>{wordOf(one.state)}</Tag>
      </td>
      <td className="r">{figure(one.due + one.in_hand + one.deferred + one.scheduled)}</td>
      <td className="r hide-s" title={one.in_hand > 0 ? `${one.in_hand} of them being sent now` : undefined}>
        {figure(one.due + one.in_hand)}
      </td>
      <td className="r hide-s">{figure(one.deferred)}</td>
      <td className="r hide-s">{figure(one.scheduled)}</td>
      <td className="r dim hide-s">{one.oldest_at ? <When at={one.oldest_at} /> : "–"}</td>
      <td className="hide-s text-ink-2" title={said ?? undefined}>
        {said ?? <span className="dim">–</span>}
      </td>
    </tr>
  );
}
