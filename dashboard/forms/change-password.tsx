// A new password, after the present one was shown (the server asks for it where that was long ago).
import { useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { people, take } from "../api/client.ts";
import { type Session, session } from "../api/people.ts";
import { fieldProblem } from "../lib/act.ts";
import { useAttempt } from "../lib/attempt.ts";
import { Button } from "../ui/button.tsx";
import { NewPassword } from "../ui/new-password.tsx";
import { Problem } from "../ui/problem.tsx";
import { toast } from "../ui/toast.tsx";

export function ChangePassword({ person }: { person: Session["person"] }) {
  const queries = useQueryClient();
  const { attempt, isBusy, error } = useAttempt(
    async ({ password, form }: { password: string; form: HTMLFormElement }) => {
      queries.setQueryData(
        session.queryKey,
        await take(people.PUT("/dashboard/api/person/password", { body: { password } })),
      );
      form.reset();
      toast("Your new password is set. Your other sessions have ended.");
      await queries.invalidateQueries({ queryKey: ["sessions"] });
    },
  );
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    attempt({ password: String(new FormData(form).get("password") ?? ""), form });
  };
  const problem = fieldProblem(error, "password");
  return (
    <form onSubmit={submit} className="grid gap-3" noValidate>
      <NewPassword email={person.email} problem={problem} />
      {problem === undefined && <Problem error={error} />}
      <div>
        <Button type="submit" busy={isBusy && "Setting…"}>
          Set the password
        </Button>
      </div>
    </form>
  );
}
