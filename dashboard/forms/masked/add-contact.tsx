// A contact to write to first: the answer is its reply address.
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Given = { id: string; open: boolean; close: () => void };

export function AddContact({ id, open, close }: Given) {
  return (
    <Dialog title="Add a contact" open={open} close={close}>
      <Form id={id} close={close} />
    </Dialog>
  );
}

function Form({ id, close }: Omit<Given, "open">) {
  const adding = useAct({
    run: (body: Schemas["CreateMaskedContactRequest"]) =>
      take(v1.POST("/v1/masked/aliases/{id}/contacts", { params: { path: { id } }, body })),
    refresh: [["masked", "alias", id]],
    done: ({ contact: { email } }) => {
      close();
      return `Mail to the reply address reaches ${email}.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    adding.mutate({ email: text("email"), name: text("name") || null });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="Address" help="Whom you want to write to" problem={fieldProblem(adding.error, "email")}>
        {(bound) => <input {...bound} name="email" type="email" autoComplete="off" />}
      </Field>
      <Field label="Name" problem={fieldProblem(adding.error, "name")}>
        {(bound) => <input {...bound} name="name" autoComplete="off" />}
      </Field>
      <DialogActs close={close} act="Add" busy={adding.isPending && "Adding…"} />
    </form>
  );
}
