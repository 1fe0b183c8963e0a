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
type Sent = {
  token: string;
  email?: string;
  name?: string;
  password: string;
  organization_name?: string;
  purpose?: string;
  byPasskey: boolean;
};

async function newPasskey({ token, email, name = "" }: Pick<Sent, "token" | "email" | "name">): Promise<PasskeyAnswer> {
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
    const asked =
      link.kind === "sign_up" ? { organization_name: text("organization_name"), purpose: text("purpose") } : {};
    attempt({ token, ...email, ...who, ...asked, password: String(form.get("password") ?? ""), byPasskey });
  };
  const problems = ["email", "name", "password", "organization_name", "purpose"].map((field) =>
    fieldProblem(error, field),
  );
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
      {link.kind === "sign_up" && <AskedOrganization nameProblem={problems[3]} purposeProblem={problems[4]} />}
      <NewPassword problem={problems[2]} email={link.email ?? undefined} />
      {problems.every((problem) => problem === undefined) && <Problem error={error} />}
      <div className="acts">
        <Button look="primary" type="submit" busy={isBusy && "One moment…"}>
          {DOES[link.kind]}
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

const DOES: Record<PeopleSchemas["Link"]["kind"], string> = {
  reset: "Set the password",
  set_up: "Begin",
  invitation: "Join",
  sign_up: "Make the account",
};

/** What somebody who signs up calls their organization, and what the operator reads before live mail leaves. */
function AskedOrganization({ nameProblem, purposeProblem }: { nameProblem?: string; purposeProblem?: string }) {
  return (
    <>
      <Field label="Organization" problem={nameProblem}>
        {(bound) => <input {...bound} name="organization_name" autoComplete="organization" maxLength={191} />}
      </Field>
      <Field
        label="What will you send, and to whom?"
        problem={purposeProblem}
        help="The operator reads it before live mail leaves."
      >
        {(bound) => <textarea {...bound} name="purpose" rows={3} maxLength={1_000} style={{ height: "auto" }} />}
      </Field>
    </>
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
