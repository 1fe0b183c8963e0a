// What is done with mail: the fields that aliases and rules share.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { webhooks } from "../../api/queries.ts";
import { fieldProblem } from "../../lib/act.ts";
import { ACTION_WORDS, ACTIONS, type Action } from "../../lib/inbound-filters.ts";
import { Field } from "../../ui/field.tsx";

export type MailActionFields = { action: Action; forward_to: string[]; webhook_ids: string[] };

const HELP: Record<Action, string> = {
  webhook: "An event goes to the endpoints chosen below, or to those of the domain when none is chosen.",
  forward: "A copy goes to each address below.",
  store: "It is kept and listed here; nobody is notified.",
  drop: "It is accepted and put aside; nobody is notified.",
};

/** Reads what the fields below hold. */
export function readMailAction(form: FormData): MailActionFields {
  const action = (ACTIONS.find((one) => one === form.get("action")) ?? "store") as Action;
  const addresses = String(form.get("forward_to") ?? "").split(/[\s,;]+/);
  return {
    action,
    forward_to: action === "forward" ? addresses.filter(Boolean) : [],
    webhook_ids: action === "webhook" ? form.getAll("webhook_ids").map(String) : [],
  };
}

type Sent = { forward_to?: readonly string[] | null | undefined };
type Given = { before?: MailActionFields; error: unknown; sent: Sent | undefined };

/** `sent`: what the error is about. */
export function MailAction({ before, error, sent }: Given) {
  const [action, choose] = useState<Action>(before?.action ?? "webhook");
  return (
    <>
      <Field label="What is done with it" help={HELP[action]} problem={fieldProblem(error, "action")}>
        {(bound) => (
          <select {...bound} name="action" value={action} onChange={(event) => choose(event.target.value as Action)}>
            {ACTIONS.map((one) => (
              <option key={one} value={one}>
                {ACTION_WORDS[one]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {action === "forward" && (
        <Field
          label="Forward to"
          help="At most ten addresses"
          problem={fieldProblem(error, "forward_to", sent?.forward_to ?? [])}
        >
          {(bound) => (
            <input {...bound} name="forward_to" defaultValue={before?.forward_to.join(", ")} autoComplete="off" />
          )}
        </Field>
      )}
      {action === "webhook" && (
        <Endpoints chosen={before?.webhook_ids ?? []} problem={fieldProblem(error, "webhook_ids")} />
      )}
    </>
  );
}

function Endpoints({ chosen, problem }: { chosen: string[]; problem: string | undefined }) {
  const list =
    useQuery(webhooks).data?.webhooks.filter(({ event_types }) => event_types.includes("email.received")) ?? [];
  return (
    <fieldset className="grid gap-1">
      <legend className="mb-1 text-[12.5px] text-ink-2">Endpoints</legend>
      {list.length === 0 && <p className="dim text-[12.5px]">No endpoint listens to email.received yet.</p>}
      {list.map(({ id, webhook_url }) => (
        <label key={id} className="flex min-w-0 items-center gap-2">
          <input type="checkbox" name="webhook_ids" value={id} defaultChecked={chosen.includes(id)} />
          <span className="truncate">{webhook_url}</span>
        </label>
      ))}
      {problem && <span className="text-[12.5px] text-bad">{problem}</span>}
    </fieldset>
  );
}
