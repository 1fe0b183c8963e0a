// The organizations of the installation: those that wait for a review first, with what they say they will send. For operators.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { PeopleSchemas } from "../../api/client.ts";
import { organizations } from "../../api/operator-queries.ts";
import { waysIn } from "../../api/people.ts";
import { ChangeOrganization } from "../../forms/operator/change-organization.tsx";
import { InviteToSignUp } from "../../forms/operator/invite-to-sign-up.tsx";
import { useSettle } from "../../forms/operator/settle.ts";
import { SearchField } from "../../forms/search-field.tsx";
import { ORGANIZATION_STATES, type OrganizationFilters } from "../../lib/list-filters.ts";
import { toneOfOrganization, wordOf } from "../../lib/states.ts";
import { Button } from "../../ui/button.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { OperatorNav } from "../../ui/operator-nav.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { When } from "../../ui/when.tsx";
import { Reviews } from "./reviews.tsx";

const route = getRouteApi("/operator/organizations");
type Organization = PeopleSchemas["OperatedOrganization"];

export function Organizations() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(organizations(filters));
  const canInvite = useQuery(waysIn).data?.sign_up !== "off";
  const [isInviting, invite] = useState(false);
  const [changed, change] = useState<Organization | null>(null);
  const [stopped, stop] = useState<Organization | null>(null);
  const settle = useSettle(() => stop(null));
  const narrow = (more: OrganizationFilters) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...more }), replace: true });
  return (
    <>
      <PageHead
        title="Organizations"
        always={
          canInvite && (
            <Button look="primary" onClick={() => invite(true)}>
              Invite an organization
            </Button>
          )
        }
      />
      <OperatorNav />
      <div className="filters">
        <SearchField label="Name or id" value={filters.query} search={(query) => narrow({ query })} />
        <Choice
          label="State"
          value={filters.state}
          pick={(state) => narrow({ state: state as OrganizationFilters["state"] })}
        >
          {ORGANIZATION_STATES.map((state) => (
            <option key={state} value={state}>
              {wordOf(state)}
            </option>
          ))}
        </Choice>
      </div>
      <div className="stack">
        <Reviews settle={settle} />
        <section className="panel" aria-busy={list.isPlaceholderData}>
          <Loaded of={list} rows={6}>
            {(page) => (
              <>
                <Rows rows={page.organizations} change={change} stop={stop} settle={settle} />
                <ListFoot page={page} one="organization" readAtMs={list.dataUpdatedAt}>
                  {page.next !== null && (
                    <Link to="/operator/organizations" search={{ ...filters, after: page.next }} className="btn quiet">
                      Next
                    </Link>
                  )}
                </ListFoot>
              </>
            )}
          </Loaded>
        </section>
      </div>
      <InviteToSignUp open={isInviting} close={() => invite(false)} />
      <ChangeOrganization organization={changed} close={() => change(null)} />
      <Confirm
        title={`Suspend ${stopped?.name}?`}
        act="Suspend it"
        open={stopped !== null}
        busy={settle.isPending}
        close={() => stop(null)}
        confirm={() => stopped && settle.mutate({ id: stopped.id, state: "suspended" })}
      >
        Its sends are refused from the next request on, and its queued mail waits. Its people still see what it has.
      </Confirm>
    </>
  );
}

type Settle = ReturnType<typeof useSettle>;

type Acts = { change: (one: Organization) => void; stop: (one: Organization) => void; settle: Settle };

function Rows({ rows, ...acts }: { rows: Organization[] } & Acts) {
  if (rows.length === 0)
    return (
      <Empty
        title="No organization fits these filters"
        acts={
          <Link to="/operator/organizations" search={{}} className="btn">
            Clear filters
          </Link>
        }
      />
    );
  return (
    <table className="table">
      <caption className="sr-only">Organizations, the oldest first</caption>
      <thead>
        <tr>
          <th>Organization</th>
          <th className="w-[110px] sm:w-[130px]">State</th>
          <th className="hide-s w-[110px]">Plan</th>
          <th className="r hide-s w-[150px]">Mails a month</th>
          <th className="r hide-s w-[120px]">Requests/s</th>
          <th className="r hide-s w-[130px]">Since</th>
          <th className="hide-s w-[210px]">
            <span className="sr-only">Acts</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((one) => (
          <Row key={one.id} one={one} {...acts} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ one, change, stop, settle }: { one: Organization } & Acts) {
  const { id, name, state, plan, own } = one;
  const figure = (limit: (typeof own)[number]) => (
    <>
      {one[limit].toLocaleString("en-GB")}
      {own.includes(limit) && <span className="dim"> own</span>}
    </>
  );
  const acts = (
    <>
      <Button look="quiet" aria-label={`Change ${name}`} onClick={() => change(one)}>
        Change
      </Button>
      {state === "active" && (
        <Button look="quiet" aria-label={`Suspend ${name}`} onClick={() => stop(one)}>
          Suspend
        </Button>
      )}
      {state === "suspended" && (
        <Button
          look="quiet"
          aria-label={`Resume ${name}`}
          disabled={settle.isPending}
          onClick={() => settle.mutate({ id, state: "active" })}
        >
          Resume
        </Button>
      )}
    </>
  );
  return (
    <tr>
      <td title={`${name} · ${id}`}>
        {name}
        <div className="show-s -ml-3">{acts}</div>
      </td>
      <td>
        <Tag tone={toneOfOrganization(state)}>{wordOf(state).replace("Pending review", "In review")}</Tag>
      </td>
      <td className="hide-s">{wordOf(plan)}</td>
      <td className="r hide-s">{figure("monthly_quota")}</td>
      <td className="r hide-s">{figure("requests_per_second")}</td>
      <td className="r dim hide-s">
        <When at={one.created_at} />
      </td>
      <td className="r hide-s">{acts}</td>
    </tr>
  );
}
