// The list of received mail: every filter in the page's address, pages by cursor, live when asked.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { inboundEmails } from "../../api/inbound-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { InboundFilterBar } from "../../forms/inbound/inbound-filter-bar.tsx";
import type { InboundFilters } from "../../lib/inbound-filters.ts";
import { RECEIVED_EVENTS, readsEvery, useLive } from "../../lib/live.ts";
import { toneOfInbound, wordOf } from "../../lib/states.ts";
import { ListFoot } from "../../ui/list-foot.tsx";
import { CutBanner, LiveSwitch } from "../../ui/live-switch.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { InboundNav } from "./nav.tsx";

const route = getRouteApi("/inbound");

export function Inbound() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const queries = useQueryClient();
  const live = useLive({
    on: filters.live === true,
    types: RECEIVED_EVENTS,
    onEvents: () => void queries.invalidateQueries({ queryKey: ["inbound"] }),
  });
  const list = useQuery(inboundEmails(filters, readsEvery(live)));
  const change = (changed: Partial<InboundFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead
        title="Inbound"
        beside={
          <LiveSwitch
            state={live}
            readAtMs={list.dataUpdatedAt}
            flip={() => change({ live: filters.live ? undefined : true })}
          />
        }
      />
      <InboundNav />
      <CutBanner state={live} readAtMs={list.dataUpdatedAt} />
      <InboundFilterBar filters={filters} change={change} clear={() => void navigate({ search: {} })} />
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list} rows={10}>
          {(page) =>
            page.emails.length === 0 ? <NoMail filters={filters} /> : <Rows page={page} readAtMs={list.dataUpdatedAt} />
          }
        </Loaded>
      </div>
    </>
  );
}

function NoMail({ filters: { live: _live, after, ...narrowing } }: { filters: InboundFilters }) {
  const all = (
    <Link to="/inbound" search={{}} className="btn">
      Show all
    </Link>
  );
  if (after !== undefined) return <Empty title="No older mail" acts={all} />;
  if (Object.keys(narrowing).length > 0) return <Empty title="No mail fits these filters" acts={all} />;
  return (
    <Empty
      title="No mail received yet"
      acts={
        <>
          <Link to="/inbound/aliases" search={{}} className="btn">
            Make an alias
          </Link>
          <Link to="/inbound/simulate" className="btn">
            Simulate a mail
          </Link>
        </>
      }
    >
      Mail to a domain that receives comes here. An alias says what is done with it.
    </Empty>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["InboundEmailRowList"]; readAtMs: number }) {
  const filters = route.useSearch();
  return (
    <>
      <table className="table">
        <caption className="sr-only">Received mail, newest first</caption>
        <thead>
          <tr>
            <th className="w-[126px] sm:w-[150px]">Status</th>
            <th className="sm:w-[23%]">From</th>
            <th className="hide-s">Subject</th>
            <th className="hide-s w-[18%]">To</th>
            <th className="r hide-s w-[74px]">Spam</th>
            <th className="r w-[92px] sm:w-[124px]">Received</th>
          </tr>
        </thead>
        <tbody>
          {page.emails.map((mail) => (
            <Row key={mail.id} mail={mail} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="mail" readAtMs={readAtMs}>
        {filters.after !== undefined && (
          <Link to="/inbound" search={{ ...filters, after: undefined }} className="btn">
            Newest
          </Link>
        )}
        {page.emails.length === PAGE_ROWS && (
          <Link
            to="/inbound"
            search={{ ...filters, live: undefined, after: page.emails.at(-1)?.id }}
            className="btn quiet"
          >
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function Row({ mail }: { mail: Schemas["InboundEmailRow"] }) {
  return (
    <tr>
      <td>
        <Tag tone={toneOfInbound(mail.status)}>{wordOf(mail.status)}</Tag>
      </td>
      <td title={mail.from_address ?? undefined}>
        <Link to="/inbound/$id" params={{ id: mail.id }} className="row-link">
          {mail.from_address ?? "no sender"}
        </Link>
        <div className="show-s dim truncate text-[12.5px]">{mail.subject}</div>
      </td>
      <td className="hide-s" title={mail.subject ?? undefined}>
        {mail.subject || <span className="dim">no subject</span>}
        {mail.has_attachments && <span className="dim"> · files</span>}
        {mail.environment === "test" && <span className="dim"> · test</span>}
      </td>
      <td className="hide-s text-ink-2" title={mail.to_address}>
        {mail.to_address}
      </td>
      <td className="r hide-s">{mail.spam_score === null ? "–" : mail.spam_score.toFixed(1)}</td>
      <td className="r dim">
        <When at={mail.received_at} />
      </td>
    </tr>
  );
}
