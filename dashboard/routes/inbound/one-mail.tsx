// One received mail: what became of it and why, its content, the verdicts on its sender, its thread, and what can be done with it.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { inboundDownloads, inboundEmail, inboundEmails } from "../../api/inbound-queries.ts";
import { InboundActs } from "../../forms/inbound/inbound-acts.tsx";
import { toneOfInbound, wordOf } from "../../lib/states.ts";
import { saySize } from "../../lib/times.ts";
import { InboundContent } from "../../mail/inbound-content.tsx";
import { RuleTraces } from "../../mail/rule-trace.tsx";
import { Verdicts } from "../../mail/verdicts.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { inboundCrumb } from "./nav.tsx";

const route = getRouteApi("/inbound/$id");
type Mail = Schemas["InboundEmail"];

export function OneInbound() {
  const { id } = route.useParams();
  const query = useQuery(inboundEmail(id));
  const found = query.data?.email;
  return (
    <>
      <PageHead
        title={found ? found.subject || "No subject" : "Received mail"}
        crumb={inboundCrumb}
        beside={found && <Tag tone={toneOfInbound(found.status)}>{wordOf(found.status)}</Tag>}
        acts={found && <InboundActs mail={found} />}
      />
      {found ? (
        <div className="cols">
          <div className="stack">
            <What mail={found} />
            <InboundContent mail={found} from={inboundDownloads(id)} />
            {found.rule_ids.length > 0 && <RuleTraces mail={found} />}
            <Deliveries mail={found} />
          </div>
          <aside className="stack" aria-label="About this mail">
            <Verdicts of={found} />
            <Spam mail={found} />
            <Thread mail={found} />
            <Details mail={found} />
          </aside>
        </div>
      ) : (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      )}
    </>
  );
}

const SENTENCES: Record<Mail["status"], [title: string, text: string]> = {
  received: ["Received", "It is stored, and processed in a moment."],
  processing: ["Being processed", "What is done with it is decided now."],
  delivered: ["Handed on", "It was given to the endpoints, forwarded or kept, as its alias or rule says."],
  failed: ["Could not be handed on", "Look at the reason below, settle it, and process the mail again."],
  quarantined: [
    "In quarantine",
    "Nothing is done with it until somebody releases it. Release it only when it is not spam.",
  ],
  dropped: ["Put aside", "It was accepted, and nothing was done with it. It can be processed again."],
};

function What({ mail: { status, reason, forwards, released_at } }: { mail: Mail }) {
  const [title, text] = SENTENCES[status];
  return (
    <section className={`panel why ${toneOfInbound(status)}`} aria-label="What happened to it">
      <span />
      <div className="body">
        <h2>{title}</h2>
        <p>{text}</p>
        {released_at !== null && (
          <p>
            Released from quarantine <When at={released_at} as="both" />.
          </p>
        )}
        {reason !== null && <code className="said">{reason}</code>}
        {forwards.length > 0 && (
          <div className="acts">
            {forwards.map((id, place) => (
              <Link key={id} to="/emails/$id" params={{ id }} className="btn">
                {forwards.length === 1 ? "The forwarded e-mail" : `Forwarded e-mail ${place + 1}`}
              </Link>
            ))}
          </div>
        )}
      </div>
    </section>
  );
}

const SPAM_WORDS: Record<string, string> = {
  ham: "No spam",
  tag: "Marked as spam",
  quarantine: "Kept in quarantine",
  reject: "To be refused",
};

function Spam({ mail: { spam, domain_id } }: { mail: Mail }) {
  const symbols = spam.symbols.toSorted((one, other) => Math.abs(other.score) - Math.abs(one.score));
  return (
    <section className="panel pad">
      <h2>Spam</h2>
      {spam.score === null ? (
        <p className="text-ink-2">Nobody judged it.</p>
      ) : (
        <>
          <p className="mb-2">
            <b className="num text-[21px]">{spam.score.toFixed(1)}</b>{" "}
            <span className="dim">{SPAM_WORDS[spam.verdict ?? ""] ?? spam.verdict}</span>
          </p>
          <ul className="grid grid-cols-1 gap-1 text-[12.5px]">
            {symbols.map(({ name, score }) => (
              <li key={name} className="flex justify-between gap-3">
                <code className="min-w-0 truncate" title={name}>
                  {name}
                </code>
                <span className={score > 0 ? "num text-bad" : "num text-good"}>
                  {score > 0 ? "+" : ""}
                  {score.toFixed(1)}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      {domain_id !== null && (
        <div className="acts">
          <Link to="/inbound/spam" search={{ domain_id }} className="btn quiet">
            The domain's settings
          </Link>
        </div>
      )}
    </section>
  );
}

function Thread({ mail: { id, thread } }: { mail: Mail }) {
  const list = useQuery({ ...inboundEmails({ thread_id: thread.id ?? "" }), enabled: thread.id !== null });
  const others = list.data?.emails.filter((mail) => mail.id !== id) ?? [];
  if (others.length === 0 && thread.matched_email_id === null) return null;
  return (
    <section className="panel pad">
      <h2>Thread</h2>
      <ul className="grid grid-cols-1 gap-2 text-[13px]">
        {thread.matched_email_id !== null && (
          <li>
            <Link to="/emails/$id" params={{ id: thread.matched_email_id }} className="row-link">
              It answers an e-mail of yours
            </Link>
          </li>
        )}
        {others.map((mail) => (
          <li key={mail.id} className="flex justify-between gap-3">
            <Link to="/inbound/$id" params={{ id: mail.id }} className="row-link min-w-0 truncate">
              {mail.from_address ?? "no sender"}
            </Link>
            <span className="dim">
              <When at={mail.received_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Details({ mail }: { mail: Mail }) {
  const { envelope } = mail;
  return (
    <section className="panel pad">
      <h2>Details</h2>
      <dl className="facts">
        <dt>From</dt>
        <dd>{mail.from ?? "no sender"}</dd>
        <dt>To</dt>
        <dd>{mail.to}</dd>
        {mail.cc.length > 0 && (
          <>
            <dt>Cc</dt>
            <dd>{mail.cc.join(", ")}</dd>
          </>
        )}
        <dt>Received</dt>
        <dd>
          <When at={mail.received_at} as="both" />
        </dd>
        <dt>Envelope</dt>
        <dd>{envelope.from || "empty (a notice)"}</dd>
        <dt>Server</dt>
        <dd>
          {envelope.helo} <span className="dim">{envelope.remote_ip}</span>
        </dd>
        <dt>TLS</dt>
        <dd>{envelope.tls ? "Yes" : "No"}</dd>
        <dt>Size</dt>
        <dd>{saySize(mail.size)}</dd>
        {mail.recipient_tag !== null && (
          <>
            <dt>Tag</dt>
            <dd>{mail.recipient_tag}</dd>
          </>
        )}
        {mail.defects.length > 0 && (
          <>
            <dt>Defects</dt>
            <dd>{mail.defects.join(", ")}</dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <code>{mail.id}</code>
        </dd>
      </dl>
    </section>
  );
}

const DELIVERY_TONES = { pending: "idle", delivered: "good", retrying: "warn", failed: "bad" } as const;

function Deliveries({ mail: { deliveries } }: { mail: Mail }) {
  if (deliveries.length === 0) return null;
  return (
    <section className="panel">
      <h2 className="px-[18px] pt-4 pb-2">Webhook deliveries</h2>
      <table className="table">
        <caption className="sr-only">Deliveries of its events</caption>
        <thead>
          <tr>
            <th className="w-[126px]">State</th>
            <th>Answer</th>
            <th className="r w-[90px]">Attempt</th>
            <th className="r hide-s w-[124px]">Time</th>
          </tr>
        </thead>
        <tbody>
          {deliveries.map((one) => (
            <tr key={one.id}>
              <td>
                <Tag tone={DELIVERY_TONES[one.status as keyof typeof DELIVERY_TONES] ?? "idle"}>
                  {wordOf(one.status)}
                </Tag>
              </td>
              <td title={one.error ?? undefined}>
                <Link to="/webhooks/$id" params={{ id: one.endpoint_id }} search={{}} className="row-link">
                  {one.status_code ?? one.error ?? "no answer yet"}
                </Link>
              </td>
              <td className="r">{one.attempt}</td>
              <td className="r dim hide-s">
                <When at={one.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
