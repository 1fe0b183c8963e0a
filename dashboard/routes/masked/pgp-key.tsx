// The OpenPGP key of a mailbox: its fingerprint to compare, when it ends, and changing it.
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { SetPgpKey } from "../../forms/masked/set-pgp-key.tsx";
import { useAct } from "../../lib/act.ts";
import { keyState, sayFingerprint } from "../../lib/masked-words.ts";
import { useNow } from "../../lib/now.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";

type Destination = Schemas["MaskedDestination"];
type Key = Schemas["MaskedPgpKey"];

export function PgpKey({ destination }: { destination: Destination }) {
  const { id, email, pgp_key } = destination;
  const [asked, ask] = useState<"set" | "remove" | null>(null);
  const close = () => ask(null);
  const removing = useAct({
    run: () => take(v1.DELETE("/v1/masked/destinations/{id}/pgp-key", { params: { path: { id } } })),
    refresh: [["masked", "destinations"]],
    done: () => `Mail to ${email} is not encrypted any more.`,
  });
  return (
    <section className="panel pad" aria-label="Encryption">
      <h2>Encryption</h2>
      {pgp_key === null ? (
        <p className="text-[13px] text-ink-2">
          Forwards are not encrypted. With an OpenPGP key of its owner, the mailbox's provider stores what only that key
          opens.
        </p>
      ) : (
        <About pgpKey={pgp_key} />
      )}
      <div className="acts">
        <Button changes onClick={() => ask("set")}>
          {pgp_key === null ? "Add a key" : "Replace"}
        </Button>
        {pgp_key !== null && (
          <Button changes look="quiet" onClick={() => ask("remove")}>
            Remove the key
          </Button>
        )}
      </div>
      <SetPgpKey destination={destination} open={asked === "set"} close={close} />
      <Confirm
        title={`Forward to ${email} without encryption?`}
        act="Remove it"
        open={asked === "remove"}
        busy={removing.isPending}
        close={close}
        confirm={() => removing.mutate(undefined, { onSettled: close })}
      >
        Mail that comes from then on is forwarded as it is. Mail that was encrypted stays so.
      </Confirm>
    </section>
  );
}

const STATES = {
  good: null,
  soon: { tone: "warn", word: "Ends soon", says: "Add its successor before it ends: mail is held from then on." },
  over: { tone: "bad", word: "Has ended", says: "Mail is held until there is another key, or none." },
} as const;

function About({ pgpKey: { fingerprint, expires_at, hide_subject } }: { pgpKey: Key }) {
  const state = STATES[keyState(expires_at, useNow())];
  if (fingerprint === "")
    return (
      <p className="problem">
        The key cannot be read any more, because the service's master key was lost. Mail is held until it is added
        again.
      </p>
    );
  return (
    <>
      <dl className="facts">
        <dt>Fingerprint</dt>
        <dd>
          <code>{sayFingerprint(fingerprint)}</code>
          <div className="-ml-3">
            <CopyButton text={fingerprint} what="the fingerprint" />
          </div>
        </dd>
        <dt>Ends</dt>
        <dd>
          {expires_at === null ? "never" : <When at={expires_at} as="both" />}{" "}
          {state && <Tag tone={state.tone}>{state.word}</Tag>}
        </dd>
        <dt>Subject</dt>
        <dd>{hide_subject ? "encrypted too" : "stays readable"}</dd>
      </dl>
      {state && <p className="problem mt-3">{state.says}</p>}
    </>
  );
}
