// What webhooks were sent of an e-mail: nothing is shown where there are none.
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client.ts";
import { deliveriesOfEvents, webhooks } from "../api/queries.ts";
import { DeliveriesTable } from "../routes/deliveries-table.tsx";

/** Events that are posted to webhooks; others stand in the timeline alone. */
const POSTED = new Set(["delivered", "bounced", "failed", "expired", "deferred", "ambiguous", "complained"]);

export function Deliveries({ events }: { events: readonly Schemas["EmailEvent"][] }) {
  const posted = events.filter(({ event_type }) => POSTED.has(event_type)).map(({ id }) => id);
  const found = useQuery(deliveriesOfEvents(posted)).data;
  const endpoints = useQuery(webhooks).data?.webhooks;
  if (!found || !endpoints || found.deliveries.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="webhook-deliveries">
      <h2 id="webhook-deliveries" className="px-[18px] pt-4 pb-2">
        Webhook deliveries
      </h2>
      <DeliveriesTable deliveries={found.deliveries} endpoints={endpoints} isNarrow />
      {found.total > found.deliveries.length && (
        <p className="dim px-[18px] pb-4">
          The newest {found.deliveries.length} of {found.total}.
        </p>
      )}
    </section>
  );
}
