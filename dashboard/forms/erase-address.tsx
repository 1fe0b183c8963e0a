// Erasing what is stored of an address: it has to be typed once more, as nobody gets it back.
import { type FormEvent, useState } from "react";
import { take, v1 } from "../api/client.ts";
import { useAct } from "../lib/act.ts";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Field } from "../ui/field.tsx";

type Given = { email: string; open: boolean; close: () => void };

export function EraseAddress({ email, open, close }: Given) {
  return (
    <Dialog title={`Erase ${email}?`} open={open} close={close}>
      <Form email={email} close={close} />
    </Dialog>
  );
}

function Form({ email, close }: Omit<Given, "open">) {
  const [typed, type] = useState("");
  const erasing = useAct({
    run: (suppressions: boolean) => take(v1.DELETE("/v1/address-data", { params: { query: { email, suppressions } } })),
    refresh: [["address-data"], ["emails"], ["inbound"], ["suppressions"]],
    done: ({ left }) => {
      close();
      const mails = left.sent + left.received;
      return mails === 0 ? `${email} is erased.` : `${mails} mails are left, or on their way: erase it again later.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    erasing.mutate(new FormData(event.currentTarget).get("suppressions") === "on");
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <p>
        Mail to this address alone and mail from it is deleted. Mail to several loses the address and its content.
        Nobody gets it back.
      </p>
      <label className="flex items-start gap-2 text-[13px]">
        <input type="checkbox" name="suppressions" className="mt-0.5" />
        <span>Remove its suppressions too: it may be mailed again.</span>
      </label>
      <Field label="Type the address">
        {(bound) => (
          <input {...bound} autoComplete="off" spellCheck={false} onChange={(event) => type(event.target.value)} />
        )}
      </Field>
      <DialogActs
        close={close}
        leave="Keep it"
        act="Erase the address"
        look="danger"
        disabled={typed.trim().toLowerCase() !== email.toLowerCase()}
        busy={erasing.isPending && "Erasing…"}
      />
    </form>
  );
}
