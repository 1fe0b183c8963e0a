// Making a template: its name; the editor opens with a small beginning.
import { useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Given = { open: boolean; close: () => void };
const BEGINNING = '<h1>Hello {{default name "there"}},</h1>\n<p>Write your mail here.</p>\n';

export function NewTemplate({ open, close }: Given) {
  return (
    <Dialog title="New template" open={open} close={close}>
      <Form close={close} />
    </Dialog>
  );
}

function Form({ close }: Pick<Given, "close">) {
  const navigate = useNavigate();
  const making = useAct({
    run: (body: Schemas["CreateTemplateRequest"]) => take(v1.POST("/v1/templates", { body })),
    refresh: [["templates"]],
    done: ({ template: { id } }) => {
      close();
      void navigate({ to: "/templates/$id", params: { id }, search: {} });
      return undefined;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const slug = text("slug") === "" ? {} : { slug: text("slug") };
    making.mutate({ name: text("name"), subject: text("subject"), html_body: BEGINNING, ...slug });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field
        label="Name"
        help="For your team, such as “Order confirmation”"
        problem={fieldProblem(making.error, "name")}
      >
        {(bound) => <input {...bound} name="name" autoComplete="off" />}
      </Field>
      <Field label="Subject" help="It may hold variables" problem={fieldProblem(making.error, "subject")}>
        {(bound) => <input {...bound} name="subject" autoComplete="off" />}
      </Field>
      <Field
        label="Slug"
        help="The name that programs send it by. Made from the name when empty"
        problem={fieldProblem(making.error, "slug")}
      >
        {(bound) => <input {...bound} name="slug" autoComplete="off" autoCapitalize="none" spellCheck={false} />}
      </Field>
      <DialogActs close={close} act="Make it" busy={making.isPending && "Making…"} />
    </form>
  );
}
