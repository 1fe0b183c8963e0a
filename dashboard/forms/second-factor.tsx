// The second factor: a secret for an authenticator app as a QR code, a code of it to turn it on, and ten recovery codes. Secret and
// codes are shown once, here: they go into no cache and no address.
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type PeopleSchemas, people, take } from "../api/client.ts";
import { type Session, session } from "../api/people.ts";
import { fieldProblem, useAct } from "../lib/act.ts";
import { useAttempt } from "../lib/attempt.ts";
import { Button } from "../ui/button.tsx";
import { CodeField } from "../ui/code-field.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Dialog, DialogActs } from "../ui/dialog.tsx";
import { Problem } from "../ui/problem.tsx";
import { QrCode } from "../ui/qr-code.tsx";
import { Tag } from "../ui/tag.tsx";

type Given = { person: Session["person"] };
type Offer = PeopleSchemas["TotpOffer"];

export function SecondFactor({ person }: Given) {
  const [offer, show] = useState<Offer | null>(null);
  const [codes, keep] = useState<string[] | null>(null);
  const { attempt, isBusy, error } = useAttempt(async () =>
    show(await take(people.POST("/dashboard/api/person/totp"))),
  );
  return (
    <div className="grid justify-items-start gap-3">
      {person.has_totp ? (
        <IsOn person={person} />
      ) : (
        <>
          <Tag tone="idle">Off</Tag>
          <Button busy={isBusy && "One moment…"} onClick={() => attempt(undefined)}>
            Set up an authenticator app
          </Button>
        </>
      )}
      <Problem error={error} />
      <Dialog title="Set up an authenticator app" open={offer !== null} close={() => show(null)}>
        {offer && (
          <Confirming
            offer={offer}
            close={() => show(null)}
            confirmed={(made) => {
              show(null);
              keep(made);
            }}
          />
        )}
      </Dialog>
      <Dialog title="Your recovery codes" open={codes !== null} close={() => keep(null)}>
        {codes && <Codes codes={codes} done={() => keep(null)} />}
      </Dialog>
    </div>
  );
}

function IsOn({ person: { recovery_codes_left } }: Given) {
  const queries = useQueryClient();
  const [isAsked, ask] = useState(false);
  const removing = useAct({
    run: () => take(people.DELETE("/dashboard/api/person/totp")),
    refresh: [["people"]],
    done: (found) => {
      ask(false);
      queries.setQueryData(session.queryKey, found);
      return "The second factor is off: the password alone lets in.";
    },
  });
  return (
    <>
      <div className="flex items-center gap-2">
        <Tag tone="good">On</Tag>
        <span className="dim">{recovery_codes_left} of 10 recovery codes left</span>
      </div>
      <Button onClick={() => ask(true)}>Turn it off</Button>
      <Confirm
        title="Turn the second factor off?"
        act="Turn it off"
        open={isAsked}
        busy={removing.isPending}
        close={() => ask(false)}
        confirm={() => removing.mutate(undefined)}
      >
        Anyone who knows your password can then sign in. The recovery codes stop working. To change to another
        telephone, turn it off and set it up again.
      </Confirm>
    </>
  );
}

function Confirming({
  offer,
  close,
  confirmed,
}: {
  offer: Offer;
  close: () => void;
  confirmed: (codes: string[]) => void;
}) {
  const queries = useQueryClient();
  const { attempt, isBusy, error } = useAttempt(async (code: string) => {
    const { recovery_codes } = await take(people.POST("/dashboard/api/person/totp/confirm", { body: { code } }));
    await queries.invalidateQueries({ queryKey: session.queryKey });
    confirmed(recovery_codes);
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt(String(new FormData(event.currentTarget).get("code") ?? "").trim());
  };
  const problem = fieldProblem(error, "code");
  return (
    <form onSubmit={submit} className="form" noValidate>
      <p>Let the app read this picture, or give it the secret below. Then write the code that it shows.</p>
      <QrCode text={offer.uri} label="The secret as a QR code for the authenticator app" />
      <div className="copy">
        <code className="break-all">{offer.secret}</code>
        <CopyButton text={offer.secret} what="the secret" />
      </div>
      <CodeField problem={problem} hasRecovery={false} />
      {problem === undefined && <Problem error={error} />}
      <DialogActs close={close} leave="Not now" act="Turn it on" busy={isBusy && "One moment…"} />
    </form>
  );
}

function Codes({ codes, done }: { codes: string[]; done: () => void }) {
  return (
    <>
      <p>
        Without your telephone, one of these lets you in. Each works once. They are shown only now: print them, or keep
        them with your passwords.
      </p>
      <ol className="said grid grid-cols-2 gap-x-6 gap-y-1 font-mono">
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ol>
      <div className="acts">
        <CopyButton text={codes.join("\n")} what="the recovery codes" />
        <Button look="primary" onClick={done}>
          I have them
        </Button>
      </div>
    </>
  );
}
