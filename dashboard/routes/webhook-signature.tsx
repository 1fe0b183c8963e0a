// Was this request signed by Postern? For somebody whose program refuses what it gets. Nothing of it leaves the browser.
import { type FormEvent, useState } from "react";
import { type Checked, checkSignature } from "../lib/check-signature.ts";
import { Button } from "../ui/button.tsx";
import { Field } from "../ui/field.tsx";
import { PageHead } from "../ui/page.tsx";
import { Tag } from "../ui/tag.tsx";
import { WebhookNav } from "../ui/webhook-nav.tsx";
import { When } from "../ui/when.tsx";

export function WebhookSignature() {
  const [checked, keep] = useState<Checked | null>(null);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "");
    // A form's text has CRLF for each line end; what was posted has what it has: JSON on one line has none.
    const body = text("body").replaceAll("\r\n", "\n");
    const [secret, signature, id, timestamp] = ["secret", "signature", "id", "timestamp"].map(text);
    void checkSignature({
      secret: secret ?? "",
      signature: signature ?? "",
      id: id ?? "",
      timestamp: timestamp ?? "",
      body,
    }).then(keep);
  };
  return (
    <>
      <PageHead title="Webhooks" />
      <WebhookNav />
      <div className="cols">
        <form onSubmit={submit} onChange={() => keep(null)} className="panel pad grid gap-4" noValidate>
          <p className="max-w-[64ch] text-ink-2">
            Paste a request that your program got. It is checked here in the browser: the secret is not sent anywhere.
          </p>
          <Field label="Signing secret" help="whsec_…, as it was shown when it was made">
            {(bound) => <input {...bound} name="secret" type="password" autoComplete="off" spellCheck={false} />}
          </Field>
          <Field label="Signature" help="The field X-Service-Signature, or webhook-signature">
            {(bound) => <input {...bound} name="signature" autoComplete="off" spellCheck={false} />}
          </Field>
          <details>
            <summary className="text-[13px] text-ink-2">Standard Webhooks: id and timestamp</summary>
            <div className="mt-3 grid gap-4 sm:grid-cols-2">
              <Field label="webhook-id">
                {(bound) => <input {...bound} name="id" autoComplete="off" spellCheck={false} />}
              </Field>
              <Field label="webhook-timestamp">
                {(bound) => <input {...bound} name="timestamp" autoComplete="off" spellCheck={false} />}
              </Field>
            </div>
          </details>
          <Field label="Body" help="Exactly as it came, before your program parsed it">
            {(bound) => <textarea {...bound} name="body" rows={8} spellCheck={false} />}
          </Field>
          <div className="acts mt-0!">
            <Button look="primary" type="submit">
              Check it
            </Button>
          </div>
        </form>
        <aside aria-live="polite" aria-label="The outcome">
          {checked === null ? (
            <p className="dim px-1 text-[13px]">The result appears here.</p>
          ) : (
            <section className="panel pad">
              <Tag tone={checked.isRight ? "good" : "bad"}>{checked.isRight ? "Genuine" : "Does not match"}</Tag>
              <p className="mt-2 text-ink-2">{checked.reason}</p>
              {checked.at && (
                <p className="dim mt-2 text-[13px]">
                  Signed <When at={checked.at} as="both" />
                </p>
              )}
            </section>
          )}
        </aside>
      </div>
    </>
  );
}
