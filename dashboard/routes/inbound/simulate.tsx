// A mail that nobody sent, through the whole of what happens to received mail: for trying out rules, aliases and webhooks.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { domains } from "../../api/queries.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { toneOfInbound, wordOf } from "../../lib/states.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loading } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { InboundNav } from "./nav.tsx";

type Mail = Schemas["SimulateInboundEmailRequest"];

export function Simulate() {
  const owned = useQuery(domains);
  const receiving = owned.data?.domains.find(({ type }) => type === "inbound" || type === "both");
  const simulating = useAct({
    run: (body: Mail) => take(v1.POST("/v1/inbound-emails/simulate", { body })),
    refresh: [["inbound"]],
  });
  return (
    <>
      <PageHead title="Inbound" />
      <InboundNav />
      <div className="cols">
        {owned.isPending ? (
          <div className="panel">
            <Loading />
          </div>
        ) : (
          <MailForm
            to={receiving && `support@${receiving.domain}`}
            simulate={simulating.mutate}
            error={simulating.error}
            busy={simulating.isPending}
          />
        )}
        <aside className="stack" aria-live="polite" aria-label="What happened to it">
          {simulating.data ? (
            <Outcome answer={simulating.data} />
          ) : (
            <p className="dim px-1 text-[13px]">The result appears here.</p>
          )}
        </aside>
      </div>
    </>
  );
}

type Given = { to: string | undefined; simulate: (mail: Mail) => void; error: unknown; busy: boolean };

function MailForm({ to, simulate, error, busy }: Given) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    simulate({ to: text("to"), from: text("from"), subject: text("subject"), text: text("text") });
  };
  const problem = (name: string) => fieldProblem(error, name);
  return (
    <form onSubmit={submit} className="panel pad grid gap-4" noValidate>
      <p className="max-w-[64ch] text-ink-2">
        The mail goes through rules, aliases, the judgment on spam and webhooks as if it had come from outside. It is
        test mail: forwards are recorded and never sent.
      </p>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="From" problem={problem("from")}>
          {(bound) => (
            <input {...bound} name="from" defaultValue="Maja Lind <maja@sender.example>" autoComplete="off" />
          )}
        </Field>
        <Field label="To" problem={problem("to")}>
          {(bound) => <input {...bound} name="to" defaultValue={to} autoComplete="off" />}
        </Field>
      </div>
      <Field label="Subject" problem={problem("subject")}>
        {(bound) => <input {...bound} name="subject" defaultValue="A question about my order" autoComplete="off" />}
      </Field>
      <Field label="Text" problem={problem("text")}>
        {(bound) => (
          <textarea {...bound} name="text" rows={6} defaultValue={"Hello,\n\nwhen does it arrive?\n\nMaja"} />
        )}
      </Field>
      <div className="acts mt-0!">
        <Button changes look="primary" type="submit" busy={busy && "On its way…"}>
          Simulate
        </Button>
      </div>
    </form>
  );
}

function Outcome({ answer: { results, email } }: { answer: Schemas["SimulateInboundEmailAnswer"] }) {
  return (
    <section className="panel pad">
      <h2>What happened to it</h2>
      {results.map(({ recipient, accepted, smtp_code, enhanced_code, message }) => (
        <div key={recipient} className="mb-3">
          <div className="flex items-center justify-between gap-2">
            <span className="min-w-0 truncate">{recipient}</span>
            <Tag tone={accepted ? "good" : "bad"}>{accepted ? "Accepted" : "Refused"}</Tag>
          </div>
          <code className="said mt-1!">
            {smtp_code} {enhanced_code} {message}
          </code>
        </div>
      ))}
      {email !== null && (
        <>
          <div className="flex items-center justify-between">
            Then <Tag tone={toneOfInbound(email.status)}>{wordOf(email.status)}</Tag>
          </div>
          {email.reason && <p className="mt-1 text-ink-2">{email.reason}</p>}
          <div className="acts">
            <Link to="/inbound/$id" params={{ id: email.id }} className="btn">
              Open the mail
            </Link>
          </div>
        </>
      )}
    </section>
  );
}
