// The domain aliases: which addresses take mail, and what is done with it.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client.ts";
import { aliases } from "../../api/inbound-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { DomainChoice } from "../../forms/domain-choice.tsx";
import { addressOf, EditAlias } from "../../forms/inbound/edit-alias.tsx";
import { SearchField } from "../../forms/search-field.tsx";
import { ACTION_WORDS, ACTIONS, type AliasFilters } from "../../lib/inbound-filters.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { InboundNav } from "./nav.tsx";

const route = getRouteApi("/inbound/aliases");
type Alias = Schemas["Alias"];

export function Aliases() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [edited, edit] = useState<Alias | "new" | null>(null);
  const list = useQuery(aliases(filters));
  const change = (changed: Partial<AliasFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead
        title="Inbound"
        acts={
          <Button look="primary" onClick={() => edit("new")}>
            New alias
          </Button>
        }
      />
      <InboundNav />
      <div className="filters">
        <SearchField label="Search addresses" value={filters.q} search={(q) => change({ q })} />
        <DomainChoice value={filters.domain_id} pick={(domain_id) => change({ domain_id })} />
        <Choice
          label="Action"
          value={filters.action}
          pick={(action) => change({ action: action as AliasFilters["action"] })}
        >
          {ACTIONS.map((action) => (
            <option key={action} value={action}>
              {ACTION_WORDS[action]}
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.aliases.length === 0 ? (
              <None filters={filters} make={() => edit("new")} />
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} edit={edit} />
            )
          }
        </Loaded>
      </div>
      <EditAlias edited={edited} close={() => edit(null)} />
    </>
  );
}

function None({ filters, make }: { filters: AliasFilters; make: () => void }) {
  if (Object.keys(filters).length > 0)
    return (
      <Empty
        title="No alias fits"
        acts={
          <Link to="/inbound/aliases" search={{}} className="btn">
            Show all
          </Link>
        }
      />
    );
  return (
    <Empty
      title="No alias yet"
      acts={
        <Button changes onClick={make}>
          Make the first alias
        </Button>
      }
    >
      An alias is an address that takes mail, or a pattern such as support*. Mail to other addresses is refused, unless
      the domain takes everything.
    </Empty>
  );
}

type RowsGiven = { page: Schemas["AliasList"]; readAtMs: number; edit: (alias: Alias) => void };

function Rows({ page, readAtMs, edit }: RowsGiven) {
  const filters = route.useSearch();
  return (
    <>
      <table className="table">
        <caption className="sr-only">Aliases, newest first</caption>
        <thead>
          <tr>
            <th>Address</th>
            <th className="hide-s w-[130px]">Action</th>
            <th className="hide-s w-[28%]">Where to</th>
            <th className="r hide-s w-[90px]">Mails</th>
            <th className="r hide-s w-[124px]">Last mail</th>
            <th className="w-[108px] sm:w-[124px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.aliases.map((alias) => (
            <tr key={alias.id}>
              <td title={alias.description || addressOf(alias)}>
                {addressOf(alias)} {!alias.active && <Tag tone="idle">Off</Tag>}
                {alias.description && <span className="dim hide-s"> · {alias.description}</span>}
                <div className="show-s dim truncate text-[12.5px]">
                  {ACTION_WORDS[alias.action]} · {whereTo(alias)}
                </div>
              </td>
              <td className="hide-s">{ACTION_WORDS[alias.action]}</td>
              <td className="hide-s text-ink-2" title={alias.forward_to.join(", ")}>
                {whereTo(alias)}
              </td>
              <td className="r hide-s">{alias.emails_received.toLocaleString("en")}</td>
              <td className="r dim hide-s">
                {alias.last_received_at === null ? "none yet" : <When at={alias.last_received_at} />}
              </td>
              <td className="r">
                <Button changes look="quiet" aria-label={`Change ${addressOf(alias)}`} onClick={() => edit(alias)}>
                  Change
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="alias" many="aliases" readAtMs={readAtMs}>
        {page.aliases.length === PAGE_ROWS && (
          <Link to="/inbound/aliases" search={{ ...filters, after: page.aliases.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function whereTo({ action, forward_to, webhook_ids }: Alias): string {
  if (action === "forward") return forward_to.join(", ");
  if (action !== "webhook") return "–";
  if (webhook_ids.length === 0) return "the domain's endpoints";
  return webhook_ids.length === 1 ? "1 endpoint" : `${webhook_ids.length} endpoints`;
}
