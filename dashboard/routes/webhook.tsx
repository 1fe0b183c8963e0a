// One endpoint: what it gets, its deliveries with the answer to each, and sending a test, replaying, rotating its secret, deleting.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type Schemas, take, v1 } from "../api/client.ts";
import { deliveriesOf, PAGE_ROWS, webhook } from "../api/queries.ts";
import { WebhookActs } from "../forms/webhook-acts.tsx";
import { useAct } from "../lib/act.ts";
import { DELIVERY_STATES, type DeliveryFilters, EVENTS } from "../lib/list-filters.ts";
import { useNow } from "../lib/now.ts";
import { toneOfDelivery, wordOf } from "../lib/states.ts";
import { sayShortly } from "../lib/times.ts";
import { Button } from "../ui/button.tsx";
import { Choice } from "../ui/choice.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";
import { Health } from "./webhooks.tsx";

const route = getRouteApi("/webhooks/$id");
type Delivery = Schemas["WebhookDelivery"];

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
      <table className="table">
        <caption className="sr-only">Deliveries, newest first</caption>
        <thead>
          <tr>
            <th className="w-[126px]">State</th>
            <th>Event</th>
            <th className="hide-s w-[26%]">Answer</th>
            <th className="r hide-s w-[100px]">Time</th>
            <th className="w-[104px]">
              <span className="sr-only">Acts</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.deliveries.map((delivery) => (
            <Row key={delivery.id} delivery={delivery} webhookId={id} />
          ))}
        </tbody>
      </table>
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

function Row({ delivery, webhookId }: { delivery: Delivery; webhookId: string }) {
  const replaying = useAct({
    run: () => take(v1.POST("/v1/webhook-deliveries/{id}/replay", { params: { path: { id: delivery.id } } })),
    refresh: [["webhooks", webhookId]],
    done: () => "It is delivered again.",
  });
  const { event, status, attempt, created_at } = delivery;
  return (
    <tr>
      <td>
        <Tag tone={toneOfDelivery(status)}>{wordOf(status)}</Tag>
      </td>
      <td title={event}>
        {event.replace("email.", "")} <span className="dim num">{attempt > 1 && `attempt ${attempt}`}</span>
      </td>
      <td className="hide-s text-ink-2" title={delivery.error ?? undefined}>
        <Answered delivery={delivery} />
      </td>
      <td className="r dim hide-s">
        <When at={created_at} />
      </td>
      <td className="r">
        <Button look="quiet" disabled={replaying.isPending} onClick={() => replaying.mutate(undefined)}>
          Replay
        </Button>
      </td>
    </tr>
  );
}

/** The code and how long it took, or why there is none, and when it goes on. */
function Answered({ delivery }: { delivery: Delivery }) {
  const nowMs = useNow();
  const { status_code, duration_ms, error, next_attempt_at } = delivery;
  const next = next_attempt_at === null ? "" : `, next ${sayShortly(next_attempt_at, nowMs)}`;
  if (status_code === null) return `${error ?? "no answer yet"}${next}`;
  return (
    <span className="num">
      {status_code} <span className="dim">{duration_ms} ms</span>
      {next}
    </span>
  );
}
