// Sample events for testing an endpoint: every field that a real event of the type has, with made-up content on the
// example domains of RFC 2606, and `environment` "test".
import type { World } from "../platform/world.ts";
import type { OutgoingEvent, WebhookEventType } from "./types.ts";

type SampleWorld = Pick<World, "clock" | "random" | "config">;

/** The payload of a sample event of this type. */
export function samplePayload(world: SampleWorld, event: WebhookEventType): OutgoingEvent["payload"] {
  return event === "email.received" ? received(world) : { ...outbound(world), ...ADDED[event](world) };
}

function outbound(world: SampleWorld) {
  return {
    email_id: world.random.uuid(),
    message_id: `${world.random.uuid()}@example.com`,
    tags: ["sample"],
    metadata: { sample: "true" },
    environment: "test",
    from: "sender@example.com",
    recipient: "recipient@example.net",
    subject: "A sample event",
  };
}

const ADDED: Record<Exclude<WebhookEventType, "email.received">, (world: SampleWorld) => Record<string, unknown>> = {
  "email.delivered": () => ({}),
  "email.bounced": () => ({
    bounce_type: "hard",
    bounce_class: "invalid_recipient",
    bounce_code: "550",
    diag_code: "5.1.1",
    diag_message: "no such user (sample)",
  }),
  "email.deferred": (world) => ({
    bounce_code: "451",
    diag_code: "4.7.1",
    diag_message: "try again later (sample)",
    attempt: 1,
    next_attempt_at: new Date(world.clock.now() + 300_000).toISOString(),
  }),
  "email.complained": (world) => ({
    feedback_type: "abuse",
    source_ip: "192.0.2.1",
    arrival_date: new Date(world.clock.now()).toISOString(),
  }),
};

function received(world: SampleWorld): OutgoingEvent["payload"] {
  const emailId = world.random.uuid();
  return {
    email_id: emailId,
    message_id: `<${world.random.uuid()}@example.net>`,
    environment: "test",
    from: "Anna <anna@example.net>",
    to: "support@example.com",
    cc: [],
    reply_to: null,
    date: new Date(world.clock.now()).toISOString(),
    subject: "A sample event",
    text: "Hello\r\n",
    html: "<p>Hello</p>",
    headers: [{ name: "Subject", value: "A sample event" }],
    attachments: [],
    spf: "pass",
    dkim: "pass",
    auth_results: {
      dkim: {
        result: "pass",
        domain: "example.net",
        selector: "sample",
        passed_domains: ["example.net"],
        from_aligned: true,
      },
      spf: { result: "pass", domain: "example.net", from_aligned: true },
      dmarc: { result: "pass", from_domain: "example.net", dkim_aligned: true, spf_aligned: true },
    },
    envelope: {
      from: "anna@example.net",
      to: "support@example.com",
      remote_ip: "192.0.2.1",
      helo: "example.net",
      tls: true,
    },
    thread: { id: emailId, in_reply_to: null, references: [], matched_email_id: null },
    spam: { score: 0, verdict: "ham", symbols: [] },
    auto_submitted: false,
    recipient_tag: null,
    domain_id: null,
    alias_id: null,
    raw_url: `${world.config.base_url}/v1/inbound-emails/${emailId}/raw`,
    size: 1024,
    truncated: false,
  };
}
