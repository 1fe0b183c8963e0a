// What one is called.
import { useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { people, take } from "../api/client.ts";
import { type Session, session } from "../api/people.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/field.tsx";

export function ChangeName({ person }: { person: Session["person"] }) {
  const queries = useQueryClient();
  const changing = useAct({
    run: (name: string) => take(people.PUT("/dashboard/api/person", { body: { name } })),
    refresh: [["people"]],
    done: (found) => {
      queries.setQueryData(session.queryKey, found);
      return "Your name is changed.";
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    changing.mutate(String(new FormData(event.currentTarget).get("name") ?? ""));
  };
  return (
    <form onSubmit={submit} className="beside" noValidate>
      <Field label="Name" problem={fieldProblem(changing.error, "name")}>
        {(bound) => <input {...bound} name="name" autoComplete="name" defaultValue={person.name} />}
      </Field>
      <Button type="submit" busy={changing.isPending && "Saving…"}>
        Save
      </Button>
    </form>
  );
}
