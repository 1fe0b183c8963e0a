// The relays of all organizations: where their mail goes, what waits for each, and what it said last. For operators.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { relays } from "../../api/operator-queries.ts";
import { RELAY_STATES, type RelayFilters } from "../../lib/operator-filters.ts";
import { toneOfRelay, wordOf } from "../../lib/states.ts";
import { sayFigure } from "../../lib/times.ts";
import { DomainName } from "../../ui/domain-name.tsx";
import { ListFilters } from "../../ui/list-filters.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/operator/relays");
type Relay = PeopleSchemas["OperatedRelay"];

export function Relays() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(relays(filters));
  const change = (changed: Partial<RelayFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Relays" />
      <OperatorNav />
      <ListFilters
        label="Search hosts, domains, organizations"
        states={RELAY_STATES}
        filters={filters}
        change={change}
      />
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {({ relays: rows, total, next, port_25_is_closed }) => (
            <>
              {port_25_is_closed && (
                <p className="pad text-[13px] text-warn">
                  No machine can connect to port 25. Domains with a standby relay send through it.
                </p>
              )}
              {rows.length === 0 ? <None filters={filters} /> : <Rows rows={rows} />}
              <ListFoot page={{ total }} one="relay" readAtMs={list.dataUpdatedAt}>
                {next !== null && (
                  <Link to="/operator/relays" search={{ ...filters, after: next }} className="btn quiet">
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

function None({ filters }: { filters: RelayFilters }) {
  if (Object.keys(filters).length === 0)
    return (
      <Empty title="No domain has a relay">
        A customer sets one with <code>PUT /v1/domains/&#123;id&#125;/relay</code>; then its mail leaves through that
        server.
      </Empty>
    );
  return (
    <Empty
      title="No relay fits"
      acts={
        <Link to="/operator/relays" search={{}} className="btn">
          Show all
        </Link>
      }
    />
  );
}

function Rows({ rows }: { rows: Relay[] }) {
  return (
    <table className="table">
      <caption className="sr-only">Relays, those with the most mail first</caption>
      <thead>
        <tr>
          <th>Domain</th>
          <th className="hide-s w-[22%]">Relay</th>
          <th className="hide-s w-[150px]">State</th>
          <th className="r w-[68px] sm:w-[84px]">Waits</th>
          <th className="r hide-s w-[116px]">Oldest</th>
          <th className="hide-s w-[28%]">Last error</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((relay) => (
          <Row key={relay.domain_id} relay={relay} />
        ))}
      </tbody>
    </table>
  );
}

const TLS = { starttls: "STARTTLS", implicit: "TLS", none: "without TLS" } as const;

function Row({ relay }: { relay: Relay }) {
  const { domain, organization, host, port, tls, has_login, oldest_at, last_error } = relay;
  const place = `${host}:${port}`;
  return (
    <tr>
      <td className="py-2!" title={`${domain} · ${organization}`}>
        <div className="truncate">
          <DomainName name={domain} />
        </div>
        <div className="dim truncate text-[12.5px]">{organization}</div>
        <div className="show-s truncate text-[12.5px] text-ink-2">{place}</div>
        {last_error !== null && <div className="show-s whitespace-normal text-[12.5px] text-warn">{last_error}</div>}
        <div className="show-s mt-1">
          <State relay={relay} />
        </div>
      </td>
      <td className="hide-s" title={place}>
        <div className="num truncate">{place}</div>
        <div className="dim truncate text-[12.5px]">
          {TLS[tls]}, {has_login ? "with login" : "without login"}
        </div>
      </td>
      <td className="hide-s">
        <State relay={relay} />
      </td>
      <td className="r">{sayFigure(relay.waiting, relay.is_at_least)}</td>
      <td className="r dim hide-s">{oldest_at === null ? "–" : <When at={oldest_at} />}</td>
      <td className="hide-s" title={last_error ?? undefined}>
        {last_error === null ? (
          <span className="dim">–</span>
        ) : (
          <div className="line-clamp-2 whitespace-normal py-1.5 text-[12.5px] text-ink-2">{last_error}</div>
        )}
      </td>
    </tr>
  );
}

function State({ relay: { state, paused_until } }: { relay: Relay }) {
  return (
    <>
      <Tag tone={toneOfRelay(state)}>{wordOf(state)}</Tag>
      {paused_until !== null && (
        <div className="dim mt-0.5 truncate text-[12.5px]">
          until <When at={paused_until} />
        </div>
      )}
    </>
  );
}
