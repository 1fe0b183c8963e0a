// Making and changing a masked address. What is seldom wanted stands below “More”.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { domains } from "../../api/queries.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { inOneLine } from "../../lib/domain-names.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Alias = Schemas["MaskedAlias"];
type Given = { open: boolean; close: () => void; alias?: Alias };
type Body = Schemas["CreateMaskedAliasRequest"];

export function EditMasked({ open, close, alias }: Given) {
  return (
    <Dialog title={alias?.email ?? "New masked address"} open={open} close={close}>
      <Form close={close} alias={alias} />
    </Dialog>
  );
}

function Form({ close, alias }: Omit<Given, "open">) {
  const navigate = useNavigate();
  const saving = useAct({
    run: (body: Body) =>
      alias === undefined
        ? take(v1.POST("/v1/masked/aliases", { body }))
        : take(
            v1.PUT("/v1/masked/aliases/{id}", {
              params: { path: { id: alias.id } },
              body: body as Schemas["UpdateMaskedAliasRequest"],
            }),
          ),
    refresh: [["masked"]],
    done: ({ alias: { id, email } }) => {
      close();
      if (alias === undefined) void navigate({ to: "/masked/$id", params: { id }, search: {} });
      return `${email} is saved.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    saving.mutate(readForm(new FormData(event.currentTarget), alias === undefined));
  };
  const problem = (name: string) => fieldProblem(saving.error, name, saving.variables?.forward_to);
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      {alias === undefined && <NewAddress problem={problem} />}
      <Field
        label="Forward to"
        help="Real mailboxes, with commas. Each owner confirms by a link before mail comes."
        problem={problem("forward_to")}
      >
        {(bound) => (
          <input {...bound} name="forward_to" defaultValue={alias?.forward_to.join(", ")} autoComplete="off" />
        )}
      </Field>
      <Field label="Note" help="For your team, such as the shop it is for" problem={problem("description")}>
        {(bound) => (
          <input {...bound} name="description" defaultValue={alias?.masked_description ?? ""} autoComplete="off" />
        )}
      </Field>
      <details open={alias !== undefined}>
        <summary className="text-[13px] text-ink-2">More</summary>
        <More alias={alias} problem={problem} />
      </details>
      <DialogActs close={close} act={alias === undefined ? "Make it" : "Save"} busy={saving.isPending && "Saving…"} />
    </form>
  );
}

type Problem = { problem: (name: string) => string | undefined };

function NewAddress({ problem }: Problem) {
  const owned = useQuery(domains).data?.domains ?? [];
  const receiving = owned.filter(({ type, verified }) => type !== "outbound" && verified);
  return (
    <div className="grid grid-cols-2 gap-2">
      <Field label="Before the @" help="Empty: a random name" problem={problem("local_part")}>
        {(bound) => <input {...bound} name="local_part" autoComplete="off" autoCapitalize="none" spellCheck={false} />}
      </Field>
      <Field label="Domain" problem={problem("domain_id")}>
        {(bound) => (
          <select {...bound} name="domain_id">
            <option value="">of this service</option>
            {receiving.map(({ id, domain }) => (
              <option key={id} value={id}>
                {inOneLine(domain)}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}

const CHOICES = {
  on_disabled: ["While it is off", { drop: "Take mail and drop it", reject: "Refuse mail with 550" }],
  redact: ["Replies hide the real address", { all: "Everywhere", quoted: "In quoted text", off: "Not in bodies" }],
  unopened_files: [
    "Replies with files that cannot be checked",
    { hold: "Hold them", send: "Send them, and say so to the author" },
  ],
  list_unsubscribe: [
    "Unsubscribing in a forward",
    { original: "As its author set it", disable_alias: "Switches the alias off", block_sender: "Blocks the author" },
  ],
  tracking_pixels: ["Tracking pictures", { leave: "Leave them", cut: "Cut them out" }],
} as const satisfies Partial<Record<keyof Body, readonly [string, Record<string, string>]>>;

function More({ alias, problem }: { alias: Alias | undefined } & Problem) {
  return (
    <div className="mt-3 grid gap-4">
      <Field label="Name in replies" help="What recipients see beside the address" problem={problem("display_name")}>
        {(bound) => (
          <input {...bound} name="display_name" defaultValue={alias?.display_name ?? ""} autoComplete="off" />
        )}
      </Field>
      {Object.entries(CHOICES).map(([name, [label, words]]) => (
        <Field key={name} label={label} problem={problem(name)}>
          {(bound) => (
            <select {...bound} name={name} defaultValue={alias?.[name as keyof typeof CHOICES]}>
              {Object.entries(words).map(([value, word]) => (
                <option key={value} value={value}>
                  {word}
                </option>
              ))}
            </select>
          )}
        </Field>
      ))}
      <label className="flex items-center gap-2">
        <input type="checkbox" name="reply_enabled" defaultChecked={alias?.reply_enabled ?? true} />
        Mail can be sent from it
      </label>
    </div>
  );
}

function readForm(form: FormData, isNew: boolean): Body {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const chosen = Object.fromEntries(Object.keys(CHOICES).map((name) => [name, text(name)]));
  const address = { local_part: text("local_part") || null, domain_id: text("domain_id") || null };
  return {
    forward_to: text("forward_to")
      .split(/[\s,;]+/)
      .filter(Boolean),
    ...(isNew ? address : {}),
    ...{ description: text("description") || null, display_name: text("display_name") || null },
    ...chosen,
    reply_enabled: form.get("reply_enabled") === "on",
  };
}
