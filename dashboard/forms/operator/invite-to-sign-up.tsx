// Inviting somebody to make an organization of their own. A link that is not mailed is shown once, here.
import { type FormEvent, useState } from "react";
import { type PeopleSchemas, people, take } from "../../api/client.ts";
import { fieldProblem } from "../../lib/act.ts";
import { useAttempt } from "../../lib/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Problem } from "../../ui/problem.tsx";
import { SecretOnce } from "../../ui/secret-once.tsx";

type Made = PeopleSchemas["NewSignUpLink"];

export function InviteToSignUp({ open, close }: { open: boolean; close: () => void }) {
  const [made, keep] = useState<Made | null>(null);
  const end = () => {
    keep(null);
    close();
  };
  return (
    <Dialog title={made === null ? "Invite an organization" : "The link is made"} open={open} close={end}>
      {made === null ? <Form close={end} made={keep} /> : <TheLink made={made} done={end} />}
    </Dialog>
  );
}

function TheLink({ made: { email, link }, done }: { made: Made; done: () => void }) {
  if (link !== null) return <SecretOnce secret={link} what={`link for ${email}`} done={done} />;
  return (
    <>
      <p>A link is on its way to {email}. It works once, for seven days.</p>
      <div className="acts">
        <Button look="primary" onClick={done}>
          Done
        </Button>
      </div>
    </>
  );
}

function Form({ close, made }: { close: () => void; made: (made: Made) => void }) {
  const { attempt, isBusy, error } = useAttempt(async (email: string) => {
    made(await take(people.POST("/dashboard/api/operator/sign-up-links", { body: { email } })));
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt(String(new FormData(event.currentTarget).get("email") ?? "").trim());
  };
  const problem = fieldProblem(error, "email");
  return (
    <form onSubmit={submit} className="form" noValidate>
      <Field
        label="E-mail address"
        problem={problem}
        help="The person who opens the link makes an organization. You review it before it sends live mail."
      >
        {(bound) => <input {...bound} name="email" type="email" autoComplete="off" autoCapitalize="none" />}
      </Field>
      {problem === undefined && <Problem error={error} />}
      <DialogActs close={close} act="Make the link" busy={isBusy && "One moment…"} />
    </form>
  );
}
