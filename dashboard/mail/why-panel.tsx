// "Why did this not arrive?", for one recipient: the state in a sentence, the server's own words, and links to what can be done.
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { useNow } from "../lib/now.ts";
import { sayWhy } from "../lib/why.ts";

/** States after which the address may stand on the list. */
const HELD_BACK = new Set(["bounced", "complained", "suppressed"]);

type Given = {
  email: Schemas["Email"];
  recipient: Schemas["Recipient"];
  events: readonly Schemas["EmailEvent"][];
  isAlone: boolean;
};

export function WhyPanel({ email, recipient, events, isAlone }: Given) {
  const nowMs = useNow();
  const { tone, title, text, said } = sayWhy({ recipient, events, nowMs });
  return (
    <section className={`panel why ${tone}`} aria-label={`What became of it for ${recipient.email}`}>
      <span />
      <div className="body">
        {!isAlone && <div className="dim text-[12.5px]">{recipient.email}</div>}
        <h2>{title}</h2>
        <p>{text}</p>
        {said !== null && <code className="said">{said}</code>}
        {tone === "bad" && (
          <div className="acts">
            {HELD_BACK.has(recipient.status) && (
              <Link to="/suppressions" search={{ query: recipient.email }} className="btn">
                See its suppression
              </Link>
            )}
            <Link to="/emails" search={{ to: recipient.email }} className="btn">
              Other e-mails to this address
            </Link>
            <Link to="/domains/$id" params={{ id: email.domain_id }} className="btn quiet">
              The sending domain
            </Link>
          </div>
        )}
      </div>
    </section>
  );
}
