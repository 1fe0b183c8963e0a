// The deliveries to all endpoints, newest first: what was posted where, the answer, and sending one again.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client.ts";
import { allDeliveries, PAGE_ROWS, webhooks } from "../api/queries.ts";
import { DELIVERY_STATES, EVENTS, type LogFilters } from "../lib/list-filters.ts";
import { wordOf } from "../lib/states.ts";
import { Choice } from "../ui/choice.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { WebhookNav } from "../ui/webhook-nav.tsx";
import { DeliveriesTable } from "./deliveries-table.tsx";

const route = getRouteApi("/webhooks/deliveries");

export function WebhookDeliveries() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(allDeliveries(filters));
  const endpoints = useQuery(webhooks).data?.webhooks ?? [];
  const change = (changed: Partial<LogFilters>) =>
    void navigate({ search: (before) => ({ ...before, after: undefined, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Webhooks" />
      <WebhookNav />
      <div className="filters">
        <Choice
          label="State"
          value={filters.status}
          pick={(status) => change({ status: status as LogFilters["status"] })}
        >
          {DELIVERY_STATES.map((status) => (
            <option key={status} value={status}>
              {wordOf(status)}
            </option>
          ))}
        </Choice>
        <Choice label="Event" value={filters.event} pick={(event) => change({ event: event as LogFilters["event"] })}>
          {EVENTS.map((event) => (
            <option key={event} value={event}>
              {event}
            </option>
          ))}
        </Choice>
        <Choice label="Endpoint" value={filters.endpoint_id} pick={(endpoint_id) => change({ endpoint_id })}>
          {endpoints.map(({ id, webhook_url }) => (
            <option key={id} value={id}>
              {webhook_url.replace("https://", "")}
            </option>
          ))}
        </Choice>
      </div>
      <div className="panel" aria-busy={list.isPlaceholderData}>
        <Loaded of={list}>
          {(page) =>
            page.deliveries.length === 0 ? (
              <Empty
                title="No delivery here"
                acts={
                  <Link to="/webhooks/deliveries" search={{}} className="btn">
                    Show all
                  </Link>
                }
              >
                Deliveries of the last days are listed as they happen.
              </Empty>
            ) : (
              <Rows page={page} endpoints={endpoints} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
    </>
  );
}

type RowsGiven = { page: Schemas["WebhookDeliveryList"]; endpoints: Schemas["Webhook"][]; readAtMs: number };

function Rows({ page, endpoints, readAtMs }: RowsGiven) {
  const filters = route.useSearch();
  return (
    <>
      <DeliveriesTable deliveries={page.deliveries} endpoints={endpoints} />
      <ListFoot page={page} one="delivery" many="deliveries" readAtMs={readAtMs}>
        {page.deliveries.length === PAGE_ROWS && (
          <Link
            to="/webhooks/deliveries"
            search={{ ...filters, after: page.deliveries.at(-1)?.id }}
            className="btn quiet"
          >
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}
