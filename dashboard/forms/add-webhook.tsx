// Adding an endpoint, and changing what it gets. Its secret is shown once, here: it goes into no cache and no address.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { domains } from "../api/queries.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { inOneLine } from "../lib/domain-names.ts";
import { EVENTS } from "../lib/list-filters.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { SecretOnce } from "../ui/secret-once.tsx";

type Webhook = Schemas["Webhook"];
type Given = { open: boolean; close: () => void };

export function AddWebhook({ open, close }: Given) {
  const [secret, keep] = useState<string | null>(null);
  const end = () => {
    keep(null);
    close();
  };
  return (
    <Dialog title={secret === null ? "Add an endpoint" : "The endpoint is added"} open={open} close={end}>
      {secret === null ? (
        <Form close={close} made={keep} />
      ) : (
        <SecretOnce secret={secret} what="signing secret" done={end} />
      )}
    </Dialog>
  );
}

function Form({ close, made }: Pick<Given, "close"> & { made: (secret: string) => void }) {
  const adding = useAct({
    run: (body: Schemas["CreateWebhookRequest"]) => take(v1.POST("/v1/webhooks", { body })),
    refresh: [["webhooks"]],
    done: ({ secret }) => {
      made(secret);
      adding.reset();
      return undefined;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    adding.mutate({ ...readFields(form), domain_id: String(form.get("domain_id") ?? "") || null });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <AddressAndEvents error={adding.error} />
      <OnlySome error={adding.error} />
      <DialogActs close={close} act="Add" busy={adding.isPending && "Adding…"} />
    </form>
  );
}

/** Its domain stays: a program that is to get another domain's events gets an endpoint for them. */
export function ChangeWebhook({ webhook, open, close }: Given & { webhook: Webhook }) {
  return (
    <Dialog title="Change the endpoint" open={open} close={close}>
      <ChangeForm webhook={webhook} close={close} />
    </Dialog>
  );
}

function ChangeForm({ webhook, close }: { webhook: Webhook; close: () => void }) {
  const changing = useAct({
    run: (body: Schemas["UpdateWebhookRequest"]) =>
      take(v1.PUT("/v1/webhooks/{id}", { params: { path: { id: webhook.id } }, body })),
    refresh: [["webhooks"]],
    done: () => {
      close();
      return "The endpoint is changed.";
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    changing.mutate({ ...readFields(form), enabled: form.has("enabled") });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <AddressAndEvents error={changing.error} before={webhook} />
      <Recipients problem={fieldProblem(changing.error, "match_pattern")} before={webhook.match_pattern} />
      <label className="flex items-center gap-2">
        <input type="checkbox" name="enabled" defaultChecked={webhook.enabled} />
        On: it gets events
      </label>
      <DialogActs close={close} act="Save" busy={changing.isPending && "Saving…"} />
    </form>
  );
}

function readFields(form: FormData) {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const events = EVENTS.filter((name) => form.has(name));
  return { url: text("url"), events, match_pattern: text("match_pattern") || null };
}

function AddressAndEvents({ error, before }: { error: unknown; before?: Webhook }) {
  const problem = fieldProblem(error, "events");
  const isChosen = (name: Webhook["event_types"][number]) =>
    before === undefined ? name !== "email.received" : before.event_types.includes(name);
  return (
    <>
      <Field label="Address" help="HTTPS, reachable from the internet" problem={fieldProblem(error, "url")}>
        {(bound) => (
          <input
            {...bound}
            name="url"
            type="url"
            defaultValue={before?.webhook_url}
            autoComplete="off"
            placeholder="https://"
          />
        )}
      </Field>
      <fieldset className="grid gap-1">
        <legend className="mb-1 text-[12.5px] text-ink-2">Events</legend>
        {EVENTS.map((name) => (
          <label key={name} className="flex items-center gap-2">
            <input type="checkbox" name={name} defaultChecked={isChosen(name)} />
            {name}
          </label>
        ))}
        {problem && <span className="text-[12.5px] text-bad">{problem}</span>}
      </fieldset>
    </>
  );
}

/** What most endpoints do without. It opens by itself where something in it is declined. */
function OnlySome({ error }: { error: unknown }) {
  const owned = useQuery(domains).data?.domains ?? [];
  const ofDomain = fieldProblem(error, "domain_id");
  const ofPattern = fieldProblem(error, "match_pattern");
  return (
    <details open={ofDomain !== undefined || ofPattern !== undefined || undefined}>
      <summary className="text-[13px] text-ink-2">Only for some mail</summary>
      <div className="mt-3 grid gap-4">
        <Field
          label="Domain"
          help="With a domain, it gets events of mail sent from it, and mail to the domain that no alias takes."
          problem={ofDomain}
        >
          {(bound) => (
            <select {...bound} name="domain_id" defaultValue="">
              <option value="">All domains</option>
              {owned.map(({ id, domain }) => (
                <option key={id} value={id}>
                  {inOneLine(domain)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Recipients problem={ofPattern} before={null} />
      </div>
    </details>
  );
}

function Recipients({ problem, before }: { problem: string | undefined; before: string | null }) {
  return (
    <Field
      label="Recipients"
      help="A pattern for the whole address, such as *@example.com, or re: and a regular expression. Empty: all."
      problem={problem}
    >
      {(bound) => (
        <input
          {...bound}
          name="match_pattern"
          defaultValue={before ?? ""}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
        />
      )}
    </Field>
  );
}
