// The API keys: made here, shown once, revoked here. What a key is called and when it was last used tells which one can go.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../api/client.ts";
import { apiKeys, PAGE_ROWS } from "../api/queries.ts";
import { MakeKey } from "../forms/make-key.tsx";
import { useAct } from "../lib/act.ts";
import { useOwn } from "../lib/own.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { SettingsHead } from "../ui/settings-head.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/keys");
type Key = Schemas["ApiKey"];

export function Keys() {
  const [isMaking, make] = useState(false);
  const view = route.useSearch();
  const list = useQuery(apiKeys(view));
  return (
    <>
      <SettingsHead
        title="API keys"
        acts={
          <Button look="primary" onClick={() => make(true)}>
            Make a key
          </Button>
        }
      />
      <div className="panel">
        <Loaded of={list}>
          {(page) =>
            page.total === 0 ? (
              <Empty
                title="No key yet"
                acts={
                  <Button changes onClick={() => make(true)}>
                    Make your first key
                  </Button>
                }
              >
                Programs show a key with each request. A test key checks everything and sends nothing.
              </Empty>
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <MakeKey open={isMaking} close={() => make(false)} />
    </>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["ApiKeyList"]; readAtMs: number }) {
  const [leaving, revoke] = useState<Key | null>(null);
  const revoking = useAct({
    run: ({ id }: Key) => take(v1.DELETE("/v1/api-keys/{id}", { params: { path: { id } } })),
    refresh: [["keys"]],
    done: (_out, { name }) => `“${name}” works no longer.`,
  });
  const close = () => revoke(null);
  return (
    <>
      <table className="table">
        <caption className="sr-only">API keys</caption>
        <thead>
          <tr>
            <th>Name</th>
            <th className="w-[84px] sm:w-[110px]">Kind</th>
            <th className="hide-s w-[24%]">Key</th>
            <th className="r hide-s w-[140px]">Last used</th>
            <th className="w-[112px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.keys.map((key) => (
            <Row key={key.id} apiKey={key} revoke={() => revoke(key)} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="key" readAtMs={readAtMs}>
        {page.keys.length === PAGE_ROWS && (
          <Link to="/keys" search={{ after: page.keys.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
      <Confirm
        title={`Revoke “${leaving?.name}”?`}
        act="Revoke the key"
        open={leaving !== null}
        busy={revoking.isPending}
        close={close}
        confirm={() => leaving && revoking.mutate(leaving, { onSettled: close })}
      >
        Every request with it is refused from that moment. This cannot be undone.
      </Confirm>
    </>
  );
}

function Row({ apiKey, revoke }: { apiKey: Key; revoke: () => void }) {
  // Live keys are for admins and owners.
  const isTheirs = useOwn().organization.role !== "developer" || apiKey.environment === "test";
  const { name, environment, key_prefix, last_four, last_used_at, revoked_at } = apiKey;
  return (
    <tr>
      <td title={name}>{name}</td>
      <td>
        <Tag tone={environment === "live" ? "good" : "idle"}>{environment === "live" ? "Live" : "Test"}</Tag>
      </td>
      <td className="hide-s">
        <code>
          {key_prefix}…{last_four}
        </code>
      </td>
      <td className="r dim hide-s">{last_used_at === null ? "never" : <When at={last_used_at} as="relative" />}</td>
      <td className="r">
        {revoked_at !== null ? (
          <span className="dim">revoked</span>
        ) : (
          isTheirs && (
            <Button changes look="quiet" onClick={revoke} aria-label={`Revoke ${name}`}>
              Revoke
            </Button>
          )
        )}
      </td>
    </tr>
  );
}
