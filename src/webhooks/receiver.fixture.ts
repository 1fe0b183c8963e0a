// For this feature's tests: an API with a movable clock, a trusted HTTPS receiver, producers of events.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { makeCertificateAuthority } from "../../test/support/tls.ts";
import { until } from "../../test/support/until.ts";
import { type SinkRequest, startWebhookSink, type WebhookSink } from "../../test/support/webhook-sink.ts";
import { withPartitions } from "../platform/database/partitions.ts";
import { type HooksOptions, startHooks } from "./dispatch.ts";
import type { DeliveryRecord, OutgoingEvent } from "./types.ts";
import { enqueueWebhooks, wakeHooks } from "./webhooks.ts";

/** The database's clock, which the service follows, may itself be set right meanwhile. */
const CLOCK_MS_OFF = 300;

export type Stage = {
  api: TestApi;
  /** Sets how far the service's clock is ahead, in seconds; resolves when the service sees it. */
  moveClock(seconds: number): Promise<void>;
  /** A further receiver; stopped with the stage. */
  receiver(): Promise<WebhookSink>;
  /** A dispatcher; stopped with the stage, or earlier. */
  hooks(options?: HooksOptions): Promise<{ stop(): Promise<void> }>;
  close(): Promise<void>;
};

/** Everything a test needs; `close` stops all of it. */
export async function setStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "postern-hooks-"));
  const clockFile = join(folder, "offset");
  const authority = makeCertificateAuthority(folder);
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), authority.ca]);
  const api = await testApi({ POSTERN_TESTING_CLOCK_FILE: clockFile });
  const stops: Array<() => Promise<void>> = [];
  let movedTo = 0;
  return {
    api,
    async moveClock(seconds) {
      const ahead = () => api.world.clock.now() - performance.now();
      const wanted = ahead() + (seconds - movedTo) * 1000;
      movedTo = seconds;
      writeFileSync(clockFile, String(seconds));
      await until("the clock has moved", () => Math.abs(ahead() - wanted) < CLOCK_MS_OFF);
    },
    async receiver() {
      const sink = await startWebhookSink({ tls: authority.issue(["localhost"]) });
      stops.push(sink.stop);
      return sink;
    },
    async hooks(options = {}) {
      const hooks = await startHooks(api.world, options);
      const stop = once(hooks.stop);
      stops.push(stop);
      return { stop };
    },
    async close() {
      for (const stop of stops.reverse()) await stop();
      await api.world.fetch.close();
      await api.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function once(stop: () => Promise<void>): () => Promise<void> {
  let stopped: Promise<void> | null = null;
  return () => {
    stopped ??= stop();
    return stopped;
  };
}

/** An endpoint at `url` through the API; returns its id and secret. */
export async function addWebhook(
  api: Pick<TestApi, "ask">,
  url: string,
  more: Record<string, unknown> = {},
  options: { key?: string } = {},
): Promise<{ id: string; secret: string }> {
  const created = await api.ask("POST", "/v1/webhooks", { url, events: ["email.delivered"], ...more }, options);
  assert.equal(created.status, 201, JSON.stringify(created.body));
  return { id: created.body.webhook.id, secret: created.body.secret };
}

/** An event as a producer makes it. */
export function outgoing(api: TestApi, more: Partial<OutgoingEvent> = {}): OutgoingEvent {
  const { world } = api;
  return {
    org_id: api.org_id,
    event_id: world.random.uuid(),
    event: "email.delivered",
    domain_id: null,
    recipient: "anna@example.net",
    at: new Date(world.clock.now()),
    payload: {
      email_id: world.random.uuid(),
      message_id: "m1@example.com",
      tags: ["welcome"],
      metadata: { order: "17" },
      environment: "live",
      from: "shop@example.com",
      recipient: "anna@example.net",
      subject: "Grüße – “✓”",
    },
    ...more,
  };
}

/** Queues events as a producer does: in a transaction, then the hint. */
export async function produce(api: TestApi, events: OutgoingEvent[]): Promise<void> {
  const { world } = api;
  await withPartitions(world, () => world.db.transaction((tx) => enqueueWebhooks(tx, world, events)));
  wakeHooks(world);
}

/** Waits until the receiver has had `count` requests (of those the predicate takes); returns them. */
export function requests(
  sink: WebhookSink,
  count: number,
  predicate: (request: SinkRequest) => boolean = () => true,
): Promise<SinkRequest[]> {
  return until(`${count} requests (there were ${sink.requests.length})`, () => {
    const taken = sink.requests.filter(predicate);
    return taken.length >= count ? taken : null;
  });
}

/** A delivery in JSON: times are texts. */
export type ShownDelivery = Omit<DeliveryRecord, "created_at" | "next_attempt_at"> & {
  created_at: string;
  next_attempt_at: string | null;
};

/** The deliveries as the API lists them. */
export async function deliveries(api: TestApi, query = ""): Promise<ShownDelivery[]> {
  const listed = await api.ask("GET", `/v1/webhook-deliveries?limit=100${query}`);
  assert.equal(listed.status, 200, JSON.stringify(listed.body));
  return listed.body.deliveries;
}

/** Waits until every delivery that the API lists is in this status. */
export function settled(api: TestApi, status: string, count: number, query = ""): Promise<ShownDelivery[]> {
  return until(`${count} deliveries ${status}`, async () => {
    const rows = await deliveries(api, query);
    return rows.length === count && rows.every((row) => row.status === status) ? rows : null;
  });
}
