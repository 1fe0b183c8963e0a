// The patterns of a mailbox: mail to an address that one of them takes makes an alias.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { maskedPatterns } from "../../api/masked-queries.ts";
import { PAGE_ROWS } from "../../api/queries.ts";
import { AddPattern } from "../../forms/masked/add-pattern.tsx";
import { useAct } from "../../lib/act.ts";
import { sayCount } from "../../lib/times.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { When } from "../../ui/when.tsx";

const route = getRouteApi("/masked/destinations/$id");
type Pattern = Schemas["MaskedPattern"];

export function Patterns({ id }: { id: string }) {
  const { after } = route.useSearch();
  const [isAdding, add] = useState(false);
  const list = useQuery(maskedPatterns(id, after));
  const adding = (
    <Button changes onClick={() => add(true)}>
      Add a pattern
    </Button>
  );
  const isEmpty = list.data?.patterns.length === 0 && after === undefined;
  return (
    <section className="panel" aria-label="Patterns" aria-busy={list.isPlaceholderData}>
      {!isEmpty && (
        <div className="pad flex items-start gap-4">
          <div className="min-w-0 grow">
            <h2>Patterns</h2>
            <p className="text-[13px] text-ink-2">The first mail to an address that one takes makes the alias.</p>
          </div>
          {adding}
        </div>
      )}
      <Loaded of={list} rows={3}>
        {(page) =>
          isEmpty ? (
            <Empty title="No pattern yet" acts={adding}>
              With a pattern such as <code>*.lena@own.example</code> or <code>*@own.example</code> you make up an
              address where you need one: its first mail makes the alias.
            </Empty>
          ) : (
            <Rows id={id} page={page} readAtMs={list.dataUpdatedAt} />
          )
        }
      </Loaded>
      <AddPattern id={id} open={isAdding} close={() => add(false)} />
    </section>
  );
}

function Rows({ id, page, readAtMs }: { id: string; page: Schemas["MaskedPatternList"]; readAtMs: number }) {
  const [leaving, remove] = useState<Pattern | null>(null);
  const removing = useAct({
    run: ({ id: pattern_id }: Pattern) =>
      take(v1.DELETE("/v1/masked/destinations/{id}/patterns/{pattern_id}", { params: { path: { id, pattern_id } } })),
    refresh: [["masked", "destinations", "of", id]],
    done: (_out, { pattern }) => `${pattern} makes no aliases any more.`,
  });
  return (
    <>
      <table className="table">
        <caption className="sr-only">Patterns, newest first</caption>
        <thead>
          <tr>
            <th>Pattern</th>
            <th className="r hide-s w-[80px]">Aliases</th>
            <th className="r hide-s w-[82px]">An hour</th>
            <th className="r hide-s w-[74px]">A day</th>
            <th className="r hide-s w-[108px]">Added</th>
            <th className="w-[124px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.patterns.map((pattern) => (
            <Row key={pattern.id} pattern={pattern} remove={() => remove(pattern)} />
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="pattern" readAtMs={readAtMs}>
        {page.patterns.length === PAGE_ROWS && (
          <Link
            to="/masked/destinations/$id"
            params={{ id }}
            search={{ after: page.patterns.at(-1)?.id }}
            className="btn quiet"
          >
            Older
          </Link>
        )}
      </ListFoot>
      <Confirm
        title={`Remove ${leaving?.pattern}?`}
        act="Remove the pattern"
        open={leaving !== null}
        busy={removing.isPending}
        close={() => remove(null)}
        confirm={() => leaving && removing.mutate(leaving, { onSettled: () => remove(null) })}
      >
        The aliases that it made stay, and forward as before. No new address of it makes one.
      </Confirm>
    </>
  );
}

function Row({ pattern: one, remove }: { pattern: Pattern; remove: () => void }) {
  const { pattern, aliases, aliases_hour, aliases_day, created_at } = one;
  return (
    <tr>
      <td title={pattern}>
        <Link to="/masked" search={{ pattern }} className="hover:underline">
          <code>{pattern}</code>
        </Link>
        <div className="show-s dim truncate text-[12.5px]">
          {sayCount(aliases, { one: "alias", many: "aliases" })}, {aliases_hour.toLocaleString("en")} an hour,{" "}
          {aliases_day.toLocaleString("en")} a day
        </div>
      </td>
      <td className="r hide-s">{aliases.toLocaleString("en")}</td>
      <td className="r hide-s" title="How many aliases it may make within an hour">
        {aliases_hour.toLocaleString("en")}
      </td>
      <td className="r hide-s" title="How many aliases it may make a day (UTC)">
        {aliases_day.toLocaleString("en")}
      </td>
      <td className="r dim hide-s">
        <When at={created_at} />
      </td>
      <td className="r">
        <Button changes look="quiet" onClick={remove} aria-label={`Remove ${pattern}`}>
          Remove
        </Button>
      </td>
    </tr>
  );
}
