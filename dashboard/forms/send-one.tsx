// Sending one e-mail by hand: as a test, which is checked and listed and leaves nowhere, or for real. With `content` only the
// addresses are asked for.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { AS_TEST, type Schemas, take, v1 } from "../api/client.ts";
import { domains } from "../api/queries.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { splitAddresses } from "../lib/fields.ts";
import { useOwn } from "../lib/own.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { Loaded } from "../ui/states.tsx";

type Content = Pick<Schemas["SendRequest"], "subject" | "html_body" | "text_body">;
type Given = { title: string; open: boolean; close: () => void; content?: Content | null; note?: string | undefined };
type Kind = "test" | "live";
type Sent = { body: Schemas["SendRequest"]; kind: Kind };

/** What was written and not sent yet, by the names of the fields. */
type Draft = Readonly<Record<string, string>>;

/** `note` stands above the form. What was written stays while the page is there: Escape closes, and loses nothing. */
export function SendOne({ title, open, close, content = null, note }: Given) {
  const [sent, keep] = useState<Schemas["SendAnswer"] | null>(null);
  const [draft, keepDraft] = useState<Draft>({});
  const end = () => {
    keep(null);
    close();
  };
  return (
    <Dialog title={sent === null ? title : "It is accepted"} open={open} close={end}>
      {sent === null && note !== undefined && <p>{note}</p>}
      {sent === null ? (
        <Begun
          content={content}
          close={end}
          draft={draft}
          write={keepDraft}
          sent={(answer) => {
            keep(answer);
            keepDraft({});
          }}
        />
      ) : (
        <Outcome answer={sent} close={end} />
      )}
    </Dialog>
  );
}

function Outcome({ answer: { id, status }, close }: { answer: Schemas["SendAnswer"]; close: () => void }) {
  return (
    <>
      <p>
        {status === "simulated"
          ? "Everything was checked as for live mail. Nothing was sent."
          : "It is on its way. Its page shows each attempt and each answer."}
      </p>
      <DialogActs close={close}>
        <Link to="/emails/$id" params={{ id }} className="btn primary">
          Open the e-mail
        </Link>
      </DialogActs>
    </>
  );
}

type FormGiven = {
  content: Content | null;
  from: string;
  close: () => void;
  draft: Draft;
  write: (draft: Draft) => void;
  sent: (answer: Schemas["SendAnswer"]) => void;
};

/** The form with its sender: one that came later would replace what somebody had written. */
function Begun(given: Omit<FormGiven, "from">) {
  return (
    <Loaded of={useQuery(domains)} rows={3}>
      {({ domains: owned }) => {
        const sender = owned.find(({ type, verified }) => type !== "inbound" && verified);
        return <Form {...given} from={sender === undefined ? "" : `hello@${sender.domain}`} />;
      }}
    </Loaded>
  );
}

function Form({ content, from, close, draft, write, sent }: FormGiven) {
  const [kind, choose] = useState<Kind>("test");
  const sending = useAct({
    run: ({ body, kind: as }: Sent) => take(v1.POST("/v1/send", { body, headers: as === "test" ? AS_TEST : {} })),
    refresh: [["emails"]],
    done: (answer) => {
      sent(answer);
      return undefined;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const to = splitAddresses(text("to"));
    const written = content ?? { subject: text("subject"), ...bodyOf(text("body")) };
    sending.mutate({ body: { from: text("from"), to, ...written }, kind });
  };
  const problem = (name: string) => fieldProblem(sending.error, name, sending.variables?.body.to);
  return (
    <form
      onSubmit={submit}
      onInput={(event) => write(readDraft(event.currentTarget))}
      className="mt-3 grid gap-4"
      noValidate
    >
      <Addresses from={draft.from ?? from} to={draft.to} problem={problem} />
      {content === null && (
        <>
          <Field label="Subject" problem={problem("subject")}>
            {(bound) => <input {...bound} name="subject" defaultValue={draft.subject} autoComplete="off" />}
          </Field>
          <Field
            label="Message"
            help="Plain text, or HTML when it begins with <"
            problem={problem("text_body") ?? problem("html_body")}
          >
            {(bound) => <textarea {...bound} name="body" defaultValue={draft.body} rows={7} />}
          </Field>
        </>
      )}
      <Field
        label="Kind"
        help={
          kind === "test"
            ? "As with a test key: everything is checked, it is listed, and nothing leaves."
            : "It is really sent, and counts as any other mail."
        }
      >
        {(bound) => (
          <select {...bound} name="kind" value={kind} onChange={(event) => choose(event.target.value as Kind)}>
            <option value="test">Test</option>
            <option value="live">Real</option>
          </select>
        )}
      </Field>
      <DialogActs
        close={close}
        act={kind === "test" ? "Send the test" : "Send it"}
        busy={sending.isPending && "Sending…"}
      />
    </form>
  );
}

type AddressesGiven = { from: string; to: string | undefined; problem: (name: string) => string | undefined };

function Addresses({ from, to, problem }: AddressesGiven) {
  const { person } = useOwn();
  return (
    <>
      <Field label="From" help="An address of a verified domain" problem={problem("from")}>
        {(bound) => <input {...bound} name="from" defaultValue={from} autoComplete="off" />}
      </Field>
      <Field label="To" help="Several with commas between them" problem={problem("to")}>
        {(bound) => <input {...bound} name="to" defaultValue={to ?? person.email} autoComplete="off" />}
      </Field>
    </>
  );
}

function bodyOf(text: string): Content {
  return text.startsWith("<") ? { html_body: text } : { text_body: text };
}

function readDraft(form: HTMLFormElement): Draft {
  return Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
}
