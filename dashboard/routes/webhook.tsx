// One endpoint: what it gets, its deliveries with the answer to each, and sending a test, replaying, rotating its secret, deleting.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { deliveriesOf, domain, PAGE_ROWS, webhook } from "../api/queries.ts";
import { WebhookActs } from "../forms/webhook-acts.tsx";
import { inOneLine } from "../lib/domain-names.ts";
import { DELIVERY_STATES, type DeliveryFilters, EVENTS } from "../lib/list-filters.ts";
import { wordOf } from "../lib/states.ts";
import { Choice } from "../ui/choice.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { When } from "../ui/when.tsx";
import { DeliveriesTable } from "./deliveries-table.tsx";
import { Health } from "./webhooks.tsx";

const route = getRouteApi("/webhooks/$id");

const crumb = (
  <Link to="/webhooks" className="crumb">
    Webhooks
  </Link>
);

export function OneWebhook() {
  const { id } = route.useParams();
  const query = useQuery(webhook(id));
  const found = query.data?.webhook;
  return (
    <>
      <PageHead
        title={found ? found.webhook_url.replace("https://", "") : "Endpoint"}
        crumb={crumb}
        beside={found && <Health webhook={found} />}
        acts={found && <WebhookActs webhook={found} />}
      />
      {found ? (
        <div className="cols">
          <Deliveries id={id} />
          <About webhook={found} />
        </div>
      ) : (
        <div className="panel">
          <Loaded of={query}>{() => null}</Loaded>
        </div>
      )}
    </>
  );
}

function About({ webhook: found }: { webhook: Schemas["Webhook"] }) {
  return (
    <aside className="panel pad" aria-label="About this endpoint">
      <h2>Details</h2>
      <dl className="facts">
        <dt>Address</dt>
        <dd>{found.webhook_url}</dd>
        <dt>Events</dt>
        <dd>{found.event_types.join(", ")}</dd>
        <dt>Domain</dt>
        <dd>{found.domain_id === null ? "all" : <OfDomain id={found.domain_id} />}</dd>
        <dt>Recipients</dt>
        <dd>{found.match_pattern ?? "all"}</dd>
        <dt>Signed</dt>
        <dd>{found.has_secret ? "Yes. The secret is shown only when it is made." : "No"}</dd>
        <dt>Success</dt>
        <dd>{found.last_success_at === null ? "none yet" : <When at={found.last_success_at} as="both" />}</dd>
        {found.consecutive_failures > 0 && (
          <>
            <dt>Failures</dt>
            <dd className="num">{found.consecutive_failures} since then</dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <code>{found.id}</code>
        </dd>
      </dl>
    </aside>
  );
}

/** The id until the name is there. */
function OfDomain({ id }: { id: string }) {
  const name = useQuery(domain(id)).data?.domain ?? id;
  return (
    <Link to="/domains/$id" params={{ id }} className="underline">
      {inOneLine(name)}
    </Link>
  );
}

function Deliveries({ id }: { id: string }) {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(deliveriesOf(id, filters));
  const change = (changed: Partial<DeliveryFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <div className="min-w-0">
      <div className="filters">
        <h2 className="mr-auto">Deliveries</h2>
        <Choice
          label="State"
          value={filters.status}
          pick={(status) => change({ status: status as DeliveryFilters["status"] })}
        >
          {DELIVERY_STATES.map((status) => (
            <option key={status} value={status}>
              {wordOf(status)}
            </option>
          ))}
        </Choice>
        <Choice
          label="Event"
          value={filters.event}
          pick={(event) => change({ event: event as DeliveryFilters["event"] })}
        >
          {EVENTS.map((event) => (
            <option key={event} value={event}>
              {event}
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list} rows={5}>
          {(page) =>
            page.deliveries.length === 0 ? (
              <Empty title="No delivery here">
                Deliveries of the last days are listed as they happen. “Send a test” makes one now.
              </Empty>
            ) : (
              <Rows id={id} page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
    </div>
  );
}

type Page = Schemas["WebhookDeliveryList"];

function Rows({ id, page, readAtMs }: { id: string; page: Page; readAtMs: number }) {
  const filters = route.useSearch();
  const last = page.deliveries.at(-1);
  return (
    <>
      <DeliveriesTable deliveries={page.deliveries} />
      <ListFoot page={page} one="delivery" many="deliveries" readAtMs={readAtMs}>
        {page.deliveries.length === PAGE_ROWS && (
          <Link to="/webhooks/$id" params={{ id }} search={{ ...filters, after: last?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}
