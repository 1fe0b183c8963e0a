// The organization's domains and where each stands; adding one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { domainsPage, PAGE_ROWS } from "../api/queries.ts";
import { AddDomain } from "../forms/add-domain.tsx";
import { USES } from "../lib/domain-types.ts";
import { toneOfDomain, wordOf } from "../lib/states.ts";
import { Button } from "../ui/button.tsx";
import { DomainName } from "../ui/domain-name.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/domains");

export function Domains() {
  const [isAdding, add] = useState(false);
  const navigate = useNavigate();
  const list = useQuery(domainsPage(route.useSearch()));
  const adding = (
    <Button look="primary" onClick={() => add(true)}>
      Add a domain
    </Button>
  );
  return (
    <>
      <PageHead title="Domains" acts={adding} />
      <div className="panel">
        <Loaded of={list}>
          {(page) =>
            page.total === 0 ? (
              <Empty
                title="No domain yet"
                acts={
                  <Button changes onClick={() => add(true)}>
                    Add your first domain
                  </Button>
                }
              >
                You send and receive mail with your own domains. Add one and publish its records; Postern then verifies
                it.
              </Empty>
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <AddDomain
        open={isAdding}
        close={() => add(false)}
        added={(id) => void navigate({ to: "/domains/$id", params: { id } })}
      />
    </>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["DomainList"]; readAtMs: number }) {
  return (
    <>
      <table className="table">
        <caption className="sr-only">Domains</caption>
        <thead>
          <tr>
            <th className="w-[126px] sm:w-[150px]">Status</th>
            <th>Domain</th>
            <th className="hide-s w-[22%]">For</th>
            <th className="r hide-s w-[150px]">May send a day</th>
            <th className="r hide-s w-[150px]">Checked</th>
          </tr>
        </thead>
        <tbody>
          {page.domains.map((domain) => (
            <tr key={domain.id}>
              <td>
                <Tag tone={toneOfDomain(domain.status)}>{wordOf(domain.status)}</Tag>
              </td>
              <td title={domain.domain}>
                <Link to="/domains/$id" params={{ id: domain.id }} className="row-link">
                  <DomainName name={domain.domain} />
                </Link>
              </td>
              <td className="hide-s text-ink-2">{USES[domain.type]}</td>
              <td className="r hide-s">{mayDaily(domain)}</td>
              <td className="r dim hide-s">
                {domain.last_dns_check === null ? "not yet" : <When at={domain.last_dns_check} as="relative" />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="domain" readAtMs={readAtMs}>
        {page.domains.length === PAGE_ROWS && (
          <Link to="/domains" search={{ after: page.domains.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

function mayDaily({ warming }: Schemas["Domain"]): string {
  if (warming === null) return "–";
  return warming.daily_limit === null ? "no limit" : warming.daily_limit.toLocaleString("en");
}
