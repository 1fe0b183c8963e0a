// Sending again what one endpoint missed in a span of time, or got already.
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { sayCount } from "../lib/times.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";

type Given = { id: string; open: boolean; close: () => void };
const DAY_MS = 86_400_000;

export function ReplaySpan({ id, open, close }: Given) {
  return (
    <Dialog title="Replay a span" open={open} close={close}>
      <Form id={id} close={close} />
    </Dialog>
  );
}

function Form({ id, close }: Omit<Given, "open">) {
  const [done, count] = useState(0);
  const replaying = useAct({
    run: async (body: Schemas["ReplayWebhookRangeRequest"]) => {
      let total = 0;
      // A call takes a part of a long span; all of them mean the same span.
      for (const to = body.to ?? new Date().toISOString(); ; ) {
        const { replayed, remaining } = await take(
          v1.POST("/v1/webhooks/{id}/replay", { params: { path: { id } }, body: { ...body, to } }),
        );
        total += replayed;
        count(total);
        if (remaining === 0 || replayed === 0) return total;
      }
    },
    refresh: [["webhooks"]],
    done: (total) => {
      close();
      return total === 0
        ? "There was nothing to send again."
        : `Sent again: ${sayCount(total, { one: "delivery", many: "deliveries" })}.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const time = (name: string) => {
      const text = String(form.get(name) ?? "");
      return text === "" ? null : new Date(text).toISOString();
    };
    const status = form.get("status") === "delivered" ? "delivered" : "failed";
    replaying.mutate({ from: time("from") ?? new Date(Date.now() - DAY_MS).toISOString(), to: time("to"), status });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="From" help="Your local time" problem={fieldProblem(replaying.error, "from")}>
        {(bound) => <input {...bound} name="from" type="datetime-local" defaultValue={toLocal(Date.now() - DAY_MS)} />}
      </Field>
      <Field label="To" help="Empty: now" problem={fieldProblem(replaying.error, "to")}>
        {(bound) => <input {...bound} name="to" type="datetime-local" />}
      </Field>
      <Field
        label="Which"
        help="A receiver recognises repeated events by their event_id"
        problem={fieldProblem(replaying.error, "status")}
      >
        {(bound) => (
          <select {...bound} name="status">
            <option value="failed">What failed</option>
            <option value="delivered">What was delivered, once more</option>
          </select>
        )}
      </Field>
      <DialogActs close={close} act="Send again" busy={replaying.isPending && `${done.toLocaleString("en")} so far…`} />
    </form>
  );
}

/** `2026-11-24T14:00`, in the browser's own time. */
function toLocal(ms: number): string {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
