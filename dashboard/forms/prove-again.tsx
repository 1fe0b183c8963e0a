// Showing the password again before what is dangerous.
import { useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { Declined, door, take } from "../api/client.ts";
import { type Session, session } from "../api/people.ts";
import { askPerson } from "../lib/asked.ts";
import { useAttempt } from "../lib/attempt.ts";
import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { Field } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";

type Given = { person: Session["person"]; proved: () => void; close: () => void };

export function ProveAgain({ person, proved, close }: Given) {
  const queries = useQueryClient();
  const { attempt, isBusy, error } = useAttempt(async (body: { password: string; code?: string }) => {
    try {
      queries.setQueryData(session.queryKey, await take(door.POST("/dashboard/api/proof", { body })));
      proved();
    } catch (declined) {
      if (!isEnded(declined)) throw declined;
      void askPerson("sign-in");
    }
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const code = person.has_totp ? { code: String(form.get("code") ?? "").trim() } : {};
    attempt({ password: String(form.get("password") ?? ""), ...code });
  };
  return (
    <form onSubmit={submit} className="form mt-3" noValidate>
      <p>This cannot be undone easily, so we make sure that it is you.</p>
      <input type="hidden" name="email" autoComplete="username" value={person.email} readOnly />
      <Field label={`Password of ${person.email}`}>
        {(bound) => (
          <input
            {...bound}
            name="password"
            type="password"
            autoComplete="current-password"
            // biome-ignore lint/a11y/noAutofocus: it is what the question is about
            autoFocus
          />
        )}
      </Field>
      {person.has_totp && <CodeField />}
      <Problem error={error} />
      <div className="acts">
        <Button onClick={close}>Not now</Button>
        <Button look="primary" type="submit" busy={isBusy && "One moment…"}>
          Go on
        </Button>
      </div>
    </form>
  );
}

function isEnded(error: unknown): boolean {
  return error instanceof Declined && error.body.code === "not_signed_in";
}
