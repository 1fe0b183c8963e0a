// Showing the password again before what is dangerous.
import { useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { Declined, door, take } from "../api/client.ts";
import { type Session, session } from "../api/people.ts";
import { askPerson } from "../lib/asked.ts";
import { useAttempt } from "../lib/attempt.ts";
import { showPasskey } from "../lib/passkeys.ts";
import { CodeField } from "../ui/code-field.tsx";
import { DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { PasskeyButton } from "../ui/passkey-button.tsx";
import { Problem } from "../ui/problem.tsx";
import { ProviderLink } from "../ui/provider-link.tsx";

type Given = { person: Session["person"]; proved: () => void; close: () => void };

export function ProveAgain({ person, proved, close }: Given) {
  const queries = useQueryClient();
  const show = async (shown: Promise<Session>) => {
    try {
      queries.setQueryData(session.queryKey, await shown);
      proved();
    } catch (declined) {
      if (!isEnded(declined)) throw declined;
      void askPerson("sign-in");
    }
  };
  const { attempt, isBusy, error } = useAttempt((body: { password: string; code?: string }) =>
    show(take(door.POST("/dashboard/api/proof", { body }))),
  );
  const withPasskey = useAttempt(async () => {
    const passkey = await showPasskey();
    await show(take(door.POST("/dashboard/api/proof/passkey", { body: { passkey } })));
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
      {person.has_password && (
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
      )}
      {person.has_password && person.has_totp && <CodeField />}
      <Problem error={error ?? withPasskey.error} />
      <DialogActs
        close={close}
        leave="Not now"
        act={person.has_password ? "Go on" : undefined}
        busy={isBusy && "One moment…"}
      >
        {person.has_passkey && (
          <PasskeyButton label="Use a passkey" isBusy={withPasskey.isBusy} use={() => withPasskey.attempt(undefined)} />
        )}
        {person.has_provider && (
          <ProviderLink to={location.pathname + location.search} say={(name) => `Sign in with ${name} again`} proves />
        )}
      </DialogActs>
    </form>
  );
}

function isEnded(error: unknown): boolean {
  return error instanceof Declined && error.body.code === "not_signed_in";
}
