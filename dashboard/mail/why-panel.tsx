// "Why did this not arrive?", for one recipient: the state in a sentence, the server's own words, and links to what can be done.
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { useNow } from "../lib/now.ts";
import { sayWhy } from "../lib/why.ts";

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
            <Link to="/emails" search={{ to: recipient.email }} className="btn">
              Other e-mails to this address
            </Link>
            <Link to="/emails" search={{ domain_id: email.domain_id, status: email.status }} className="btn quiet">
              Others of this domain with this state
            </Link>
          </div>
        )}
      </div>
    </section>
  );
}
