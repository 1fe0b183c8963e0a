// Adding a domain: its name and what it is for. The records to publish are on the page that comes next.
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { TYPES, USES } from "../lib/domain-types.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";

type Given = { open: boolean; close: () => void; added: (id: string) => void };

export function AddDomain({ open, close, added }: Given) {
  return (
    <Dialog title="Add a domain" open={open} close={close}>
      <Form close={close} added={added} />
    </Dialog>
  );
}

function Form({ close, added }: Omit<Given, "open">) {
  const adding = useAct({
    run: (body: Schemas["CreateDomainRequest"]) => take(v1.POST("/v1/domains", { body })),
    refresh: [["domains"]],
    done: ({ id, domain }) => {
      close();
      added(id);
      return `${domain} is added. Publish its records next.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const type = form.get("type") as Schemas["DomainType"];
    // The choice below says what publishing the MX record does: whoever makes it knows.
    const knows = type === "outbound" ? {} : { inbound_mx_acknowledged: true };
    adding.mutate({ domain: String(form.get("domain") ?? "").trim(), type, ...knows });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field
        label="Domain"
        help="A subdomain such as mail.example.com keeps its reputation apart from that of your other mail."
        problem={fieldProblem(adding.error, "domain")}
      >
        {(bound) => <input {...bound} name="domain" autoComplete="off" autoCapitalize="none" spellCheck={false} />}
      </Field>
      <Field
        label="What it is for"
        help="Receiving means: once you publish our MX record, all mail to this domain comes here, and no longer to where it goes today."
        problem={fieldProblem(adding.error, "type") ?? fieldProblem(adding.error, "inbound_mx_acknowledged")}
      >
        {(bound) => (
          <select {...bound} name="type" defaultValue="outbound">
            {TYPES.map((type) => (
              <option key={type} value={type}>
                {USES[type]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <DialogActs close={close} act="Add" busy={adding.isPending && "Adding…"} />
    </form>
  );
}
