// Adding an address that shall get no mail: for every mail, or for that of one domain.
import { useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { domains } from "../api/queries.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { inOneLine } from "../lib/domain-names.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";

type Given = { open: boolean; close: () => void };

export function AddSuppression({ open, close }: Given) {
  return (
    <Dialog title="Add an address" open={open} close={close}>
      <Form close={close} />
    </Dialog>
  );
}

function Form({ close }: Pick<Given, "close">) {
  const owned = useQuery(domains).data?.domains ?? [];
  const adding = useAct({
    run: (body: Schemas["AddSuppressionRequest"]) => take(v1.POST("/v1/suppressions", { body })),
    refresh: [["suppressions"]],
    done: (_out, { email }) => {
      close();
      return `${email} gets no more mail.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const domain = text("scope");
    const scope = domain === "" ? {} : { scope_type: "domain" as const, scope_id: domain };
    adding.mutate({ email: text("email"), ...(text("note") === "" ? {} : { note: text("note") }), ...scope });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="Address" problem={fieldProblem(adding.error, "email")}>
        {(bound) => <input {...bound} name="email" type="email" autoComplete="off" required />}
      </Field>
      <Field label="What it covers" problem={fieldProblem(adding.error, "scope_id")}>
        {(bound) => (
          <select {...bound} name="scope">
            <option value="">Every mail</option>
            {owned.map(({ id, domain }) => (
              <option key={id} value={id}>
                Mail from {inOneLine(domain)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Note" help="For your team: who asked, and when" problem={fieldProblem(adding.error, "note")}>
        {(bound) => <input {...bound} name="note" autoComplete="off" />}
      </Field>
      <DialogActs close={close} act="Add" busy={adding.isPending && "Adding…"} />
    </form>
  );
}
