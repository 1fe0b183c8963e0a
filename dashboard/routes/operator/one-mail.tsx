// One mail for the installation: its content, who sent it, and how it came. It is shown as any received mail is: HTML in its frame,
// files as downloads.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { oneOwnMail, ownMailDownloads } from "../../api/operator-queries.ts";
import { saySize } from "../../lib/times.ts";
import { InboundContent } from "../../mail/inbound-content.tsx";
import { Verdicts } from "../../mail/verdicts.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/operator/mail/$id");
type Mail = PeopleSchemas["OperatorMail"];

const crumb = (
  <Link to="/operator/mail" search={{}} className="crumb">
    Mail of the installation
  </Link>
);

export function OneOwnMail() {
  const { id } = route.useParams();
  const query = useQuery(oneOwnMail(id));
  const found = query.data?.mail;
  const auth = found?.auth_results ?? null;
  return (
    <>
      <PageHead title={found ? found.subject || "No subject" : "Mail"} crumb={crumb} />
      {found ? (
        <div className="cols">
          <div className="stack">
            {found.reason !== null && (
              <section className="panel why warn" aria-label="Why it needs attention">
                <span />
                <div className="body">
                  <h2>Look at this one</h2>
                  <code className="said">{found.reason}</code>
                </div>
              </section>
            )}
            <InboundContent mail={found} from={ownMailDownloads(id)} />
          </div>
          <aside className="stack" aria-label="About this mail">
            {auth && (
              <Verdicts
                of={{
                  ...{ spf: auth.spf.result, dkim: auth.dkim.result, auth_results: auth },
                  envelope: found.envelope,
                }}
              />
            )}
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

function Details({ mail }: { mail: Mail }) {
  const { envelope } = mail;
  return (
    <section className="panel pad">
      <h2>Details</h2>
      <dl className="facts">
        <dt>From</dt>
        <dd>{mail.from ?? "no sender"}</dd>
        <dt>To</dt>
        <dd>{mail.recipient}</dd>
        <Listed name="Cc" texts={mail.cc} />
        <Listed name="Reply to" texts={mail.reply_to === null ? [] : [mail.reply_to]} />
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
        <Listed name="Defects" texts={mail.defects} />
        <dt>Id</dt>
        <dd>
          <code>{mail.id}</code>
        </dd>
      </dl>
    </section>
  );
}

function Listed({ name, texts }: { name: string; texts: string[] }) {
  if (texts.length === 0) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{texts.join(", ")}</dd>
    </>
  );
}
