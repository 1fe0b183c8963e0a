// The limits of masked addresses, and what becomes of forged mail.
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";

type Settings = Schemas["MaskedSettings"];
const LIMITS = [
  ["replies_person_hour", "One mailbox, an hour", "Mails that it sends through all its aliases"],
  ["replies_person_day", "One mailbox, a day", "Counted by UTC day"],
  ["replies_hour", "All aliases, an hour", "Mails that leave through the organization's aliases"],
  ["replies_day", "All aliases, a day", "Counted by UTC day"],
  ["aliases_hour", "New aliases, an hour", "More are refused with 429"],
  ["aliases_day", "New aliases, a day", "Counted by UTC day"],
] as const;

export function MaskedSettingsForm({ settings }: { settings: Settings }) {
  const saving = useAct({
    run: (body: Schemas["UpdateMaskedSettingsRequest"]) => take(v1.PUT("/v1/masked/settings", { body })),
    refresh: [["masked", "settings"]],
    done: () => "The settings are saved.",
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const limits = Object.fromEntries(LIMITS.map(([name]) => [name, Number(text(name))]));
    saving.mutate({
      ...limits,
      forged_mail: text("forged_mail") === "warn" ? "warn" : "quarantine",
      mark_unproven: text("mark_unproven") === "always" ? "always" : "asked",
      arc_sealers: text("arc_sealers").split(/\s+/).filter(Boolean),
    });
  };
  const problem = (name: string) => fieldProblem(saving.error, name, saving.variables?.arc_sealers ?? []);
  return (
    <form onSubmit={submit} className="pad grid gap-5" noValidate>
      <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
        {LIMITS.map(([name, label, help]) => (
          <Field key={name} label={label} help={help} problem={problem(name)}>
            {(bound) => <input {...bound} name={name} type="number" min="0" defaultValue={settings[name]} />}
          </Field>
        ))}
      </div>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label="Forged mail"
          help="It fails DMARC at a domain that asks for quarantine"
          problem={problem("forged_mail")}
        >
          {(bound) => (
            <select {...bound} name="forged_mail" defaultValue={settings.forged_mail}>
              <option value="quarantine">Keep it until it is released</option>
              <option value="warn">Forward it with a warning</option>
            </select>
          )}
        </Field>
        <Field
          label="Senders that are not verified"
          help="A mark before their name. Replies do not show it."
          problem={problem("mark_unproven")}
        >
          {(bound) => (
            <select {...bound} name="mark_unproven" defaultValue={settings.mark_unproven}>
              <option value="asked">Marked where their domain asks for it</option>
              <option value="always">Always marked</option>
            </select>
          )}
        </Field>
        <Field
          label="Trusted mailing lists"
          help="Domains whose ARC seals are trusted, one on each line"
          problem={problem("arc_sealers")}
        >
          {(bound) => (
            <textarea
              {...bound}
              name="arc_sealers"
              rows={4}
              spellCheck={false}
              defaultValue={settings.arc_sealers.join("\n")}
            />
          )}
        </Field>
      </div>
      <div className="acts mt-0!">
        <Button changes look="primary" type="submit" busy={saving.isPending && "Saving…"}>
          Save
        </Button>
      </div>
    </form>
  );
}
