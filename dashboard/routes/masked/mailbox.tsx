// One real mailbox: whether its owner confirmed, the patterns that make aliases for it, and the key its mail is encrypted for.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { maskedDestination } from "../../api/masked-queries.ts";
import { useAskAgain, useRemoveMailbox } from "../../forms/masked/mailbox-acts.ts";
import { DESTINATION_WORDS } from "../../lib/masked-filters.ts";
import { sayCount } from "../../lib/times.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { Patterns } from "./patterns.tsx";
import { PgpKey } from "./pgp-key.tsx";

const route = getRouteApi("/masked/destinations/$id");
type Destination = Schemas["MaskedDestination"];

const crumb = (
  <Link to="/masked/destinations" search={{}} className="crumb">
    Destinations
  </Link>
);

export function Mailbox() {
  const { id } = route.useParams();
  const query = useQuery(maskedDestination(id));
  const found = query.data?.destination;
  const [tone, word] = DESTINATION_WORDS[found?.status ?? "pending"];
  return (
    <>
      <PageHead
        title={found?.email ?? "Mailbox"}
        crumb={crumb}
        beside={found && <Tag tone={tone}>{word}</Tag>}
        acts={found && <Acts destination={found} />}
      />
      {found ? (
        <div className="cols">
          <Patterns id={id} />
          <aside className="stack" aria-label="About this mailbox">
            <PgpKey destination={found} />
            <Details destination={found} />
          </aside>
        </div>
      ) : (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      )}
    </>
  );
}

function Acts({ destination }: { destination: Destination }) {
  const navigate = route.useNavigate();
  const [isLeaving, leave] = useState(false);
  const asking = useAskAgain(destination);
  const removing = useRemoveMailbox(() => void navigate({ to: "/masked/destinations", search: {} }));
  return (
    <>
      <Button look="quiet" onClick={() => leave(true)}>
        Remove
      </Button>
      {destination.status !== "verified" && (
        <Button look="primary" busy={asking.isPending && "Asking…"} onClick={() => asking.mutate(undefined)}>
          Ask again
        </Button>
      )}
      <Confirm
        title={`Remove ${destination.email}?`}
        act="Remove the mailbox"
        open={isLeaving}
        busy={removing.isPending}
        close={() => leave(false)}
        confirm={() => removing.mutate(destination, { onSettled: () => leave(false) })}
      >
        Aliases forward to their other mailboxes from then on. While it is the only mailbox of an alias, it stays. Its
        patterns and its key go with it.
      </Confirm>
    </>
  );
}

function Details({ destination }: { destination: Destination }) {
  const { email, aliases, confirmed_at, confirmation_sent_at, suspended_reason, created_at } = destination;
  return (
    <section className="panel pad">
      <h2>Details</h2>
      <dl className="facts">
        <dt>Aliases</dt>
        <dd>
          <Link to="/masked" search={{ forward_to: email }} className="underline underline-offset-2">
            {sayCount(aliases, { one: "alias", many: "aliases" })}
          </Link>
        </dd>
        <dt>{confirmed_at === null ? "Asked" : "Confirmed"}</dt>
        <dd>
          {confirmed_at !== null ? (
            <When at={confirmed_at} as="both" />
          ) : confirmation_sent_at !== null ? (
            <When at={confirmation_sent_at} as="both" />
          ) : (
            "not yet: a mailbox gets at most three such mails a day"
          )}
        </dd>
        <dt>Added</dt>
        <dd>
          <When at={created_at} as="both" />
        </dd>
      </dl>
      {suspended_reason !== null && (
        <p className="problem mt-3">
          It bounced: {suspended_reason}. “Ask again” mails its owner a link, which takes it up again.
        </p>
      )}
    </section>
  );
}
