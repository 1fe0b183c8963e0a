// The list of sent e-mails: every filter of the API in the page's address, pages by cursor, live when asked.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { emails, PAGE_ROWS } from "../api/queries.ts";
import { EmailFilterBar } from "../forms/email-filter-bar.tsx";
import { SendOne } from "../forms/send-one.tsx";
import { type EmailFilters, isNarrowed } from "../lib/email-filters.ts";
import { readsEvery, SENT_EVENTS, useLive } from "../lib/live.ts";
import { useNow } from "../lib/now.ts";
import { toneOfEmail, wordOf } from "../lib/states.ts";
import { sayDuration, sayShortly } from "../lib/times.ts";
import { Button } from "../ui/button.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { CutBanner, LiveSwitch } from "../ui/live-switch.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/emails");
type Email = Schemas["Email"];

export function Emails() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [isComposing, compose] = useState(false);
  const queries = useQueryClient();
  const live = useLive({
    on: filters.live === true,
    types: SENT_EVENTS,
    onEvents: () => void queries.invalidateQueries({ queryKey: ["emails"] }),
  });
  const list = useQuery(emails(filters, readsEvery(live)));
  const change = (changed: Partial<EmailFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead
        title="E-mails"
        beside={
          <LiveSwitch
            state={live}
            readAtMs={list.dataUpdatedAt}
            flip={() => change({ live: filters.live ? undefined : true })}
          />
        }
        acts={
          <Button look="primary" onClick={() => compose(true)}>
            Compose
          </Button>
        }
      />
      <SendOne title="Compose" open={isComposing} close={() => compose(false)} />
      <CutBanner state={live} readAtMs={list.dataUpdatedAt} />
      <EmailFilterBar filters={filters} change={change} clear={() => void navigate({ search: {} })} />
      <div className="panel" aria-busy={list.isFetching && list.isPlaceholderData}>
        <Loaded of={list} rows={10}>
          {(page) =>
            page.emails.length === 0 ? (
              <NoEmails filters={filters} />
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
    </>
  );
}

function NoEmails({ filters }: { filters: EmailFilters }) {
  if (filters.after !== undefined) return <Empty title="No older e-mails" acts={<NewestLink filters={filters} />} />;
  if (isNarrowed(filters))
    return (
      <Empty
        title="No e-mail fits these filters"
        acts={
          <Link to="/emails" search={{}} className="btn">
            Clear filters
          </Link>
        }
      >
        A recipient must match exactly. The subject and the sender may match in part.
      </Empty>
    );
  return (
    <Empty title="No e-mails yet">
      Send the first one with <code>POST /v1/send</code>. With a test key it is checked and listed here, and nothing
      leaves.
    </Empty>
  );
}

function NewestLink({ filters }: { filters: EmailFilters }) {
  return (
    <Link to="/emails" search={{ ...filters, after: undefined }} className="btn">
      Newest
    </Link>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["EmailList"]; readAtMs: number }) {
  const filters = route.useSearch();
  const last = page.emails.at(-1);
  const hasMore = page.emails.length === PAGE_ROWS;
  return (
    <>
      <table className="table">
        <caption className="sr-only">Sent e-mails, newest first</caption>
        <thead>
          <tr>
            <th className="w-[126px] sm:w-[150px]">Status</th>
            <th>To</th>
            <th className="hide-s w-[34%]">Subject</th>
            <th className="r hide-s w-[130px]">Outcome</th>
            <th className="r w-[92px] sm:w-[130px]">Accepted</th>
          </tr>
        </thead>
        <tbody>
          {page.emails.map((email) => (
            <Row key={email.id} email={email} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="e-mail" readAtMs={readAtMs}>
        {filters.after !== undefined && <NewestLink filters={filters} />}
        {hasMore && (
          <Link to="/emails" search={{ ...filters, live: undefined, after: last?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function Row({ email }: { email: Email }) {
  const [first = "nobody", ...others] = email.recipients.map((recipient) => recipient.email);
  return (
    <tr>
      <td>
        <Tag tone={toneOfEmail(email.status)}>{wordOf(email.status).replace("Partially delivered", "In part")}</Tag>
      </td>
      <td title={[first, ...others].join(", ")}>
        <Link to="/emails/$id" params={{ id: email.id }} className="row-link">
          {first}
        </Link>
        {others.length > 0 && <span className="dim"> +{others.length}</span>}
        <div className="show-s dim truncate text-[12.5px]">{email.subject}</div>
      </td>
      <td className="hide-s" title={email.subject}>
        {email.subject || <span className="dim">no subject</span>}
      </td>
      <td className="r hide-s">
        <Outcome email={email} />
      </td>
      <td className="r dim">
        <When at={email.created_at} />
      </td>
    </tr>
  );
}

/** What came of it in a word or a figure: how long it took, when it goes on, or the code. */
function Outcome({ email }: { email: Email }) {
  const nowMs = useNow();
  const { status, recipients } = email;
  if (status === "delivered" && email.completed_at !== null)
    return sayDuration(
      Math.max(0, Date.parse(email.completed_at) - Date.parse(email.scheduled_at ?? email.created_at)),
    );
  if (status === "scheduled" && email.scheduled_at !== null) return sayShortly(email.scheduled_at, nowMs);
  if (status === "simulated") return <span className="dim">test key</span>;
  const next = recipients
    .map(({ next_attempt_at }) => next_attempt_at ?? "")
    .sort()
    .find(Boolean);
  if (status === "deferred" && next) return `next ${sayShortly(next, nowMs)}`;
  const bounced = recipients.find(({ bounce_code }) => bounce_code !== null);
  return bounced ? [bounced.bounce_code, bounced.diag_code].filter(Boolean).join(" ") : null;
}
