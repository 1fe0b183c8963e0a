// The routing rules of one domain in the order they are asked. The order is changed by dragging, or with the buttons by keyboard.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Schemas, take, v1 } from "../../api/client.ts";
import { inboundRules } from "../../api/inbound-queries.ts";
import { domains } from "../../api/queries.ts";
import { useAct } from "../../lib/act.ts";
import { ACTION_WORDS } from "../../lib/inbound-filters.ts";
import { sayTree } from "../../lib/rule-tree.ts";
import { Button } from "../../ui/button.tsx";
import { ListFoot } from "../../ui/list-foot.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Empty, Loaded } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { InboundNav } from "./nav.tsx";
import { PickDomain } from "./pick-domain.tsx";

const route = getRouteApi("/inbound/rules");
type Rule = Schemas["InboundRule"];

export function Rules() {
  const { domain_id } = route.useSearch();
  const navigate = route.useNavigate();
  const owned = useQuery(domains);
  const first = owned.data?.domains.find(({ type }) => type === "inbound" || type === "both");
  const chosen = domain_id ?? first?.id;
  return (
    <>
      <PageHead
        title="Inbound"
        acts={
          chosen && (
            <Link to="/inbound/rules/new" search={{ domain_id: chosen }} className="btn primary">
              New rule
            </Link>
          )
        }
      />
      <InboundNav />
      <PickDomain value={chosen} pick={(id) => void navigate({ search: { domain_id: id }, replace: true })} receiving />
      <div className="panel">
        <Loaded of={owned}>
          {() =>
            chosen === undefined ? (
              <Empty
                title="No domain receives yet"
                acts={
                  <Link to="/domains" className="btn">
                    To the domains
                  </Link>
                }
              >
                Rules decide about mail to a domain. Add a domain for receiving first.
              </Empty>
            ) : (
              <OfDomain key={chosen} domainId={chosen} />
            )
          }
        </Loaded>
      </div>
    </>
  );
}

function OfDomain({ domainId }: { domainId: string }) {
  const list = useQuery(inboundRules(domainId));
  return (
    <Loaded of={list}>
      {(page) =>
        page.rules.length === 0 ? (
          <Empty
            title="No rule yet"
            acts={
              <Link to="/inbound/rules/new" search={{ domain_id: domainId }} className="btn">
                Make the first rule
              </Link>
            }
          >
            Without rules, its alias decides what is done with a mail. The first rule that matches decides instead.
          </Empty>
        ) : (
          <Ordered domainId={domainId} page={page} readAtMs={list.dataUpdatedAt} />
        )
      }
    </Loaded>
  );
}

type Page = Schemas["InboundRuleList"];

function Ordered({ domainId, page, readAtMs }: { domainId: string; page: Page; readAtMs: number }) {
  const [dragged, drag] = useState<string | null>(null);
  const ordering = useAct({
    run: (ids: string[]) => take(v1.POST("/v1/inbound-rules/reorder", { body: { ids } })),
    refresh: [["rules", domainId]],
    done: () => "The order is saved.",
  });
  const move = (id: string, to: number) => {
    const ids = page.rules.map((rule) => rule.id).filter((one) => one !== id);
    if (to < 0 || to > ids.length) return;
    ids.splice(to, 0, id);
    ordering.mutate(ids);
  };
  return (
    <>
      <ol aria-label="Rules in the order in which they are checked" aria-busy={ordering.isPending}>
        {page.rules.map((rule, place) => (
          <li
            key={rule.id}
            className={dragged === rule.id ? "rule dragged" : "rule"}
            draggable
            onDragStart={() => drag(rule.id)}
            onDragEnd={() => drag(null)}
            onDragOver={(event) => event.preventDefault()}
            onDrop={() => dragged !== null && dragged !== rule.id && move(dragged, place)}
          >
            <OneRule rule={rule} place={place} of={page.rules.length} move={(to) => move(rule.id, to)} />
          </li>
        ))}
      </ol>
      <ListFoot page={page} one="rule" readAtMs={readAtMs}>
        <span className="hide-s">Drag a rule, or use its buttons, to change the order</span>
      </ListFoot>
    </>
  );
}

type OneGiven = { rule: Rule; place: number; of: number; move: (to: number) => void };

function OneRule({ rule, place, of, move }: OneGiven) {
  return (
    <>
      <span className="num dim w-5 text-right">{place + 1}</span>
      <div className="min-w-0 flex-1">
        <Link to="/inbound/rules/$id" params={{ id: rule.id }} className="row-link">
          {rule.name}
        </Link>{" "}
        {!rule.active && <Tag tone="idle">Off</Tag>} {rule.alias_id !== null && <Tag tone="idle">One alias</Tag>}
        <div className="truncate text-[12.5px] text-ink-2" title={sayTree(rule.match)}>
          {sayTree(rule.match)} → {ACTION_WORDS[rule.action]}
          {rule.forward_to.length > 0 && ` to ${rule.forward_to.join(", ")}`}
        </div>
      </div>
      <span className="num dim hide-s">{rule.hits.toLocaleString("en")} decided</span>
      <Button
        changes
        look="quiet"
        className="square"
        disabled={place === 0}
        aria-label={`Move ${rule.name} up`}
        onClick={() => move(place - 1)}
      >
        ↑
      </Button>
      <Button
        changes
        look="quiet"
        className="square"
        disabled={place === of - 1}
        aria-label={`Move ${rule.name} down`}
        onClick={() => move(place + 1)}
      >
        ↓
      </Button>
    </>
  );
}
