// One e-mail: what became of it for each recipient and why, its timeline, its content, and what can be done with it.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { email, emailEvents, isMoving } from "../api/queries.ts";
import { EmailActs } from "../forms/email-acts.tsx";
import { type LiveState, type OnEvents, readsEvery, SENT_EVENTS, useLive } from "../lib/live.ts";
import { toneOfEmail, wordOf } from "../lib/states.ts";
import { saySize } from "../lib/times.ts";
import { MailContent } from "../mail/content.tsx";
import { Deliveries } from "../mail/deliveries.tsx";
import { Timeline } from "../mail/timeline.tsx";
import { WhyPanel } from "../mail/why-panel.tsx";
import { CutBanner, LiveMark } from "../ui/live-switch.tsx";
import { PageHead } from "../ui/page.tsx";
import { Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/emails/$id");
/** More recipients than these are a list, not a page of explanations. */
const EXPLAINED_MAX = 10;

const crumb = (
  <Link to="/emails" className="crumb">
    E-mails
  </Link>
);

export function OneEmail() {
  const { id } = route.useParams();
  const live = useFollowed(id);
  const query = useQuery(email(id, readsEvery(live)));
  const found = query.data?.email;
  return (
    <>
      <PageHead
        title={found ? found.subject || "No subject" : "E-mail"}
        crumb={crumb}
        beside={found && <Tag tone={toneOfEmail(found.status)}>{wordOf(found.status)}</Tag>}
        acts={found && <EmailActs email={found} />}
      />
      <CutBanner state={live} readAtMs={query.dataUpdatedAt} />
      {found ? (
        <Found email={found} live={live} />
      ) : (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      )}
    </>
  );
}

/** What happens to it is read as soon as it has happened: its content stays. */
function useFollowed(id: string): LiveState {
  const queries = useQueryClient();
  const onEvents: OnEvents = (events) => {
    if (events !== null && !events.some(({ body }) => body.includes(id))) return;
    for (const queryKey of [
      ["email", id],
      ["email", id, "events"],
    ])
      void queries.invalidateQueries({ queryKey, exact: true });
  };
  return useLive({ on: true, types: SENT_EVENTS, onEvents });
}

function Found({ email: found, live }: { email: Schemas["Email"]; live: LiveState }) {
  const events = useQuery(emailEvents(found.id, isMoving(found.status) && readsEvery(live)));
  const known = events.data?.events ?? [];
  const explained = found.recipients.slice(0, EXPLAINED_MAX);
  return (
    <div className="cols">
      <div className="stack">
        {explained.map((recipient) => (
          <WhyPanel
            key={`${recipient.kind} ${recipient.email}`}
            email={found}
            recipient={recipient}
            events={known.filter((event) => event.recipient === null || event.recipient === recipient.email)}
            isAlone={found.recipients.length === 1}
          />
        ))}
        <section className="panel" aria-labelledby="timeline">
          <div className="flex items-center justify-between pt-3 pr-2.5 pb-1 pl-[18px]">
            <h2 id="timeline">Timeline</h2>
            <LiveMark state={live} readAtMs={events.dataUpdatedAt} />
          </div>
          <Loaded of={events} rows={3}>
            {(answer) => <Timeline email={found} events={answer.events} />}
          </Loaded>
        </section>
        <Deliveries events={known} />
        <MailContent id={found.id} />
      </div>
      <aside className="stack" aria-label="About this e-mail">
        <Recipients email={found} />
        <Details email={found} />
      </aside>
    </div>
  );
}

function Recipients({ email: found }: { email: Schemas["Email"] }) {
  return (
    <section className="panel pad">
      <h2>{found.recipients.length === 1 ? "Recipient" : `${found.recipients.length} recipients`}</h2>
      <dl className="facts">
        {found.recipients.map(({ email: address, kind, status }) => (
          <div key={`${kind} ${address}`} className="contents">
            <dt>{kind === "to" ? "To" : kind === "cc" ? "Cc" : "Bcc"}</dt>
            <dd>
              <div>{address}</div>
              <Tag tone={toneOfEmail(status)}>{wordOf(status)}</Tag>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Details({ email: found }: { email: Schemas["Email"] }) {
  const metadata = Object.entries(found.metadata);
  return (
    <section className="panel pad">
      <h2>Details</h2>
      <dl className="facts">
        <dt>From</dt>
        <dd>{found.from}</dd>
        {found.reply_to.length > 0 && (
          <>
            <dt>Reply to</dt>
            <dd>{found.reply_to.join(", ")}</dd>
          </>
        )}
        <dt>Accepted</dt>
        <dd>
          <When at={found.created_at} as="both" />
        </dd>
        {found.scheduled_at && (
          <>
            <dt>Scheduled</dt>
            <dd>
              <When at={found.scheduled_at} as="both" />
            </dd>
          </>
        )}
        <dt>Size</dt>
        <dd className="num">{saySize(found.size)}</dd>
        {found.tags.length > 0 && (
          <>
            <dt>Tags</dt>
            <dd>
              {found.tags.map((tag) => (
                <Link
                  key={tag}
                  to="/emails"
                  search={{ tag }}
                  className="mr-2 underline decoration-strong underline-offset-3"
                >
                  {tag}
                </Link>
              ))}
            </dd>
          </>
        )}
        {metadata.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="truncate" title={name}>
              {name}
            </dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
        <dt>Key</dt>
        <dd>{found.environment === "live" ? "Live" : "Test: nothing was sent"}</dd>
        <dt>Id</dt>
        <dd>
          <code>{found.id}</code>
        </dd>
        <dt>Message-ID</dt>
        <dd>
          <code>{found.message_id}</code>
        </dd>
      </dl>
    </section>
  );
}
