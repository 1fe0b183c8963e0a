// What Postern sends: the webhook calls of the description (`x-webhooks`; OpenAPI 3.0 has no word of its own), one for each
// event, with their headers. Not here: the bodies (webhooks/types.ts).
import { EVENT_TYPES } from "../webhooks/types.ts";

const SENTENCES: Record<(typeof EVENT_TYPES)[number], string> = {
  "email.received": "Mail was received for an alias or a domain of yours, and parsed",
  "email.delivered": "The recipient's server accepted an e-mail",
  "email.bounced": "An e-mail was refused for good, or could not be delivered in time",
  "email.deferred": "An e-mail was deferred, and is tried again",
  "email.complained": "A recipient marked an e-mail as spam",
};

/** What holds for every call: the description of the tag Webhooks. */
export const WEBHOOK_CALLS =
  "Answer a call with any 2xx within 15 seconds. Anything else is tried again: after 1, 5 and 30 minutes, 2, 8 and 24 hours. " +
  "410 switches the endpoint off. The body has the same bytes on every attempt, events come in no " +
  "promised order, and one may come twice: deduplicate by `event_id`.";

const text = (description: string) => ({ description, schema: { type: "string" } });
const HEADERS: Record<string, { description: string; schema: object; required?: boolean }> = {
  "X-Service-Event": text("The event's type"),
  "X-Service-Event-ID": text("The event's `event_id`, the same on every attempt"),
  "X-Service-Delivery-ID": text("The attempt's own id"),
  "X-Service-Attempt": { description: "The attempt's number, from 1", schema: { type: "integer", minimum: 1 } },
  "X-Service-Signature": {
    ...text(
      "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<body>` with the whole `whsec_…` secret; two `v1` while a rotation's " +
        "grace lasts. Missing where the endpoint has no secret",
    ),
    required: false,
  },
  "webhook-id": { ...text("The event's `event_id`, for libraries of Standard Webhooks"), required: false },
  "webhook-timestamp": { ...text("Unix seconds of the attempt"), required: false },
  "webhook-signature": {
    ...text(
      "`v1,<base64>` by https://www.standardwebhooks.com with the same secret; two while a rotation's grace lasts",
    ),
    required: false,
  },
};

/** The headers as components, by the name of each. */
export function webhookHeaders(): Record<string, object> {
  const headers = Object.entries(HEADERS).map(([name, header]) => [
    name,
    { name, in: "header", required: true, ...header },
  ]);
  return Object.fromEntries(headers);
}

/** The value of `x-webhooks`; `examples` by event. */
export function describeWebhookCalls(examples: Record<string, unknown>): object {
  const parameters = Object.keys(HEADERS).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  const calls = EVENT_TYPES.map((event) => {
    const words = event.split(/[._]/).map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`);
    const schema = { $ref: `#/components/schemas/${words.join("")}Event` };
    const post = {
      operationId: `on${words.join("")}`,
      summary: SENTENCES[event],
      tags: ["Webhooks"],
      parameters,
      requestBody: { required: true, content: { "application/json": { schema, example: examples[event] } } },
      responses: { "2XX": { description: "The event was taken" } },
    };
    return [event, { post }] as const;
  });
  return Object.fromEntries(calls);
}
