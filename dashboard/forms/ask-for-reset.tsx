// Asking for a link that sets a new password. The answer is the same for every address.
import { type FormEvent, useState } from "react";
import { door, take } from "../api/client.ts";
import { useAttempt } from "../lib/attempt.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";

export function AskForReset() {
  const [asked, keep] = useState<string | null>(null);
  const { attempt, isBusy, error } = useAttempt(async (email: string) => {
    await take(door.POST("/dashboard/api/links/reset", { body: { email } }));
    keep(email);
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt(String(new FormData(event.currentTarget).get("email") ?? "").trim());
  };
  if (asked !== null)
    return (
      <p className="mt-2">
        If somebody here has the address {asked}, a link is on its way there. It works for 24 hours.
      </p>
    );
  return (
    <form onSubmit={submit} className="form" noValidate>
      <Field label="E-mail address">
        {(bound) => (
          // biome-ignore lint/a11y/noAutofocus: it is what the page is for
          <input {...bound} name="email" type="email" autoComplete="username" autoCapitalize="none" autoFocus />
        )}
      </Field>
      <Problem error={error} />
      <div className="acts">
        <Button look="primary" type="submit" busy={isBusy && "One moment…"}>
          Mail me a link
        </Button>
      </div>
    </form>
  );
}
