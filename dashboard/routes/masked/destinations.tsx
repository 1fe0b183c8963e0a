// The real mailboxes behind masked addresses. Nothing is forwarded to one before its owner has confirmed.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { maskedDestinations } from "../../api/masked-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { AddDestination } from "../../forms/masked/add-destination.tsx";
import { useAskAgain, useRemoveMailbox } from "../../forms/masked/mailbox-acts.ts";
import { SearchField } from "../../forms/search-field.tsx";
import { DESTINATION_STATES, DESTINATION_WORDS, type DestinationFilters } from "../../lib/masked-filters.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { MaskedNav } from "./nav.tsx";

const route = getRouteApi("/masked/destinations");
type Destination = Schemas["MaskedDestination"];

export function Destinations() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [isAdding, add] = useState(false);
  const list = useQuery(maskedDestinations(filters));
  const change = (changed: Partial<DestinationFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  const isNarrowed = Object.keys(filters).length > 0;
  return (
    <>
      <PageHead
        title="Masked addresses"
        acts={
          <Button look="primary" onClick={() => add(true)}>
            Add a mailbox
          </Button>
        }
      />
      <MaskedNav />
      <div className="filters">
        <SearchField label="Whole address" value={filters.email} search={(email) => change({ email })} />
        <Choice
          label="State"
          value={filters.status}
          pick={(status) => change({ status: status as DestinationFilters["status"] })}
        >
          {DESTINATION_STATES.map((status) => (
            <option key={status} value={status}>
              {DESTINATION_WORDS[status][1]}
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.destinations.length > 0 ? (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            ) : isNarrowed ? (
              <Empty
                title="No mailbox fits"
                acts={
                  <Link to="/masked/destinations" search={{}} className="btn">
                    Show all
                  </Link>
                }
              >
                Enter the whole address.
              </Empty>
            ) : (
              <Empty title="No mailbox yet">
                A mailbox that an alias forwards to stands here, and whether its owner has confirmed.
              </Empty>
            )
          }
        </Loaded>
      </div>
      <AddDestination open={isAdding} close={() => add(false)} />
    </>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["MaskedDestinationList"]; readAtMs: number }) {
  const filters = route.useSearch();
  const [leaving, remove] = useState<Destination | null>(null);
  const removing = useRemoveMailbox(() => remove(null));
  return (
    <>
      <table className="table">
        <caption className="sr-only">Mailboxes, newest first</caption>
        <thead>
          <tr>
            <th className="w-[136px] sm:w-[150px]">State</th>
            <th>Mailbox</th>
            <th className="r hide-s w-[90px]">Aliases</th>
            <th className="r hide-s w-[208px]">Since</th>
            <th className="hide-s w-[256px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.destinations.map((destination) => (
            <Row key={destination.id} destination={destination} remove={() => remove(destination)} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="mailbox" many="mailboxes" readAtMs={readAtMs}>
        {page.destinations.length === PAGE_ROWS && (
          <Link
            to="/masked/destinations"
            search={{ ...filters, after: page.destinations.at(-1)?.id }}
            className="btn quiet"
          >
            Older
          </Link>
        )}
      </ListFoot>
      <Confirm
        title={`Remove ${leaving?.email}?`}
        act="Remove the mailbox"
        open={leaving !== null}
        busy={removing.isPending}
        close={() => remove(null)}
        confirm={() => leaving && removing.mutate(leaving, { onSettled: () => remove(null) })}
      >
        Aliases forward to their other mailboxes from then on. While it is the only mailbox of an alias, it stays.
      </Confirm>
    </>
  );
}

function Row({ destination, remove }: { destination: Destination; remove: () => void }) {
  const { id, email, status, aliases, pgp_key, confirmation_sent_at, confirmed_at } = destination;
  const [tone, word] = DESTINATION_WORDS[status];
  const asking = useAskAgain(destination);
  const acts = (
    <>
      {status !== "verified" && (
        <Button changes look="quiet" disabled={asking.isPending} onClick={() => asking.mutate(undefined)}>
          Ask again
        </Button>
      )}
      <Button changes look="quiet" onClick={remove} aria-label={`Remove ${email}`}>
        Remove
      </Button>
    </>
  );
  return (
    <tr>
      <td>
        <Tag tone={tone}>{word}</Tag>
      </td>
      <td title={destination.suspended_reason ?? email}>
        <Link to="/masked/destinations/$id" params={{ id }} search={{}} className="row-link">
          {email}
        </Link>
        {pgp_key !== null && <span className="dim hide-s"> · encrypted</span>}
        <div className="show-s -ml-3">{acts}</div>
      </td>
      <td className="r hide-s">
        <Link to="/masked" search={{ forward_to: email }} className="relative z-1 underline underline-offset-2">
          <span className="sr-only">Aliases of {email}: </span>
          {aliases.toLocaleString("en")}
        </Link>
      </td>
      <td className="r dim hide-s">
        {confirmed_at !== null ? (
          <When at={confirmed_at} />
        ) : confirmation_sent_at !== null ? (
          <>
            asked <When at={confirmation_sent_at} as="relative" />
          </>
        ) : (
          "not asked yet"
        )}
      </td>
      <td className="r hide-s">{acts}</td>
    </tr>
  );
}
