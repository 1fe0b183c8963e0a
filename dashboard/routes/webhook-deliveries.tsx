// The deliveries to all endpoints, newest first: what was posted where, the answer, and sending one again.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type Schemas, take, v1 } from "../api/client.ts";
import { allDeliveries, PAGE_ROWS, webhooks } from "../api/queries.ts";
import { useAct } from "../lib/act.ts";
import { DELIVERY_STATES, EVENTS, type LogFilters } from "../lib/list-filters.ts";
import { toneOfDelivery, wordOf } from "../lib/states.ts";
import { Button } from "../ui/button.tsx";
import { Choice } from "../ui/choice.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { WebhookNav } from "../ui/webhook-nav.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/webhooks/deliveries");
type Delivery = Schemas["WebhookDelivery"];

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
      <table className="table">
        <caption className="sr-only">Deliveries, newest first</caption>
        <thead>
          <tr>
            <th className="w-[126px] sm:w-[136px]">State</th>
            <th>Event</th>
            <th className="hide-s w-[28%]">Endpoint</th>
            <th className="hide-s w-[18%]">Answer</th>
            <th className="r hide-s w-[100px]">Time</th>
            <th className="w-[104px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.deliveries.map((delivery) => (
            <Row
              key={delivery.id}
              delivery={delivery}
              endpoint={endpoints.find(({ id }) => id === delivery.endpoint_id)}
            />
          ))}
        </tbody>
      </table>
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

function Row({ delivery, endpoint }: { delivery: Delivery; endpoint: Schemas["Webhook"] | undefined }) {
  const { id, endpoint_id, event, status, status_code, duration_ms, error, attempt, created_at } = delivery;
  const replaying = useAct({
    run: () => take(v1.POST("/v1/webhook-deliveries/{id}/replay", { params: { path: { id } } })),
    refresh: [["webhooks"]],
    done: () => "It is delivered again.",
  });
  return (
    <tr>
      <td>
        <Tag tone={toneOfDelivery(status)}>{wordOf(status)}</Tag>
      </td>
      <td title={event}>
        {event.replace("email.", "")} <span className="dim num">{attempt > 1 && `attempt ${attempt}`}</span>
      </td>
      <td className="hide-s" title={endpoint?.webhook_url}>
        {endpoint === undefined ? (
          <span className="dim">gone</span>
        ) : (
          <Link to="/webhooks/$id" params={{ id: endpoint_id }} search={{}}>
            {endpoint.webhook_url.replace("https://", "")}
          </Link>
        )}
      </td>
      <td className="hide-s text-ink-2 num" title={error ?? undefined}>
        {status_code ?? error ?? "no answer yet"}{" "}
        {duration_ms !== null && status_code !== null && <span className="dim">{duration_ms} ms</span>}
      </td>
      <td className="r dim hide-s">
        <When at={created_at} />
      </td>
      <td className="r">
        {endpoint !== undefined && (
          <Button look="quiet" disabled={replaying.isPending} onClick={() => replaying.mutate(undefined)}>
            Replay
          </Button>
        )}
      </td>
    </tr>
  );
}
