// Forwards and replies of masked addresses that a server refused for good. They are kept for seven days, to be sent again.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client.ts";
import { maskedAlias, maskedFailed } from "../../api/masked-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { FailedActs, recipientOf } from "../../forms/masked/failed-acts.tsx";
import { FAILED_KINDS, type FailedFilters } from "../../lib/masked-filters.ts";
import { sayFailure } from "../../lib/masked-words.ts";
import { sayExactly, saySize } from "../../lib/times.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { When } from "../../ui/when.tsx";
import { MaskedNav } from "./nav.tsx";

const route = getRouteApi("/masked/failed");
type Failed = Schemas["MaskedFailed"];

export function FailedMail() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(maskedFailed(filters));
  const change = (changed: Partial<FailedFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Masked addresses" />
      <MaskedNav />
      <div className="filters">
        <Choice label="What" value={filters.kind} pick={(kind) => change({ kind: kind as FailedFilters["kind"] })}>
          {FAILED_KINDS.map((kind) => (
            <option key={kind} value={kind}>
              {WORDS[kind].many}
            </option>
          ))}
        </Choice>
        {filters.alias_id !== undefined && (
          <OfAlias id={filters.alias_id} drop={() => change({ alias_id: undefined })} />
        )}
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.failed.length === 0 ? <None filters={filters} /> : <Rows page={page} readAtMs={list.dataUpdatedAt} />
          }
        </Loaded>
      </div>
    </>
  );
}

const WORDS = {
  forward: { one: "Forward", many: "Forwards" },
  reply: { one: "Reply", many: "Replies" },
} as const;

function OfAlias({ id, drop }: { id: string; drop: () => void }) {
  const email = useQuery(maskedAlias(id)).data?.alias.email;
  return (
    <Button look="quiet" className="max-w-full" onClick={drop}>
      <span className="truncate leading-normal">Of {email ?? "one address"}</span> ×
    </Button>
  );
}

function None({ filters }: { filters: FailedFilters }) {
  if (Object.keys(filters).length > 0)
    return (
      <Empty
        title="No failed mail fits"
        acts={
          <Link to="/masked/failed" search={{}} className="btn">
            Show all
          </Link>
        }
      />
    );
  return (
    <Empty title="No mail failed">
      A forward that its mailbox's server refuses for good, and a reply that its contact's refuses, stand here for seven
      days, to be sent again.
    </Empty>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["MaskedFailedList"]; readAtMs: number }) {
  const filters = route.useSearch();
  return (
    <>
      <table className="table">
        <caption className="sr-only">Mail that failed, newest first</caption>
        <thead>
          <tr>
            <th className="hide-s w-[96px]">What</th>
            <th>For</th>
            <th className="r hide-s w-[112px]">Size</th>
            <th className="r hide-s w-[124px]">Kept until</th>
            <th className="hide-s w-[316px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.failed.map((mail) => (
            <Row key={mail.id} mail={mail} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="mail" readAtMs={readAtMs}>
        {page.failed.length === PAGE_ROWS && (
          <Link to="/masked/failed" search={{ ...filters, after: page.failed.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function Row({ mail }: { mail: Failed }) {
  const { kind, alias, alias_id, reason, size, created_at, expires_at } = mail;
  const why = sayFailure(reason);
  return (
    <tr>
      <td className="hide-s">{WORDS[kind].one}</td>
      <td className="py-2!" title={`${WORDS[kind].one} of ${alias} to ${recipientOf(mail)}`}>
        <div className="truncate">{recipientOf(mail)}</div>
        <div className="truncate text-[12.5px]">
          <span className="dim">{kind === "reply" ? "from " : "came for "}</span>
          <Link to="/masked/$id" params={{ id: alias_id }} search={{}} className="text-ink-2 hover:underline">
            {alias}
          </Link>
        </div>
        <div className="dim truncate text-[12.5px]" title={why}>
          {why}
        </div>
        <div className="show-s dim truncate text-[12.5px]">
          {saySize(size)}, kept until <When at={expires_at} />
        </div>
        <div className="show-s -ml-3">
          <FailedActs mail={mail} />
        </div>
      </td>
      <td className="r hide-s">{saySize(size)}</td>
      <td className="r dim hide-s" title={`Failed ${sayExactly(created_at)}`}>
        <When at={expires_at} />
      </td>
      <td className="r hide-s">
        <FailedActs mail={mail} />
      </td>
    </tr>
  );
}
