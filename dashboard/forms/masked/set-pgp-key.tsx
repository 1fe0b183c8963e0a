// The public key that mail to a mailbox is encrypted for: pasted, or read from a file.
import { type FormEvent, useRef } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Given = { destination: Schemas["MaskedDestination"]; open: boolean; close: () => void };

export function SetPgpKey({ destination, open, close }: Given) {
  return (
    <Dialog title={`Encrypt mail to ${destination.email}`} open={open} close={close}>
      <Form destination={destination} close={close} />
    </Dialog>
  );
}

function Form({ destination: { id, email, pgp_key }, close }: Omit<Given, "open">) {
  const text = useRef<HTMLTextAreaElement>(null);
  const setting = useAct({
    run: (body: Schemas["SetMaskedPgpKeyRequest"]) =>
      take(v1.PUT("/v1/masked/destinations/{id}/pgp-key", { params: { path: { id } }, body })),
    refresh: [["masked", "destinations"]],
    done: () => {
      close();
      return `Mail to ${email} is encrypted from now on.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const public_key = String(form.get("public_key") ?? "").trim();
    setting.mutate({ public_key, hide_subject: form.get("hide_subject") === "on" });
  };
  const read = async (file: File | undefined): Promise<void> => {
    if (file !== undefined && text.current !== null) text.current.value = await file.text();
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field
        label="Public key"
        help="One armoured OpenPGP key. Your mail program exports it; the private key stays there."
        problem={fieldProblem(setting.error, "public_key")}
      >
        {(bound) => (
          <textarea
            {...bound}
            ref={text}
            name="public_key"
            rows={8}
            spellCheck={false}
            placeholder="-----BEGIN PGP PUBLIC KEY BLOCK-----"
          />
        )}
      </Field>
      <Field label="Or from a file">
        {({ id: input }) => (
          <input
            id={input}
            type="file"
            className="text-[13px]"
            accept=".asc,.txt,.key,application/pgp-keys"
            onChange={(event) => void read(event.target.files?.[0])}
          />
        )}
      </Field>
      <label className="flex items-center gap-2">
        <input type="checkbox" name="hide_subject" defaultChecked={pgp_key?.hide_subject ?? true} />
        Encrypt the subject too
      </label>
      <DialogActs close={close} className="acts mt-0!" act="Save the key" busy={setting.isPending && "Saving…"} />
    </form>
  );
}
