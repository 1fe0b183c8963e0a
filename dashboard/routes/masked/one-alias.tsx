// One masked address: what happened on it, its contacts with their reply addresses, and a trial of a reply.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { maskedAlias, maskedDestinations } from "../../api/masked-queries.ts";
import { CheckReply } from "../../forms/masked/check-reply.tsx";
import { MaskedActs } from "../../forms/masked/masked-acts.tsx";
import { DESTINATION_WORDS, type MaskedAliasView } from "../../lib/masked-filters.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Loaded } from "../../ui/states.tsx";
import { TabBar } from "../../ui/tab-bar.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { Activity } from "./activity.tsx";
import { Contacts } from "./contacts.tsx";

const route = getRouteApi("/masked/$id");
type Alias = Schemas["MaskedAlias"];
const VIEWS = [
  ["activity", "Activity"],
  ["contacts", "Contacts"],
  ["check", "Try a reply"],
] as const;

const crumb = (
  <Link to="/masked" search={{}} className="crumb">
    Masked
  </Link>
);

export function OneMaskedAlias() {
  const { id } = route.useParams();
  const { show = "activity" } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(maskedAlias(id));
  const found = query.data?.alias;
  return (
    <>
      <PageHead
        title={found?.email ?? "Masked address"}
        crumb={crumb}
        beside={found && <Tag tone={found.active ? "good" : "idle"}>{found.active ? "On" : "Off"}</Tag>}
        acts={found && <MaskedActs alias={found} />}
      />
      {found ? (
        <div className="cols">
          <div className="min-w-0">
            <TabBar label="Of this address">
              {VIEWS.map(([name, word]) => (
                <button
                  key={name}
                  type="button"
                  aria-current={show === name ? "page" : undefined}
                  onClick={() => void navigate({ search: viewOf(name) })}
                >
                  {word}
                </button>
              ))}
            </TabBar>
            {show === "activity" && <Activity id={id} />}
            {show === "contacts" && <Contacts id={id} />}
            {show === "check" && <CheckReply id={id} />}
          </div>
          <About alias={found} />
        </div>
      ) : (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      )}
    </>
  );
}

function viewOf(name: (typeof VIEWS)[number][0]): MaskedAliasView {
  return name === "activity" ? {} : { show: name };
}

function About({ alias }: { alias: Alias }) {
  return (
    <aside className="stack" aria-label="About this address">
      <section className="panel">
        <div className="stats pairs">
          <Figure value={alias.emails_forwarded} of="forwarded" />
          <Figure value={alias.emails_replied} of="replies" />
          <Figure value={alias.emails_received} of="received" />
          <Figure value={alias.emails_blocked} of="blocked" />
        </div>
      </section>
      <section className="panel pad">
        <h2>Details</h2>
        <dl className="facts">
          <dt>Address</dt>
          <dd className="copy">
            {alias.email}
            <CopyButton text={alias.email} what="the address" />
          </dd>
          <dt>Hides</dt>
          <dd>
            {alias.forward_to.map((email) => (
              <Hidden key={email} email={email} />
            ))}
          </dd>
          {alias.masked_description && (
            <>
              <dt>Note</dt>
              <dd>{alias.masked_description}</dd>
            </>
          )}
          {alias.pattern !== null && (
            <>
              <dt>Made by</dt>
              <dd>
                <Link to="/masked" search={{ pattern: alias.pattern }} className="underline underline-offset-2">
                  {alias.pattern}
                </Link>
              </dd>
            </>
          )}
          <dt>Replies</dt>
          <dd>{alias.reply_enabled ? "leave from it" : "are off"}</dd>
          <dt>Last mail</dt>
          <dd>{alias.last_activity_at === null ? "none yet" : <When at={alias.last_activity_at} as="both" />}</dd>
          <dt>Failed</dt>
          <dd>
            <Link to="/masked/failed" search={{ alias_id: alias.id }} className="underline underline-offset-2">
              Mail that is kept
            </Link>
          </dd>
          <dt>Made</dt>
          <dd>
            <When at={alias.created_at} as="both" />
          </dd>
        </dl>
        {alias.disabled_reason === "destination_bouncing" && (
          <p className="problem mt-3">
            Every mailbox behind it bounced. Confirm one again, or forward to another that is confirmed.
          </p>
        )}
      </section>
    </aside>
  );
}

function Figure({ value, of }: { value: number; of: string }) {
  return (
    <div>
      <b>{value.toLocaleString("en")}</b>
      <span>{of}</span>
    </div>
  );
}

/** A mailbox, and what keeps mail from it. */
function Hidden({ email }: { email: string }) {
  const found = useQuery(maskedDestinations({ email })).data?.destinations.find((one) => one.email === email);
  const [tone, word] = DESTINATION_WORDS[found?.status ?? "verified"];
  return (
    <div>
      {found ? (
        <Link to="/masked/destinations/$id" params={{ id: found.id }} search={{}} className="hover:underline">
          {email}
        </Link>
      ) : (
        email
      )}{" "}
      {found && found.status !== "verified" && (
        <Link to="/masked/destinations" search={{ email }}>
          <Tag tone={tone}>{word}</Tag>
        </Link>
      )}
    </div>
  );
}
