// A real mailbox: its owner gets a link, and mail comes once it is used.
import type { FormEvent } from "react";
import { take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Given = { open: boolean; close: () => void };

export function AddDestination({ open, close }: Given) {
  return (
    <Dialog title="Add a mailbox" open={open} close={close}>
      <Form close={close} />
    </Dialog>
  );
}

function Form({ close }: Pick<Given, "close">) {
  const adding = useAct({
    run: (email: string) => take(v1.POST("/v1/masked/destinations", { body: { email } })),
    refresh: [["masked", "destinations"]],
    done: ({ destination: { email, status, confirmation_sent_at } }) => {
      close();
      if (status === "verified") return `${email} is confirmed already.`;
      return confirmation_sent_at === null
        ? `${email} is there. Ask for its consent tomorrow.`
        : `A link is mailed to ${email}.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    adding.mutate(String(new FormData(event.currentTarget).get("email") ?? "").trim());
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field
        label="Mailbox"
        help="Its owner gets a link by mail. Nothing is forwarded before it is used."
        problem={fieldProblem(adding.error, "email")}
      >
        {(bound) => <input {...bound} name="email" type="email" autoComplete="off" />}
      </Field>
      <DialogActs close={close} act="Add" busy={adding.isPending && "Adding…"} />
    </form>
  );
}
