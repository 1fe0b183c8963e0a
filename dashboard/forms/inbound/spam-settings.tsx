// The settings on spam of one domain, with a scale of what happens at which score.
import { useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { domainSpam } from "../../api/inbound-queries.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Loaded } from "../../ui/states.tsx";

type Spam = Schemas["DomainSpam"];

export function SpamSettings({ domainId }: { domainId: string }) {
  const query = useQuery(domainSpam(domainId));
  return (
    <div className="panel">
      <Loaded of={query}>{(spam) => <Form key={spam.updated_at} spam={spam as Spam} />}</Loaded>
    </div>
  );
}

const THRESHOLDS = [
  ["tag", "Mark from", "X-Spam fields on copies, and in the event"],
  ["quarantine", "Keep in quarantine from", "Nothing is done until somebody releases it"],
  ["reject", "Refuse from", "The sender's server gets a 550"],
] as const;
const ENGINES = { builtin: "Postern's own spam filter", rspamd: "Rspamd" };
const DMARC_ACTIONS = ["none", "tag", "quarantine", "reject"] as const;
const DMARC_WORDS = { none: "nothing", tag: "mark it", quarantine: "keep it in quarantine", reject: "refuse it" };

function Form({ spam }: { spam: Spam }) {
  const saving = useAct({
    run: (body: Schemas["UpdateDomainSpamRequest"]) =>
      take(v1.PUT("/v1/domains/{id}/spam", { params: { path: { id: spam.domain_id } }, body })),
    refresh: [["domain", spam.domain_id, "spam"]],
    done: () => "The spam settings are saved.",
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    saving.mutate(readForm(new FormData(event.currentTarget)));
  };
  return (
    <form onSubmit={submit} className="pad grid gap-5" noValidate>
      <label className="flex items-center gap-2">
        <input type="checkbox" name="enabled" defaultChecked={spam.enabled} />
        Check mail to {spam.domain} for spam
      </label>
      <div className="grid gap-4 sm:grid-cols-3">
        {THRESHOLDS.map(([name, label, help]) => (
          <Field key={name} label={label} help={help} problem={fieldProblem(saving.error, `thresholds.${name}`)}>
            {(bound) => (
              <input
                {...bound}
                name={name}
                type="number"
                step="0.1"
                min="0"
                placeholder="never"
                defaultValue={spam.thresholds[name] ?? ""}
              />
            )}
          </Field>
        ))}
      </div>
      <div className="grid gap-4 sm:grid-cols-3">
        <DmarcField
          name="dmarc_reject"
          label="Fails DMARC, its domain asks to refuse"
          value={spam.dmarc_action.reject}
        />
        <DmarcField
          name="dmarc_quarantine"
          label="Fails DMARC, its domain asks for quarantine"
          value={spam.dmarc_action.quarantine}
        />
        <Field label="If the check fails" help="Such as when the spam filter does not answer">
          {(bound) => (
            <select {...bound} name="on_error" defaultValue={spam.on_error}>
              <option value="accept">take the mail</option>
              <option value="defer">let the sender try again</option>
            </select>
          )}
        </Field>
      </div>
      <div className="grid gap-4 sm:grid-cols-2">
        <List name="allow" label="Never spam" spam={spam} problem={fieldProblem(saving.error, "allow")} />
        <List name="block" label="Always refused" spam={spam} problem={fieldProblem(saving.error, "block")} />
      </div>
      <div className="acts mt-0!">
        <Button changes look="primary" type="submit" busy={saving.isPending && "Saving…"}>
          Save
        </Button>
        <span className="dim self-center text-[12.5px]">
          Checked by {ENGINES[spam.engine]}
          {!spam.engine_chosen && ", this server's default"}
        </span>
      </div>
    </form>
  );
}

function DmarcField({ name, label, value }: { name: string; label: string; value: keyof typeof DMARC_WORDS }) {
  return (
    <Field label={label}>
      {(bound) => (
        <select {...bound} name={name} defaultValue={value}>
          {DMARC_ACTIONS.map((action) => (
            <option key={action} value={action}>
              {DMARC_WORDS[action]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

type ListGiven = { name: "allow" | "block"; label: string; spam: Spam; problem: string | undefined };

function List({ name, label, spam, problem }: ListGiven) {
  return (
    <Field label={label} help="One a line: an address, a domain, or a pattern with * and ?" problem={problem}>
      {(bound) => <textarea {...bound} name={name} rows={5} spellCheck={false} defaultValue={spam[name].join("\n")} />}
    </Field>
  );
}

function readForm(form: FormData): Schemas["UpdateDomainSpamRequest"] {
  const text = (name: string) => String(form.get(name) ?? "");
  const score = (name: string) => (text(name) === "" ? null : Number(text(name)));
  const lines = (name: string) =>
    text(name)
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  const action = (name: string) => DMARC_ACTIONS.find((one) => one === text(name)) ?? "tag";
  return {
    enabled: form.get("enabled") === "on",
    thresholds: { tag: score("tag"), quarantine: score("quarantine"), reject: score("reject") },
    dmarc_action: { reject: action("dmarc_reject"), quarantine: action("dmarc_quarantine") },
    on_error: text("on_error") === "defer" ? "defer" : "accept",
    allow: lines("allow"),
    block: lines("block"),
  } as Schemas["UpdateDomainSpamRequest"];
}
