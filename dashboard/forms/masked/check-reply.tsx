// A reply that is tried without sending it: what would become of it, what would be hidden, and what would hold it.
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { fieldProblem } from "../../lib/act.ts";
import { wordOf } from "../../lib/states.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Failed } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";

type Check = Schemas["MaskedCheck"];

export function CheckReply({ id }: { id: string }) {
  const [source, write] = useState("");
  const checking = useMutation({
    mutationFn: (raw: string) =>
      take(
        v1.POST("/v1/masked/aliases/{id}/check", {
          params: { path: { id } },
          body: { raw_base64: new TextEncoder().encode(raw).toBase64() },
        }),
      ),
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    checking.mutate(source.replaceAll(/\r?\n/g, "\r\n"));
  };
  const problem = fieldProblem(checking.error, "raw_base64");
  return (
    <div className="stack">
      <form onSubmit={submit} className="panel pad grid gap-4" noValidate>
        <Field
          label="The mail, as its author would send it"
          help="Its source, addressed to a contact’s reply address. Nothing is sent, counted or kept."
          problem={problem}
        >
          {(bound) => (
            <textarea
              {...bound}
              rows={12}
              spellCheck={false}
              placeholder={"From: you@your-mailbox.example\nTo: <the reply address>\nSubject: Re: …\n\nHello"}
              value={source}
              onChange={(event) => write(event.target.value)}
            />
          )}
        </Field>
        <div className="acts mt-0!">
          <Button changes type="submit" disabled={source === ""} busy={checking.isPending && "Trying…"}>
            Try it
          </Button>
          <label className="btn quiet">
            Choose a file
            <input
              type="file"
              accept=".eml,message/rfc822"
              className="sr-only"
              onChange={(event) => void event.target.files?.[0]?.text().then(write)}
            />
          </label>
        </div>
      </form>
      {checking.error !== null && problem === undefined && (
        <div className="panel">
          <Failed error={checking.error} />
        </div>
      )}
      {checking.data && <Outcome check={checking.data} />}
    </div>
  );
}

const TONES = { sent: "good", held: "warn", refused: "bad" } as const;

function Outcome({ check }: { check: Check }) {
  return (
    <section className="panel pad" role="status">
      <h2>
        It would be <Tag tone={TONES[check.outcome]}>{wordOf(check.outcome)}</Tag>
      </h2>
      {check.reason && <p className="mt-1 text-ink-2">{wordOf(check.reason)}</p>}
      <Places title="It would show the mailbox in" places={check.leaks} />
      {check.words.length > 0 && <code className="said">{check.words.join("\n")}</code>}
      <Places title="It could not check" places={check.unopened} />
      {check.changes.length > 0 && (
        <>
          <h3 className="mt-3 text-[13px] font-semibold">What would be changed</h3>
          <ul>
            {check.changes.map((change) => (
              <li key={`${change.where} ${change.place} ${change.kind} ${change.detail}`} className="text-ink-2">
                {wordOf(change.kind)}, {change.place.replaceAll("_", " ")} of {change.where}
                {change.detail && ` (${change.detail})`} <span className="dim num">×{change.count}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Places({ title, places }: { title: string; places: Schemas["MaskedCheckPlace"][] }) {
  if (places.length === 0) return null;
  return (
    <>
      <h3 className="mt-3 text-[13px] font-semibold">{title}</h3>
      <ul>
        {places.map(({ where, file }) => (
          <li key={`${where} ${file}`} className="text-ink-2">
            {where}
            {file && `: ${file}`}
          </li>
        ))}
      </ul>
    </>
  );
}
