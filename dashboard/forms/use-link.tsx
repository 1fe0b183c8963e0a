// What a link asks of somebody who is new here, or has lost the password.
import type { FormEvent } from "react";
import { Declined, door, type PeopleSchemas, take } from "../api/client.ts";
import type { Session } from "../api/people.ts";
import { fieldProblem } from "../lib/act.ts";
import { useAttempt } from "../lib/attempt.ts";
import { canUsePasskeys, makePasskey, type PasskeyAnswer } from "../lib/passkeys.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/field.tsx";
import { NewPassword } from "../ui/new-password.tsx";
import { Problem } from "../ui/problem.tsx";
import { toast } from "../ui/toast.tsx";

type Given = {
  token: string;
  link: PeopleSchemas["Link"];
  used: (session: Session) => void;
  hasAccount: () => void;
};
type Sent = { token: string; email?: string; name?: string; password: string; byPasskey: boolean };

async function newPasskey({ token, email, name = "" }: Omit<Sent, "byPasskey">): Promise<PasskeyAnswer> {
  const body = { token, name, ...(email === undefined ? {} : { email }) };
  const { options } = await take(door.POST("/dashboard/api/links/passkey-options", { body }));
  return makePasskey(options);
}

export function UseLinkForm({ token, link, used, hasAccount }: Given) {
  const { attempt, isBusy, error } = useAttempt(async ({ byPasskey, ...body }: Sent) => {
    try {
      const proof = byPasskey ? { passkey: await newPasskey(body), password: undefined } : {};
      used(await take(door.POST("/dashboard/api/links/use", { body: { ...body, ...proof } })));
    } catch (declined) {
      const said = saidOf(declined);
      if (said === undefined) throw declined;
      toast(said);
      hasAccount();
    }
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const { submitter } = event.nativeEvent as SubmitEvent;
    const byPasskey = submitter?.getAttribute("value") === "passkey";
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const who = link.kind === "reset" ? {} : { name: text("name") };
    const email = link.email === null ? { email: text("email") } : {};
    attempt({ token, ...email, ...who, password: String(form.get("password") ?? ""), byPasskey });
  };
  const problems = ["email", "name", "password"].map((field) => fieldProblem(error, field));
  return (
    <form onSubmit={submit} className="form" noValidate>
      {link.kind !== "reset" && (
        <Field label="Your name" problem={problems[1]}>
          {/* biome-ignore lint/a11y/noAutofocus: it is the first thing to do here */}
          {(bound) => <input {...bound} name="name" autoComplete="name" autoFocus />}
        </Field>
      )}
      {link.email === null && (
        <Field label="E-mail address" problem={problems[0]}>
          {(bound) => <input {...bound} name="email" type="email" autoComplete="username" autoCapitalize="none" />}
        </Field>
      )}
      <NewPassword problem={problems[2]} email={link.email ?? undefined} />
      {problems.every((problem) => problem === undefined) && <Problem error={error} />}
      <div className="acts">
        <Button look="primary" type="submit" busy={isBusy && "One moment…"}>
          {link.kind === "reset" ? "Set the password" : link.kind === "set_up" ? "Begin" : "Join"}
        </Button>
        {link.kind !== "reset" && canUsePasskeys() && (
          <Button type="submit" value="passkey" disabled={isBusy}>
            Use a passkey instead
          </Button>
        )}
      </div>
    </form>
  );
}

/** Why signing in comes next. */
const SIGN_IN_NEXT: Record<string, string> = {
  invalid_state: "This address has an account already: sign in with it.",
  not_signed_in: "Your new password is set: sign in with it and a code.",
};

function saidOf(error: unknown): string | undefined {
  return error instanceof Declined ? SIGN_IN_NEXT[error.body.code ?? ""] : undefined;
}
