// One's passkeys: adding, naming, removing.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type PeopleSchemas, people, take } from "../api/client.ts";
import { passkeys, session } from "../api/people.ts";
import { useAct } from "../lib/act.ts";
import { useAttempt } from "../lib/attempt.ts";
import { sayBrowser } from "../lib/browsers.ts";
import { canUsePasskeys, makePasskey } from "../lib/passkeys.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { Field } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";
import { Loaded } from "../ui/states.tsx";
import { toast } from "../ui/toast.tsx";
import { When } from "../ui/when.tsx";

type Passkey = PeopleSchemas["Passkey"];

export function Passkeys() {
  const list = useQuery(passkeys);
  const [leaving, remove] = useState<Passkey | null>(null);
  const removing = useAct({
    run: ({ id }: Passkey) => take(people.DELETE("/dashboard/api/person/passkeys/{id}", { params: { path: { id } } })),
    refresh: [["passkeys"], ["session"]],
    done: (_out, { name }) => `“${name}” lets nobody in any more.`,
  });
  return (
    <div className="grid gap-3">
      <Loaded of={list} rows={1}>
        {({ passkeys: known }) => (
          <ul className="grid gap-1">
            {known.map((passkey) => (
              <li key={passkey.id} className="flex items-center justify-between gap-2">
                <span className="min-w-0 truncate">
                  {passkey.name}
                  <span className="dim">
                    {" · "}
                    {passkey.used_at === null ? "never used" : <When at={passkey.used_at} as="relative" />}
                  </span>
                </span>
                <Button look="quiet" aria-label={`Remove the passkey ${passkey.name}`} onClick={() => remove(passkey)}>
                  Remove
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {canUsePasskeys() ? <Add /> : <p className="dim">Passkeys need this page to be opened by a name, over https.</p>}
      <Confirm
        title={`Remove the passkey “${leaving?.name}”?`}
        act="Remove the passkey"
        open={leaving !== null}
        busy={removing.isPending}
        close={() => remove(null)}
        confirm={() => leaving && removing.mutate(leaving, { onSettled: () => remove(null) })}
      >
        It lets nobody in any more. Remove it from your device or password manager as well.
      </Confirm>
    </div>
  );
}

function Add() {
  const queries = useQueryClient();
  const { attempt, isBusy, error } = useAttempt(async (name: string) => {
    const { options } = await take(people.POST("/dashboard/api/person/passkeys/options"));
    const passkey = await makePasskey(options);
    await take(people.POST("/dashboard/api/person/passkeys", { body: { passkey, name } }));
    toast(`The passkey “${name}” is added.`);
    await Promise.all([passkeys, session].map(({ queryKey }) => queries.invalidateQueries({ queryKey })));
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt(
      String(new FormData(event.currentTarget).get("passkey_name") ?? "").trim() || sayBrowser(navigator.userAgent),
    );
  };
  return (
    <form onSubmit={submit} className="grid gap-3" noValidate>
      <div className="beside">
        <Field label="Name of a new passkey" help="Where it is kept, such as “laptop”">
          {(bound) => (
            <input
              {...bound}
              name="passkey_name"
              autoComplete="off"
              maxLength={60}
              defaultValue={sayBrowser(navigator.userAgent)}
            />
          )}
        </Field>
        <Button type="submit" busy={isBusy && "Waiting…"}>
          Add a passkey
        </Button>
      </div>
      <Problem error={error} />
    </form>
  );
}
