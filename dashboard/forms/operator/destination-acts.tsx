// What an operator orders for the mail to one destination. A drop names how many deliveries it ends, and ends no others.
import { type FormEvent, useState } from "react";
import { type PeopleSchemas, people, take } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { sayCount } from "../../lib/times.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Destination = PeopleSchemas["QueuedDestinationView"];
const REFRESH = [["operator", "queue"]] as const;
const DELIVERIES = { one: "delivery", many: "deliveries" };

export function DestinationActs({ destination }: { destination: Destination }) {
  return destination.suspended_at === null ? <Running {...destination} /> : <Waiting destination={destination} />;
}

function Running({ domain, waiting }: Destination) {
  const [isAsked, ask] = useState(false);
  const retry = useAct({
    run: () => take(people.POST("/dashboard/api/operator/queue/{domain}/retry", { params: { path: { domain } } })),
    refresh: REFRESH,
    done: ({ hastened, more }) =>
      more
        ? `${sayCount(hastened, DELIVERIES)} are due now. There are more: retry again.`
        : `${sayCount(hastened, DELIVERIES)} became due, and servers that rest are called again.`,
  });
  return (
    <>
      <Button disabled={waiting === 0} busy={retry.isPending && "One moment…"} onClick={() => retry.mutate(undefined)}>
        Retry now
      </Button>
      <Button onClick={() => ask(true)}>Suspend</Button>
      <Dialog title={`Let mail to ${domain} wait?`} open={isAsked} close={() => ask(false)}>
        <Suspend domain={domain} close={() => ask(false)} />
      </Dialog>
    </>
  );
}

function Suspend({ domain, close }: { domain: string; close: () => void }) {
  const suspend = useAct({
    run: (note: string) =>
      take(
        people.POST("/dashboard/api/operator/queue/{domain}/suspend", {
          params: { path: { domain } },
          body: { note: note === "" ? null : note },
        }),
      ),
    refresh: REFRESH,
    done: () => {
      close();
      return `Mail to ${domain} waits.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    suspend.mutate(String(new FormData(event.currentTarget).get("note") ?? "").trim());
  };
  return (
    <form onSubmit={submit} className="form" noValidate>
      <p>Within seconds, sending to it stops for every organization. New mail is accepted and waits too.</p>
      <Field label="Why" problem={fieldProblem(suspend.error, "note")} help="For other operators; may stay empty.">
        {(bound) => <input {...bound} name="note" maxLength={300} autoComplete="off" />}
      </Field>
      <DialogActs close={close} act="Suspend it" busy={suspend.isPending && "One moment…"} />
    </form>
  );
}

function Waiting({ destination }: { destination: Destination }) {
  const { domain, waiting, is_dropping } = destination;
  /** What the question counted: mail that came later stays. */
  const [counted, count] = useState<{ waiting: number; read_at: string } | null>(null);
  const params = { path: { domain } };
  const resume = useAct({
    run: () => take(people.POST("/dashboard/api/operator/queue/{domain}/resume", { params })),
    refresh: REFRESH,
    done: () => `Mail to ${domain} leaves again.`,
  });
  const drop = useAct({
    run: (accepted_before: string) =>
      take(people.POST("/dashboard/api/operator/queue/{domain}/drop", { params, body: { accepted_before } })),
    refresh: REFRESH,
    done: () => {
      count(null);
      return undefined;
    },
  });
  const named = sayCount(counted?.waiting ?? 0, DELIVERIES);
  return (
    <>
      <Button look="danger" disabled={waiting === 0 || is_dropping} onClick={() => count(destination)}>
        Drop
      </Button>
      <Button look="primary" busy={resume.isPending && "One moment…"} onClick={() => resume.mutate(undefined)}>
        Resume
      </Button>
      <Confirm
        title={`Give up ${named} to ${domain}?`}
        act={`Drop ${named}`}
        open={counted !== null}
        busy={drop.isPending}
        close={() => count(null)}
        confirm={() => counted && drop.mutate(counted.read_at)}
      >
        None of these deliveries is sent. Each recipient becomes failed, and its sender gets the event email.bounced.
        This cannot be undone; senders may send their mail again. Mail accepted after this was counted stays.
      </Confirm>
    </>
  );
}
