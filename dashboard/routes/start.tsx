// What is left to do until mail flows. Each step ticks itself when it has happened; nothing is ticked by hand.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../api/client.ts";
import { anyEmail, apiKeys, domains, webhooks } from "../api/queries.ts";
import { FirstMail } from "../forms/first-mail.tsx";
import { useOwn } from "../lib/own.ts";
import { PageHead } from "../ui/page.tsx";
import { Failed, Loading } from "../ui/states.tsx";
import { ReviewPanel } from "./review-panel.tsx";

const LOOK_MS = 5_000;
type Step = { name: string; done: boolean; text: ReactNode; to: ReactNode };

export function Start() {
  const { organization } = useOwn();
  const { steps, failed, isReading } = useSteps();
  const left = steps.filter(({ done }) => !done).length;
  return (
    <>
      <PageHead title="Start" />
      {organization.state === "pending_review" && (
        <div className="mb-5">
          <ReviewPanel />
        </div>
      )}
      <div className="panel">
        {failed ? (
          <Failed error={failed.error} retry={() => void failed.refetch()} />
        ) : isReading ? (
          <Loading rows={6} />
        ) : (
          <>
            <ol className="steps">
              {steps.map((step, place) => (
                <OneStep key={step.name} step={step} place={place + 1} />
              ))}
            </ol>
            <div className="foot">
              {left === 0 ? "All steps are done." : `${left} of ${steps.length} left. This page looks again by itself.`}
            </div>
          </>
        )}
      </div>
    </>
  );
}

function OneStep({ step: { name, done, text, to }, place }: { step: Step; place: number }) {
  return (
    <li className={done ? "done" : ""}>
      <span className="mark" aria-hidden="true">
        {done ? "✓" : place}
      </span>
      <div className="min-w-0">
        <h2>
          {name}
          <span className="sr-only">{done ? " (done)" : " (to do)"}</span>
        </h2>
        {!done && text}
      </div>
      <div>{to}</div>
    </li>
  );
}

/** What has happened, read again every few seconds. */
function useSteps() {
  const owned = useQuery({ ...domains, refetchInterval: LOOK_MS });
  const keys = useQuery({ ...apiKeys({}), refetchInterval: LOOK_MS });
  const tried = useQuery({ ...anyEmail({}), refetchInterval: LOOK_MS });
  const arrived = useQuery({ ...anyEmail({ status: "delivered" }), refetchInterval: LOOK_MS });
  const hooks = useQuery({ ...webhooks, refetchInterval: LOOK_MS });
  const all = [owned, keys, tried, arrived, hooks];
  const senders = owned.data?.domains.filter(({ type }) => type === "outbound" || type === "both") ?? [];
  const sender = senders.find(({ verified }) => verified) ?? senders[0];
  const steps: Step[] = [
    ...domainSteps(sender),
    { ...MAKE_KEY, done: (keys.data?.keys.length ?? 0) > 0 },
    { ...firstMail(sender?.domain), done: (tried.data?.total ?? 0) > 0 },
    { ...DELIVERED, done: (arrived.data?.total ?? 0) > 0 },
    { ...WEBHOOK, done: hooks.data?.webhooks.some(({ last_success_at }) => last_success_at !== null) ?? false },
  ];
  const failed = all.find(({ error, data }) => error && data === undefined);
  return { steps, failed, isReading: all.some(({ isPending }) => isPending) };
}

function domainSteps(sender: Schemas["Domain"] | undefined): Step[] {
  const records = sender && (
    <Link to="/domains/$id" params={{ id: sender.id }} className="btn">
      See its records
    </Link>
  );
  return [
    { ...ADD_DOMAIN, done: sender !== undefined },
    { ...PUBLISH, done: sender?.verified ?? false, to: records },
  ];
}

const ADD_DOMAIN = {
  name: "Add a domain to send from",
  text: <p>A subdomain keeps its reputation apart from that of your other mail.</p>,
  to: (
    <Link to="/domains" className="btn">
      Domains
    </Link>
  ),
};
const PUBLISH = {
  name: "Publish its records; Postern verifies them",
  text: <p>Copy them to where the domain's DNS is kept. Postern looks by itself, and at once when you ask.</p>,
};
const MAKE_KEY = {
  name: "Make an API key",
  text: <p>A test key checks everything and sends nothing; a live key sends.</p>,
  to: (
    <Link to="/keys" className="btn">
      API keys
    </Link>
  ),
};
const DELIVERED = {
  name: "See one delivered",
  text: <p>Send one with a live key to a mailbox of yours. If it does not arrive, its page says why.</p>,
  to: (
    <Link to="/emails" search={{ environment: "live" }} className="btn">
      Live e-mails
    </Link>
  ),
};
const WEBHOOK = {
  name: "Receive events by webhook",
  text: <p>Add an HTTPS address of yours and send a test to it.</p>,
  to: (
    <Link to="/webhooks" className="btn">
      Webhooks
    </Link>
  ),
};

function firstMail(domain = "your-domain.example") {
  const to = (
    <Link to="/emails" search={{ live: true }} className="btn">
      E-mails
    </Link>
  );
  return { name: "Send the first mail", text: <FirstMail from={`hello@${domain}`} />, to };
}
