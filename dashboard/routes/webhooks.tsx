// The endpoints that events are posted to, and how each is doing; adding one.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../api/client.ts";
import { PAGE_ROWS, webhooksPage } from "../api/queries.ts";
import { AddWebhook } from "../forms/add-webhook.tsx";
import { Button } from "../ui/button.tsx";
import { ListFoot } from "../ui/list-foot.tsx";
import { PageHead } from "../ui/page.tsx";
import { Empty, Loaded } from "../ui/states.tsx";
import { Tag } from "../ui/tag.tsx";
import { WebhookNav } from "../ui/webhook-nav.tsx";
import { When } from "../ui/when.tsx";

const route = getRouteApi("/webhooks");
type Webhook = Schemas["Webhook"];

export function Webhooks() {
  const [isAdding, add] = useState(false);
  const list = useQuery(webhooksPage(route.useSearch()));
  const adding = (
    <Button look="primary" onClick={() => add(true)}>
      Add an endpoint
    </Button>
  );
  return (
    <>
      <PageHead title="Webhooks" acts={adding} />
      <WebhookNav />
      <div className="panel">
        <Loaded of={list}>
          {(page) =>
            page.total === 0 ? (
              <Empty
                title="No endpoint yet"
                acts={
                  <Button changes onClick={() => add(true)}>
                    Add your first endpoint
                  </Button>
                }
              >
                Postern posts each event to an HTTPS address of yours as it happens, signed, and tries again for a day.
              </Empty>
            ) : (
              <Rows page={page} readAtMs={list.dataUpdatedAt} />
            )
          }
        </Loaded>
      </div>
      <AddWebhook open={isAdding} close={() => add(false)} />
    </>
  );
}

function Rows({ page, readAtMs }: { page: Schemas["WebhookList"]; readAtMs: number }) {
  return (
    <>
      <table className="table">
        <caption className="sr-only">Endpoints</caption>
        <thead>
          <tr>
            <th className="w-[126px] sm:w-[150px]">Health</th>
            <th>Endpoint</th>
            <th className="hide-s w-[34%]">Events</th>
            <th className="r hide-s w-[150px]">Last success</th>
          </tr>
        </thead>
        <tbody>
          {page.webhooks.map((webhook) => (
            <tr key={webhook.id}>
              <td>
                <Health webhook={webhook} />
              </td>
              <td title={webhook.webhook_url}>
                <Link to="/webhooks/$id" params={{ id: webhook.id }} search={{}} className="row-link">
                  {webhook.webhook_url}
                </Link>
              </td>
              <td className="hide-s text-ink-2" title={webhook.event_types.join(", ")}>
                {webhook.event_types.map((event) => event.replace("email.", "")).join(", ")}
              </td>
              <td className="r dim hide-s">
                {webhook.last_success_at === null ? "none yet" : <When at={webhook.last_success_at} as="relative" />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ListFoot page={page} one="endpoint" readAtMs={readAtMs}>
        {page.webhooks.length === PAGE_ROWS && (
          <Link to="/webhooks" search={{ after: page.webhooks.at(-1)?.id }} className="btn quiet">
            Older
          </Link>
        )}
      </ListFoot>
    </>
  );
}

/** On, off, or failing since the last success. */
export function Health({ webhook: { enabled, consecutive_failures, last_success_at } }: { webhook: Webhook }) {
  if (!enabled) return <Tag tone="idle">Off</Tag>;
  if (consecutive_failures > 0) return <Tag tone="bad">Failing</Tag>;
  return last_success_at === null ? <Tag tone="idle">Waiting</Tag> : <Tag tone="good">Works</Tag>;
}
