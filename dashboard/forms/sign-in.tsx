// Signing in: the password first, then a code where the person has a second factor. The password lives here alone.
import { type FormEvent, useState } from "react";
import { Declined, door, take } from "../api/client.ts";
import type { Session } from "../api/people.ts";
import { useAttempt } from "../lib/attempt.ts";
import { showPasskey } from "../lib/passkeys.ts";
import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { Field } from "../ui/field.tsx";
import { PasskeyButton } from "../ui/passkey-button.tsx";
import { Problem } from "../ui/problem.tsx";

type Proof = { email: string; password: string };
type Given = {
  signedIn: (session: Session) => void | Promise<void>;
  /** Who it must be; else the form asks. */
  email?: string;
};

export function SignInForm({ signedIn, email }: Given) {
  const [proof, keep] = useState<Proof | null>(null);
  const { attempt, isBusy, error } = useAttempt(async (sent: Proof & { code?: string }) => {
    try {
      await signedIn(await take(door.POST("/dashboard/api/sign-in", { body: sent })));
    } catch (declined) {
      if (!isCodeNeeded(declined)) throw declined;
      keep({ email: sent.email, password: sent.password });
    }
  });
  const withPasskey = useAttempt(async () => {
    const passkey = await showPasskey();
    await signedIn(await take(door.POST("/dashboard/api/passkeys/sign-in", { body: { passkey } })));
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "");
    if (proof !== null) attempt({ ...proof, code: text("code").trim() });
    else attempt({ email: email ?? text("email").trim(), password: text("password") });
  };
  return (
    <form onSubmit={submit} className="form" noValidate>
      {proof === null ? <PasswordFields email={email} /> : <CodeField />}
      <Problem error={error ?? withPasskey.error} />
      <div className="acts">
        <Button look="primary" type="submit" busy={isBusy && "One moment…"}>
          Sign in
        </Button>
        {proof === null ? (
          <PasskeyButton label="Use a passkey" isBusy={withPasskey.isBusy} use={() => withPasskey.attempt(undefined)} />
        ) : (
          <Button onClick={() => keep(null)}>Back</Button>
        )}
      </div>
    </form>
  );
}

function PasswordFields({ email }: { email?: string }) {
  return (
    <>
      <Field label="E-mail address">
        {(bound) => (
          <input
            {...bound}
            name="email"
            type="email"
            defaultValue={email}
            readOnly={email !== undefined}
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            // biome-ignore lint/a11y/noAutofocus: it is what the page is for
            autoFocus={email === undefined}
          />
        )}
      </Field>
      <Field label="Password">
        {(bound) => (
          <input
            {...bound}
            name="password"
            type="password"
            autoComplete="current-password"
            // biome-ignore lint/a11y/noAutofocus: it is what the page is for
            autoFocus={email !== undefined}
          />
        )}
      </Field>
    </>
  );
}

/** The password is right, and a code is needed as well. */
function isCodeNeeded(error: unknown): boolean {
  return error instanceof Declined && error.body.code === "second_factor_needed";
}
