// Inviting somebody. The link is shown once, here, to be handed on: it goes into no cache and no address.

import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type PeopleSchemas, people, take } from "../api/client.ts";
import { fieldProblem } from "../lib/act.ts";
import { useAttempt } from "../lib/attempt.ts";
import type { Own } from "../lib/own.ts";
import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { Problem } from "../ui/problem.tsx";
import { RoleField, readRole } from "../ui/role-field.tsx";

type Given = { open: boolean; close: () => void } & Pick<Own, "organization">;
type Made = PeopleSchemas["NewInvitation"];

export function Invite({ open, close, organization }: Given) {
  const [made, keep] = useState<Made | null>(null);
  const end = () => {
    keep(null);
    close();
  };
  return (
    <Dialog title={made === null ? "Invite somebody" : "The invitation is made"} open={open} close={end}>
      {made === null ? (
        <Form organization={organization} close={close} made={keep} />
      ) : (
        <TheLink made={made} done={end} />
      )}
    </Dialog>
  );
}

function Form({ organization, close, made }: Omit<Given, "open"> & { made: (made: Made) => void }) {
  const queries = useQueryClient();
  const { attempt, isBusy, error } = useAttempt(async (body: { email: string; role: PeopleSchemas["Role"] }) => {
    const params = { path: { org_id: organization.id } };
    made(await take(people.POST("/dashboard/api/organizations/{org_id}/invitations", { params, body })));
    await queries.invalidateQueries({ queryKey: ["people"] });
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    attempt({ email: String(form.get("email") ?? "").trim(), role: readRole(form.get("role")) });
  };
  const problem = fieldProblem(error, "email");
  return (
    <form onSubmit={submit} className="form" noValidate>
      <Field label="E-mail address" problem={problem}>
        {(bound) => <input {...bound} name="email" type="email" autoComplete="off" autoCapitalize="none" />}
      </Field>
      <RoleField />
      {problem === undefined && <Problem error={error} />}
      <DialogActs close={close} act="Invite" busy={isBusy && "Inviting…"} />
    </form>
  );
}

function TheLink({ made: { invitation, link }, done }: { made: Made; done: () => void }) {
  if (link === null)
    return (
      <>
        <p>A link is on its way to {invitation.email}. It works once, and for seven days.</p>
        <div className="acts">
          <Button look="primary" onClick={done}>
            Done
          </Button>
        </div>
      </>
    );
  return (
    <>
      <p>
        Hand this link to {invitation.email}. It is shown only now. It works once, for seven days. Anyone who has it can
        join. The audit log notes that you saw it.
      </p>
      <code className="said">{link}</code>
      <div className="acts">
        <CopyButton text={link} what="the link" />
        <Button look="primary" onClick={done}>
          I have it
        </Button>
      </div>
    </>
  );
}
