// Asking to sign up: only the address, which is confirmed by mail first. The answer is the same for every address.
import { type FormEvent, useState } from "react";
import { door, take } from "../api/client.ts";
import { fieldProblem } from "../lib/act.ts";
import { useAttempt } from "../lib/attempt.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";

export function SignUpForm() {
  const [asked, keep] = useState<string | null>(null);
  const { attempt, isBusy, error } = useAttempt(async (email: string) => {
    await take(door.POST("/dashboard/api/sign-up", { body: { email } }));
    keep(email);
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt(String(new FormData(event.currentTarget).get("email") ?? "").trim());
  };
  if (asked !== null)
    return (
      <p className="mt-2" role="status">
        A mail is on its way to <b className="font-semibold">{asked}</b>. Its link works for seven days; nothing is made
        before you open it.
      </p>
    );
  const problem = fieldProblem(error, "email");
  return (
    <form onSubmit={submit} className="form" noValidate>
      <Field label="E-mail address" problem={problem} help="It is confirmed by a mail first.">
        {(bound) => (
          // biome-ignore lint/a11y/noAutofocus: it is what the page is for
          <input {...bound} name="email" type="email" autoComplete="username" autoCapitalize="none" autoFocus />
        )}
      </Field>
      {problem === undefined && <Problem error={error} />}
      <div className="acts">
        <Button look="primary" type="submit" busy={isBusy && "One moment…"}>
          Go on
        </Button>
      </div>
    </form>
  );
}
