// An operator takes a sending address out of use, says why, and gives it back.
import { type FormEvent, useState } from "react";
import { type PeopleSchemas, people, take } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Source = PeopleSchemas["OperatedSource"];
const REFRESH = [["operator", "sources"]] as const;

export function SourceActs({ source }: { source: Source }) {
  const { id, ip, state } = source;
  const [isAsked, ask] = useState(false);
  const back = useAct({
    run: () => take(people.POST("/dashboard/api/operator/sources/{id}/give-back", { params: { path: { id } } })),
    refresh: REFRESH,
    done: () => `Mail leaves from ${ip} again.`,
  });
  if (ip === null || state === "leaving") return null;
  if (state === "out_of_use")
    return (
      <Button
        look="quiet"
        busy={back.isPending && "One moment…"}
        aria-label={`Give back ${ip}`}
        onClick={() => back.mutate(undefined)}
      >
        Give back
      </Button>
    );
  return (
    <>
      <Button look="quiet" aria-label={`Take out ${ip}`} onClick={() => ask(true)}>
        Take out
      </Button>
      <Dialog title={`Take ${ip} out of use?`} open={isAsked} close={() => ask(false)}>
        <Hold id={id} ip={ip} close={() => ask(false)} />
      </Dialog>
    </>
  );
}

function Hold({ id, ip, close }: { id: string; ip: string; close: () => void }) {
  const hold = useAct({
    run: (note: string) =>
      take(
        people.POST("/dashboard/api/operator/sources/{id}/hold", {
          params: { path: { id } },
          body: { note: note === "" ? null : note },
        }),
      ),
    refresh: REFRESH,
    done: () => {
      close();
      return `Nothing leaves from ${ip} any more.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    hold.mutate(String(new FormData(event.currentTarget).get("note") ?? "").trim());
  };
  return (
    <form onSubmit={submit} className="form" noValidate>
      <p>
        Within seconds the mail of its pool leaves from the pool's other addresses. If the pool has no other address,
        its mail is deferred and may expire.
      </p>
      <Field label="Why" problem={fieldProblem(hold.error, "note")} help="For other operators; may stay empty.">
        {(bound) => <input {...bound} name="note" maxLength={300} autoComplete="off" />}
      </Field>
      <DialogActs close={close} act="Take it out" busy={hold.isPending && "One moment…"} />
    </form>
  );
}
