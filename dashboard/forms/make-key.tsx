// Making an API key. Its value is shown once, here: it goes into no cache and no address.
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { useOwn } from "../lib/own.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";
import { SecretOnce } from "../ui/secret-once.tsx";

type Given = { open: boolean; close: () => void };

export function MakeKey({ open, close }: Given) {
  const [secret, keep] = useState<string | null>(null);
  const end = () => {
    keep(null);
    close();
  };
  return (
    <Dialog title={secret === null ? "Make a key" : "The key is made"} open={open} close={end}>
      {secret === null ? <Form close={close} made={keep} /> : <SecretOnce secret={secret} what="value" done={end} />}
    </Dialog>
  );
}

function Form({ close, made }: Pick<Given, "close"> & { made: (secret: string) => void }) {
  const mayLive = useOwn().organization.role !== "developer";
  const making = useAct({
    run: (body: Schemas["CreateApiKeyRequest"]) => take(v1.POST("/v1/api-keys", { body })),
    refresh: [["keys"]],
    done: ({ secret }) => {
      made(secret);
      making.reset();
      return undefined;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const environment = form.get("environment") === "live" ? "live" : "test";
    making.mutate({ name: String(form.get("name") ?? "").trim(), environment });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="Name" help="What uses it, such as “shop backend”" problem={fieldProblem(making.error, "name")}>
        {(bound) => <input {...bound} name="name" autoComplete="off" />}
      </Field>
      <Field
        label="Kind"
        help={`A test key checks everything and sends nothing.${mayLive ? "" : " Live keys are made by admins and owners."}`}
        problem={fieldProblem(making.error, "environment")}
      >
        {(bound) => (
          <select {...bound} name="environment" defaultValue="test">
            <option value="test">Test</option>
            {mayLive && <option value="live">Live: sends real mail</option>}
          </select>
        )}
      </Field>
      <DialogActs close={close} act="Make it" busy={making.isPending && "Making…"} />
    </form>
  );
}
