// Adding an endpoint. Its secret is shown once, here: it goes into no cache and no address.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { domains } from "../api/queries.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { EVENTS } from "../lib/list-filters.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { SecretOnce } from "../ui/secret-once.tsx";

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
    const events = EVENTS.filter((name) => form.has(name));
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const domain_id = text("domain_id") || null;
    adding.mutate({ url: text("url"), events, domain_id, match_pattern: text("match_pattern") || null });
  };
  const problem = fieldProblem(adding.error, "events");
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="Address" help="HTTPS, reachable from the internet" problem={fieldProblem(adding.error, "url")}>
        {(bound) => <input {...bound} name="url" type="url" autoComplete="off" placeholder="https://" />}
      </Field>
      <fieldset className="grid gap-1">
        <legend className="mb-1 text-[12.5px] text-ink-2">Events</legend>
        {EVENTS.map((name) => (
          <label key={name} className="flex items-center gap-2">
            <input type="checkbox" name={name} defaultChecked={name !== "email.received"} />
            {name}
          </label>
        ))}
        {problem && <span className="text-[12.5px] text-bad">{problem}</span>}
      </fieldset>
      <OnlySome error={adding.error} />
      <div className="acts">
        <Button onClick={close}>Close</Button>
        <Button look="primary" type="submit" busy={adding.isPending && "Adding…"}>
          Add
        </Button>
      </div>
    </form>
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
                  {domain}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label="Recipients"
          help="A pattern for the whole address, such as *@example.com, or re: and a regular expression. Empty: all."
          problem={ofPattern}
        >
          {(bound) => (
            <input {...bound} name="match_pattern" autoComplete="off" autoCapitalize="none" spellCheck={false} />
          )}
        </Field>
      </div>
    </details>
  );
}
