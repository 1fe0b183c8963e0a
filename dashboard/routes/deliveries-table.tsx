// Deliveries as rows, newest first: the state, the answer and sending one again. Of one endpoint, or with the endpoint of each.
import { Link } from "@tanstack/react-router";
import { type Schemas, take, v1 } from "../api/client.ts";
import { useAct } from "../lib/act.ts";
import { useNow } from "../lib/now.ts";
import { toneOfDelivery, wordOf } from "../lib/states.ts";
import { sayShortly } from "../lib/times.ts";
import { Button } from "../ui/button.tsx";
import { Tag } from "../ui/tag.tsx";
import { When } from "../ui/when.tsx";

type Delivery = Schemas["WebhookDelivery"];
type Webhook = Schemas["Webhook"];
/** `endpoints`: all that there are now; without them the deliveries are of the one that the page is about. */
type Given = { deliveries: readonly Delivery[]; endpoints?: readonly Webhook[]; isNarrow?: boolean };

/** `isNarrow`: beside something else, without the time. */
export function DeliveriesTable({ deliveries, endpoints, isNarrow = false }: Given) {
  return (
    <table className="table">
      <caption className="sr-only">Deliveries, newest first</caption>
      <thead>
        <tr>
          <th className="w-[126px] sm:w-[136px]">State</th>
          <th>Event</th>
          {endpoints && <th className="hide-s w-[28%]">Endpoint</th>}
          <th className={`hide-s ${endpoints ? "w-[18%]" : "w-[26%]"}`}>Answer</th>
          {!isNarrow && <th className="r hide-s w-[100px]">Time</th>}
          <th className="w-[104px]">
            <span className="sr-only">Acts</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <Row key={delivery.id} delivery={delivery} endpoints={endpoints} isNarrow={isNarrow} />
        ))}
      </tbody>
    </table>
  );
}

type RowGiven = { delivery: Delivery; endpoints: Given["endpoints"]; isNarrow: boolean };

function Row({ delivery, endpoints, isNarrow }: RowGiven) {
  const { id, endpoint_id, event, status, error, attempt, created_at } = delivery;
  const endpoint = endpoints?.find((one) => one.id === endpoint_id);
  const isGone = endpoints !== undefined && endpoint === undefined;
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
      {endpoints && (
        <td className="hide-s" title={endpoint?.webhook_url}>
          {endpoint === undefined ? <span className="dim">gone</span> : <ToEndpoint endpoint={endpoint} />}
        </td>
      )}
      <td className="hide-s text-ink-2" title={error ?? undefined}>
        <Answered delivery={delivery} />
      </td>
      {!isNarrow && (
        <td className="r dim hide-s">
          <When at={created_at} />
        </td>
      )}
      <td className="r">
        {!isGone && (
          <Button changes look="quiet" disabled={replaying.isPending} onClick={() => replaying.mutate(undefined)}>
            Replay
          </Button>
        )}
      </td>
    </tr>
  );
}

function ToEndpoint({ endpoint: { id, webhook_url } }: { endpoint: Webhook }) {
  return (
    <Link to="/webhooks/$id" params={{ id }} search={{}}>
      {webhook_url.replace("https://", "")}
    </Link>
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
