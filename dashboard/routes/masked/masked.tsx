// The masked addresses: whom each hides, what passed, and making one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { maskedAliases } from "../../api/masked-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { EditMasked } from "../../forms/masked/edit-masked.tsx";
import { SearchField } from "../../forms/search-field.tsx";
import { useAct } from "../../lib/act.ts";
import { ALIAS_STATES, type MaskedFilters } from "../../lib/masked-filters.ts";
import { wordOf } from "../../lib/states.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { MaskedNav } from "./nav.tsx";

const route = getRouteApi("/masked");
type Alias = Schemas["MaskedAlias"];

export function Masked() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const [isMaking, make] = useState(false);
  const list = useQuery(maskedAliases(filters));
  const change = (changed: Partial<MaskedFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead
        title="Masked addresses"
        acts={
          <Button look="primary" onClick={() => make(true)}>
            New alias
          </Button>
        }
      />
      <MaskedNav />
      <div className="filters">
        <SearchField label="Search address or note" value={filters.q} search={(q) => change({ q })} />
        <Choice
          label="State"
          value={filters.state}
          pick={(state) => change({ state: state as MaskedFilters["state"] })}
        >
          {ALIAS_STATES.map((state) => (
            <option key={state} value={state}>
              {wordOf(state)}
            </option>
          ))}
        </Choice>
        {filters.pattern && (
          <Button look="quiet" onClick={() => change({ pattern: undefined })}>
            Made by {filters.pattern} ×
          </Button>
        )}
        {filters.forward_to && (
          <Button look="quiet" onClick={() => change({ forward_to: undefined })}>
            To {filters.forward_to} ×
          </Button>
        )}
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.aliases.length === 0 ? (
              <None filters={filters} make={() => make(true)} />
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <EditMasked open={isMaking} close={() => make(false)} />
    </>
  );
}

function None({ filters, make }: { filters: MaskedFilters; make: () => void }) {
  if (Object.keys(filters).length > 0)
    return (
      <Empty
        title="No alias fits"
        acts={
          <Link to="/masked" search={{}} className="btn">
            Show all
          </Link>
        }
      />
    );
  return (
    <Empty title="No masked address yet" acts={<Button onClick={make}>Make the first alias</Button>}>
      A masked address forwards to a real mailbox and never shows it. Replies leave from the masked address.
    </Empty>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["MaskedAliasList"]; readAtMs: number }) {
  const filters = route.useSearch();
  return (
    <>
      <table className="table">
        <caption className="sr-only">Masked addresses, newest first</caption>
        <thead>
          <tr>
            <th>Address</th>
            <th className="hide-s w-[24%]">Hides</th>
            <th className="r hide-s w-[94px]">Forwarded</th>
            <th className="r hide-s w-[80px]">Replies</th>
            <th className="r hide-s w-[80px]">Blocked</th>
            <th className="r w-[98px] sm:w-[130px]">Last mail</th>
          </tr>
        </thead>
        <tbody>
          {page.aliases.map((alias) => (
            <Row key={alias.id} alias={alias} isDeleted={filters.state === "deleted"} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="alias" many="aliases" readAtMs={readAtMs}>
        {page.aliases.length === PAGE_ROWS && (
          <Link to="/masked" search={{ ...filters, after: page.aliases.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function Row({ alias, isDeleted }: { alias: Alias; isDeleted: boolean }) {
  const { id, email, masked_description: note, forward_to, last_activity_at } = alias;
  return (
    <tr>
      <td title={note === null ? email : `${email}: ${note}`}>
        {isDeleted ? (
          <>
            {email} <Restore id={id} email={email} />
          </>
        ) : (
          <Link to="/masked/$id" params={{ id }} search={{}} className="row-link">
            {email}
          </Link>
        )}{" "}
        {!alias.active && !isDeleted && (
          <Tag tone={alias.disabled_reason === "destination_bouncing" ? "bad" : "idle"}>Off</Tag>
        )}
        {note && <span className="dim hide-s"> · {note}</span>}
        <div className="show-s dim truncate text-[12.5px]">{note || forward_to.join(", ")}</div>
      </td>
      <td className="hide-s text-ink-2" title={forward_to.join(", ")}>
        {forward_to.join(", ")}
      </td>
      <td className="r hide-s">{alias.emails_forwarded.toLocaleString("en")}</td>
      <td className="r hide-s">{alias.emails_replied.toLocaleString("en")}</td>
      <td className="r hide-s">{alias.emails_blocked.toLocaleString("en")}</td>
      <td className="r dim">{last_activity_at === null ? "none yet" : <When at={last_activity_at} />}</td>
    </tr>
  );
}

function Restore({ id, email }: { id: string; email: string }) {
  const restoring = useAct({
    run: () => take(v1.POST("/v1/masked/aliases/{id}/restore", { params: { path: { id } } })),
    refresh: [["masked"]],
    done: () => `${email} is back.`,
  });
  return (
    <Button
      look="quiet"
      busy={restoring.isPending && "Restoring…"}
      aria-label={`Restore ${email}`}
      onClick={() => restoring.mutate(undefined)}
    >
      Restore
    </Button>
  );
}
