// A pattern of a mailbox: the first mail to an address that matches makes the alias.
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Given = { id: string; open: boolean; close: () => void };

export function AddPattern({ id, open, close }: Given) {
  return (
    <Dialog title="Add a pattern" open={open} close={close}>
      <Form id={id} close={close} />
    </Dialog>
  );
}

function Form({ id, close }: Omit<Given, "open">) {
  const adding = useAct({
    run: (body: Schemas["CreateMaskedPatternRequest"]) =>
      take(v1.POST("/v1/masked/destinations/{id}/patterns", { params: { path: { id } }, body })),
    refresh: [["masked", "destinations", "of", id]],
    done: ({ pattern: { pattern } }) => {
      close();
      return `Mail to ${pattern} makes aliases from now on.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const limit = (name: string) => (text(name) === "" ? {} : { [name]: Number(text(name)) });
    adding.mutate({ pattern: text("pattern"), ...limit("aliases_hour"), ...limit("aliases_day") });
  };
  const problem = (name: string) => fieldProblem(adding.error, name);
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field
        label="Pattern"
        help="With one *, at a verified domain of yours: *.lena@own.example, lena-*@own.example, or *@own.example for all of it"
        problem={problem("pattern")}
      >
        {(bound) => <input {...bound} name="pattern" autoComplete="off" autoCapitalize="none" spellCheck={false} />}
      </Field>
      <div className="grid grid-cols-2 gap-2">
        <Field label="New aliases, an hour" problem={problem("aliases_hour")}>
          {(bound) => <input {...bound} name="aliases_hour" type="number" min="1" max="1000" placeholder="20" />}
        </Field>
        <Field label="New aliases, a day" problem={problem("aliases_day")}>
          {(bound) => <input {...bound} name="aliases_day" type="number" min="1" max="10000" placeholder="60" />}
        </Field>
      </div>
      <p className="dim text-[12.5px]">Above a limit, mail is deferred, and the mailbox gets a notice.</p>
      <DialogActs close={close} className="acts mt-0!" act="Add" busy={adding.isPending && "Adding…"} />
    </form>
  );
}
