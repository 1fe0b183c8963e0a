// What can be done with DKIM keys: a successor, another key beside, ending one.
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem, useAct } from "../../lib/act.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Dialog, DialogActs } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";

type Key = Schemas["DkimKey"];

export function DkimActs({ id, keys }: { id: string; keys: Key[] }) {
  const [asked, ask] = useState<"rotate" | "new" | null>(null);
  const close = () => ask(null);
  const isChanging = keys.some(({ status }) => status === "pending");
  const old = keys.filter(({ status }) => status === "active");
  return (
    <>
      <Button onClick={() => ask("new")}>New key</Button>
      {old.length > 0 && (
        <Button look="primary" disabled={isChanging} onClick={() => ask("rotate")}>
          Rotate
        </Button>
      )}
      <Dialog title="Rotate the key" open={asked === "rotate"} close={close}>
        <Rotate id={id} old={old} next={nextSelector(keys)} close={close} />
      </Dialog>
      <Dialog title="New key" open={asked === "new"} close={close}>
        <Make id={id} next={nextSelector(keys)} close={close} />
      </Dialog>
    </>
  );
}

/** One that the domain has not had. */
function nextSelector(keys: Key[]): string {
  const used = new Set(keys.map(({ selector }) => selector));
  for (let number = 1; ; number += 1) if (!used.has(`postern${number}`)) return `postern${number}`;
}

type RotateGiven = { id: string; old: Key[]; next: string; close: () => void };

function Rotate({ id, old, next, close }: RotateGiven) {
  const rotating = useAct({
    run: (body: Schemas["RotateDkimKeyRequest"]) =>
      take(v1.POST("/v1/domains/{id}/dkim/rotate", { params: { path: { id } }, body })),
    refresh: [["domain", id]],
    done: ({ key }) => {
      close();
      return `${key.selector} is made. Publish its record next.`;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    rotating.mutate({ old_selector: text("old_selector"), new_selector: text("new_selector") });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <p className="text-ink-2">
        This makes a new key. The old key signs until DNS shows the new one. The page then lists the steps.
      </p>
      <Field label="Old key" problem={fieldProblem(rotating.error, "old_selector")}>
        {(bound) => (
          <select {...bound} name="old_selector">
            {old.map(({ selector }) => (
              <option key={selector}>{selector}</option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Selector of the new key"
        help="One that the domain has not had"
        problem={fieldProblem(rotating.error, "new_selector")}
      >
        {(bound) => <input {...bound} name="new_selector" defaultValue={next} autoComplete="off" spellCheck={false} />}
      </Field>
      <DialogActs close={close} act="Make the new key" busy={rotating.isPending && "Making…"} />
    </form>
  );
}

function Make({ id, next, close }: Omit<RotateGiven, "old">) {
  const making = useAct({
    run: (body: Schemas["CreateDkimKeyRequest"]) =>
      take(v1.POST("/v1/domains/{id}/dkim", { params: { path: { id } }, body })),
    refresh: [["domain", id]],
    done: ({ message }) => {
      close();
      return message;
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const algorithm = form.get("algorithm") === "ed25519" ? "ed25519" : "rsa";
    making.mutate({ selector: String(form.get("selector") ?? "").trim(), algorithm });
  };
  return (
    <form onSubmit={submit} className="mt-3 grid gap-4" noValidate>
      <Field label="Selector" problem={fieldProblem(making.error, "selector")}>
        {(bound) => <input {...bound} name="selector" defaultValue={next} autoComplete="off" spellCheck={false} />}
      </Field>
      <Field
        label="Algorithm"
        help="Use Ed25519 only together with RSA: not every receiver can verify it"
        problem={fieldProblem(making.error, "algorithm")}
      >
        {(bound) => (
          <select {...bound} name="algorithm">
            <option value="rsa">RSA, 2,048 bits</option>
            <option value="ed25519">Ed25519</option>
          </select>
        )}
      </Field>
      <DialogActs close={close} act="Make it" busy={making.isPending && "Making…"} />
    </form>
  );
}

export function EndKey({ id, dkim: { selector, status } }: { id: string; dkim: Key }) {
  const [isAsking, ask] = useState(false);
  const ending = useAct({
    run: () => take(v1.DELETE("/v1/domains/{id}/dkim/{selector}", { params: { path: { id, selector } } })),
    refresh: [["domain", id]],
    done: () => `${selector} has ended.`,
  });
  return (
    <>
      <Button changes look="quiet" onClick={() => ask(true)} aria-label={`End ${selector}`}>
        End
      </Button>
      <Confirm
        title={`End the key ${selector}?`}
        act="End the key"
        open={isAsking}
        busy={ending.isPending}
        close={() => ask(false)}
        confirm={() => ending.mutate(undefined, { onSettled: () => ask(false) })}
      >
        {status === "active"
          ? "It stops signing at once. The domain can send only if another key signs."
          : "It is never used again. You can remove its record."}
      </Confirm>
    </>
  );
}
