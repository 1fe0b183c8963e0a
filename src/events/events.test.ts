// Whose mail is counted: what the customer sent, and nothing that the service made out of mail that came in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { addVerifiedDomain } from "../../test/support/verified-domain.ts";
import { withPartitions } from "../platform/database/partitions.ts";
import { figuresBetween } from "../stats/stats.ts";
import { type MailEvent, recordEvents } from "./events.ts";

const HOUR_MS = 3_600_000;

let api: TestApi;
let dns: DnsServer;
before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
});
after(async () => {
  await api.close();
  await dns.stop();
});

const bounce = (domain_id: string, origin: string | undefined): MailEvent => ({
  org_id: api.org_id,
  id: api.world.random.uuid(),
  event_type: "bounced",
  message_id: api.world.random.uuid(),
  recipient: "gone@there.example",
  at: new Date(api.world.clock.now()),
  attempt: 1,
  smtp_code: "550",
  enhanced_code: "5.1.1",
  message: "no such user",
  mx_host: null,
  mx_ip: null,
  source_ip: null,
  tls: null,
  duration_ms: 1,
  class: "invalid_recipient",
  isp: "google",
  bounce_type: "hard",
  suppress: false,
  next_attempt_at: null,
  announces: true,
  about: {
    domain_id,
    rfc_message_id: "m@x",
    from_address: "a@x",
    subject: "",
    tags: [],
    metadata: {},
    environment: "live",
    ...(origin === undefined ? {} : { origin }),
  },
});

/** What statistics and warming know after one bounce of a message of that origin. */
async function figuresAfter(domain: string, origin: string | undefined) {
  const { world, org_id } = api;
  const { id } = await addVerifiedDomain(api, dns, domain);
  const event = bounce(id, origin);
  await withPartitions(world, () => world.db.transaction((tx) => recordEvents(tx, world, [event])));
  const { metrics } = (await api.ask("GET", `/v1/domains/${id}/stats`)).body;
  const { isps } = (await api.ask("GET", `/v1/domains/${id}/stats/isp`)).body;
  const hour = event.at.getTime() - (event.at.getTime() % HOUR_MS);
  const period = { from: new Date(hour), to: new Date(hour + HOUR_MS) };
  const judged = await world.db.asOrg(org_id, (tx) => figuresBetween(tx, org_id, id, period));
  const [reported] = await world.db.query<{ count: number }>(
    "select count(*)::int as count from event where org_id = $1 and id = $2",
    [org_id, event.id],
  );
  return {
    sent: metrics.total_sent,
    bounced: metrics.total_bounced,
    reasons: isps.flatMap((isp: { top_bounce_reasons: unknown[] }) => isp.top_bounce_reasons).length,
    warming: [judged.sent, judged.hard_bounced],
    reported: reported?.count,
  };
}

for (const origin of [undefined, "api", "submission"]) {
  test(`a bounce of what a customer sent (${origin ?? "no origin"}) counts, for statistics and for warming`, async () => {
    assert.deepEqual(await figuresAfter(`sent-${origin ?? "none"}.example`, origin), {
      sent: 1,
      bounced: 1,
      reasons: 1,
      warming: [1, 1],
      reported: 1,
    });
  });
}

for (const origin of ["forward", "masked", "system"]) {
  test(`a bounce of what the service made (${origin}) is in the timeline and in no figure`, async () => {
    assert.deepEqual(await figuresAfter(`made-${origin}.example`, origin), {
      sent: 0,
      bounced: 0,
      reasons: 0,
      warming: [0, 0],
      reported: 1,
    });
  });
}
