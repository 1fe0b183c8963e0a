// Another role for somebody, and whether a viewer sees the bodies of messages.
import type { FormEvent } from "react";
import { type PeopleSchemas, people, take } from "../api/client.ts";
import { useAct } from "../lib/act.ts";
import type { Own } from "../lib/own.ts";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { RoleField, readRole } from "../ui/role-field.tsx";

type Member = PeopleSchemas["Member"];
type Given = Pick<Own, "organization"> & {
  member: Member | null;
  close: () => void;
  remove: (member: Member) => void;
};

export function ChangeMember({ member, ...given }: Given) {
  return (
    <Dialog title={member?.email ?? ""} open={member !== null} close={given.close}>
      {member !== null && <Form member={member} {...given} />}
    </Dialog>
  );
}

function Form({ member, organization, close, remove }: Given & { member: Member }) {
  const changing = useAct({
    run: (body: { role: Member["role"]; sees_bodies: boolean }) =>
      take(
        people.PUT("/dashboard/api/organizations/{org_id}/people/{id}", {
          params: { path: { org_id: organization.id, id: member.id } },
          body,
        }),
      ),
    refresh: [["people"], ["session"]],
    done: ({ person }) => {
      close();
      return `${person.email} is ${person.role} now.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    changing.mutate({ role: readRole(form.get("role")), sees_bodies: form.has("sees_bodies") });
  };
  return (
    <form onSubmit={submit} className="form" noValidate>
      <RoleField chosen={member.role} />
      <label className="flex items-center gap-2">
        <input type="checkbox" name="sees_bodies" defaultChecked={member.sees_bodies} />
        As a viewer, sees the bodies of messages
      </label>
      <DialogActs
        close={close}
        act="Change"
        busy={changing.isPending && "Changing…"}
        before={
          <Button look="quiet" className="show-s" onClick={() => remove(member)}>
            Remove
          </Button>
        }
      />
    </form>
  );
}
