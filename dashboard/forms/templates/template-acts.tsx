// What can be done with a template: send what is shown, change its name, slug and state, delete it, save.
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { SendOne } from "../send-one.tsx";

type Template = Schemas["Template"];
type Given = {
  template: Template;
  /** As a recipient would get it; null: it cannot be rendered. */
  preview: Schemas["TemplatePreview"] | null;
};

export function TemplateActs({ template, preview }: Given) {
  const [asked, ask] = useState<"settings" | "send" | "delete" | null>(null);
  const navigate = useNavigate();
  const close = () => ask(null);
  const removing = useAct({
    run: () => take(v1.DELETE("/v1/templates/{id}", { params: { path: { id: template.id } } })),
    refresh: [["templates"]],
    done: () => {
      void navigate({ to: "/templates", search: {} });
      return `${template.name} is deleted.`;
    },
  });
  return (
    <>
      <Button look="quiet" onClick={() => ask("delete")}>
        Delete
      </Button>
      <Button onClick={() => ask("settings")}>Settings</Button>
      <Button disabled={preview === null} onClick={() => ask("send")}>
        Send a test
      </Button>
      <Dialog title="Settings of the template" open={asked === "settings"} close={close}>
        <Settings template={template} close={close} />
      </Dialog>
      <SendOne
        title="Send what is shown"
        open={asked === "send"}
        close={close}
        content={preview && { subject: preview.subject, html_body: preview.html_body, text_body: preview.text_body }}
      />
      <Confirm
        title={`Delete ${template.name}?`}
        act="Delete the template"
        open={asked === "delete"}
        busy={removing.isPending}
        close={close}
        confirm={() => removing.mutate(undefined, { onSettled: close })}
      >
        Programs that send it get an error from then on. Mail that was accepted with it is sent all the same.
      </Confirm>
    </>
  );
}

function Settings({ template, close }: { template: Template; close: () => void }) {
  const saving = useAct({
    run: (body: Schemas["UpdateTemplateRequest"]) =>
      take(v1.PUT("/v1/templates/{id}", { params: { path: { id: template.id } }, body })),
    refresh: [["templates"]],
    done: ({ template: { name } }) => {
      close();
      return `${name} is saved.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    saving.mutate({
      ...{ name: text("name"), slug: text("slug"), active: form.get("active") === "on" },
      description: text("description") || null,
    });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="Name" problem={fieldProblem(saving.error, "name")}>
        {(bound) => <input {...bound} name="name" defaultValue={template.name} autoComplete="off" />}
      </Field>
      <Field
        label="Slug"
        help="Programs that use the old one get an error"
        problem={fieldProblem(saving.error, "slug")}
      >
        {(bound) => <input {...bound} name="slug" defaultValue={template.slug} autoComplete="off" spellCheck={false} />}
      </Field>
      <Field label="Note" help="For your team" problem={fieldProblem(saving.error, "description")}>
        {(bound) => (
          <input {...bound} name="description" defaultValue={template.description ?? ""} autoComplete="off" />
        )}
      </Field>
      <label className="flex items-center gap-2">
        <input type="checkbox" name="active" defaultChecked={template.active} />
        It can be sent
      </label>
      <DialogActs close={close} act="Save" busy={saving.isPending && "Saving…"} />
    </form>
  );
}
