// Making and changing a domain alias.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { domains } from "../../api/queries.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { inOneLine } from "../../lib/domain-names.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { MailAction, readMailAction } from "./mail-action.tsx";

type Alias = Schemas["Alias"];
type Given = { edited: Alias | "new" | null; close: () => void };

export function EditAlias({ edited, close }: Given) {
  const title = edited === "new" || edited === null ? "New alias" : addressOf(edited);
  return (
    <Dialog title={title} open={edited !== null} close={close}>
      {edited !== null && <Form alias={edited === "new" ? null : edited} close={close} />}
    </Dialog>
  );
}

function Form({ alias, close }: { alias: Alias | null; close: () => void }) {
  const [isAsking, ask] = useState(false);
  const { save, remove } = useActs(alias, close);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    save.mutate({
      ...readMailAction(form),
      ...{ domain_id: text("domain_id"), local_part: text("local_part") },
      ...{ description: text("description"), active: form.get("active") === "on" },
    });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Address alias={alias} error={save.error} />
      <MailAction before={alias ?? undefined} error={save.error} sent={save.variables} />
      <Field label="Note" help="For your team" problem={fieldProblem(save.error, "description")}>
        {(bound) => <input {...bound} name="description" defaultValue={alias?.description ?? ""} autoComplete="off" />}
      </Field>
      <label className="flex items-center gap-2">
        <input type="checkbox" name="active" defaultChecked={alias?.active ?? true} />
        It takes mail
      </label>
      <DialogActs
        close={close}
        act="Save"
        busy={save.isPending && "Saving…"}
        before={
          alias && (
            <Button look="quiet" onClick={() => ask(true)}>
              Delete
            </Button>
          )
        }
      />
      <Confirm
        title={`Delete ${alias && addressOf(alias)}?`}
        act="Delete the alias"
        open={isAsking}
        busy={remove.isPending}
        close={() => ask(false)}
        confirm={() => remove.mutate(undefined, { onError: () => ask(false) })}
      >
        Mail to it is refused from then on, unless another alias or the domain takes it. What it received stays.
      </Confirm>
    </form>
  );
}

function Address({ alias, error }: { alias: Alias | null; error: unknown }) {
  const owned = useQuery(domains).data?.domains ?? [];
  const receiving = owned.filter(({ type }) => type === "inbound" || type === "both");
  return (
    <div className="grid grid-cols-2 gap-2">
      <Field label="Before the @" help="support, support*, or *" problem={fieldProblem(error, "local_part")}>
        {(bound) => (
          <input
            {...bound}
            name="local_part"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            defaultValue={alias?.address}
          />
        )}
      </Field>
      <Field label="Domain" problem={fieldProblem(error, "domain_id")}>
        {(bound) => (
          <select {...bound} name="domain_id" disabled={alias !== null} defaultValue={alias?.domain_id}>
            {receiving.map(({ id, domain }) => (
              <option key={id} value={id}>
                {inOneLine(domain)}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}

function useActs(alias: Alias | null, close: () => void) {
  const refresh = [["aliases"]];
  const save = useAct({
    run: ({ domain_id, ...body }: Schemas["CreateAliasRequest"]) =>
      alias === null
        ? take(v1.POST("/v1/aliases", { body: { ...body, domain_id } }))
        : take(v1.PATCH("/v1/aliases/{id}", { params: { path: { id: alias.id } }, body: body as never })),
    refresh,
    done: (out) => {
      close();
      return `${addressOf((out as Schemas["AliasAnswer"]).alias)} is saved.`;
    },
  });
  const remove = useAct({
    run: () => take(v1.DELETE("/v1/aliases/{id}", { params: { path: { id: alias?.id ?? "" } } })),
    refresh,
    done: () => {
      close();
      return `${alias === null ? "The alias" : addressOf(alias)} is deleted. The mail that it took stays.`;
    },
  });
  return { save, remove };
}

/** `address` is what stands before the @. */
export function addressOf({ address, domain }: Pick<Alias, "address" | "domain">): string {
  return `${address}@${domain}`;
}
