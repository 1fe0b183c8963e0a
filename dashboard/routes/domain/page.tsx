// What stands around each page of one domain: its name and state, what can be done, and the ways to its other pages.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { domain } from "../../api/queries.ts";
import { useAct } from "../../lib/act.ts";
import { toUnicode } from "../../lib/domain-names.ts";
import { receivesMail, sendsMail } from "../../lib/domain-types.ts";
import { toneOfDomain, wordOf } from "../../lib/states.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { AsciiName } from "../../ui/domain-name.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { TabBar } from "../../ui/tab-bar.tsx";
import { Tag } from "../../ui/tag.tsx";

type Domain = Schemas["Domain"];
type Given = { id: string; acts?: ReactNode; needs?: "sending" | "receiving"; children: (domain: Domain) => ReactNode };

const TABS = [
  ["/domains/$id", "Records"],
  ["/domains/$id/dkim", "DKIM"],
  ["/domains/$id/warming", "Warming"],
  ["/domains/$id/statistics", "Statistics"],
  ["/domains/$id/dmarc", "DMARC"],
  ["/domains/$id/tls", "TLS"],
  ["/domains/$id/spam", "Spam"],
] as const;

const crumb = (
  <Link to="/domains" className="crumb">
    Domains
  </Link>
);

/** `acts` stand in place of “Check now”. `needs`: what the domain must do for this page to be about anything. */
export function DomainPage({ id, acts, needs, children }: Given) {
  const query = useQuery(domain(id));
  const found = query.data;
  return (
    <>
      <PageHead
        title={found ? toUnicode(found.domain) : "Domain"}
        crumb={crumb}
        beside={
          found && (
            <>
              <AsciiName name={found.domain} />
              <Tag tone={toneOfDomain(found.status)}>{wordOf(found.status)}</Tag>
            </>
          )
        }
        acts={acts ?? (found && <DomainActs domain={found} />)}
      />
      <TabBar label="Of this domain">
        {TABS.map(([to, name]) => (
          <Link key={to} to={to} params={{ id }} search={{}} activeOptions={{ exact: true, includeSearch: false }}>
            {name}
          </Link>
        ))}
      </TabBar>
      {found === undefined ? (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      ) : isMissing(found, needs) ? (
        <NotForIt domain={found} needs={needs} />
      ) : (
        children(found)
      )}
    </>
  );
}

function isMissing({ type }: Domain, needs: Given["needs"]): boolean {
  if (needs === "sending") return !sendsMail(type);
  return needs === "receiving" && !receivesMail(type);
}

function NotForIt({ domain: { id, domain: name }, needs }: { domain: Domain; needs: Given["needs"] }) {
  return (
    <div className="panel">
      <Empty
        title={needs === "sending" ? `${name} does not send` : `${name} does not receive`}
        acts={
          <Link to="/domains/$id" params={{ id }} className="btn">
            To its records
          </Link>
        }
      >
        This page is about domains that {needs === "sending" ? "send" : "receive"} mail. What a domain is for can be
        changed below its records.
      </Empty>
    </div>
  );
}

function DomainActs({ domain: { id, domain: name } }: { domain: Domain }) {
  const [isAsking, ask] = useState(false);
  const navigate = useNavigate();
  const checking = useAct({
    run: () => take(v1.POST("/v1/domains/{id}/verify", { params: { path: { id } } })),
    refresh: [["domain", id], ["domains"]],
    done: ({ summary }) => summary,
  });
  const deleting = useAct({
    run: () => take(v1.DELETE("/v1/domains/{id}", { params: { path: { id } } })),
    refresh: [["domains"]],
    done: () => {
      void navigate({ to: "/domains" });
      return `${name} is deleted.`;
    },
  });
  return (
    <>
      <Button look="quiet" onClick={() => ask(true)}>
        Delete
      </Button>
      <Button busy={checking.isPending && "Checking…"} onClick={() => checking.mutate(undefined)}>
        Check now
      </Button>
      <Confirm
        title={`Delete ${name}?`}
        act="Delete the domain"
        open={isAsking}
        busy={deleting.isPending}
        close={() => ask(false)}
        confirm={() => deleting.mutate(undefined, { onSettled: () => ask(false) })}
      >
        Nothing is sent from it or received for it any more, and its DKIM keys are gone. A new domain of that name gets
        new keys.
      </Confirm>
    </>
  );
}
