// The organizations that wait for a review, each with what it says it will send and what it did so far. Nothing is shown where nobody
// waits.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { PeopleSchemas } from "../../api/client.ts";
import { review, reviews } from "../../api/operator-queries.ts";
import type { useSettle } from "../../forms/operator/settle.ts";
import { sayCount } from "../../lib/times.ts";
import { Button } from "../../ui/button.tsx";
import { Loaded } from "../../ui/states.tsx";
import { When } from "../../ui/when.tsx";

type Settle = ReturnType<typeof useSettle>;
type Organization = PeopleSchemas["OperatedOrganization"];

export function Reviews({ settle }: { settle: Settle }) {
  const waiting = useQuery(reviews).data;
  if (waiting === undefined) return null;
  const more = waiting.total - waiting.organizations.length;
  return (
    <>
      {waiting.organizations.map((one) => (
        <OneReview key={one.id} one={one} settle={settle} />
      ))}
      {more > 0 && (
        <p className="dim">
          <Link to="/operator/organizations" search={{ state: "pending_review" }} className="underline">
            {sayCount(more, { one: "more waits", many: "more wait" })} for a review
          </Link>
        </p>
      )}
    </>
  );
}

function OneReview({ one: { id, name, purpose, created_at }, settle }: { one: Organization; settle: Settle }) {
  return (
    <section className="panel why warn" aria-label={`Review of ${name}`}>
      <span />
      <div className="body">
        <h2>{name} waits for your review</h2>
        <p>{purpose ? `“${purpose}”` : "It did not say what it will send."}</p>
        <Figures id={id} created_at={created_at} />
        <p className="dim mt-2 text-[12.5px]">Test keys work; live mail leaves once it is approved.</p>
        <div className="acts">
          <Button
            disabled={settle.isPending}
            aria-label={`Approve ${name}`}
            onClick={() => settle.mutate({ id, state: "active" })}
          >
            Approve
          </Button>
          <Button
            look="quiet"
            disabled={settle.isPending}
            aria-label={`Refuse ${name}`}
            onClick={() => settle.mutate({ id, state: "suspended" })}
          >
            Refuse
          </Button>
        </div>
      </div>
    </section>
  );
}

function Figures({ id, created_at }: { id: string; created_at: string }) {
  const query = useQuery(review(id));
  return (
    <Loaded of={query} rows={2}>
      {({ review: { test_mails, domains, people } }) => (
        <dl className="facts mt-3">
          <dt>Created</dt>
          <dd>
            <When at={created_at} as="both" />
            {people.length > 0 && <> by {people.map(({ email }) => email).join(", ")}</>}
          </dd>
          <dt>Domains</dt>
          <dd>
            {domains.length === 0
              ? "none yet"
              : domains.map(({ domain, status }) => `${domain} (${status})`).join(", ")}
          </dd>
          <dt>Test mode</dt>
          <dd className="num">{sayCount(test_mails, { one: "mail" })}</dd>
        </dl>
      )}
    </Loaded>
  );
}
