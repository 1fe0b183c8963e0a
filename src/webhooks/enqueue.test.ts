import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import type { Tx } from "../platform/database/db.ts";
import { addWebhook, outgoing } from "./receiver.fixture.ts";
import { createBell, listenInProcess, wakeHooks } from "./wake.ts";
import { enqueueWebhooks, findDomainWebhooks, findWebhooks, listEventDeliveries } from "./webhooks.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

function counting(tx: Tx): { tx: Tx; statements: string[] } {
  const statements: string[] = [];
  const note = (text: string) => statements.push(text.trim().split(/\s+/, 1)[0] ?? "");
  return {
    statements,
    tx: {
      ...tx,
      query: (text, values) => {
        note(text);
        return tx.query(text, values);
      },
      execute: (text, values) => {
        note(text);
        return tx.execute(text, values);
      },
    },
  };
}

async function statementsFor(count: number, more: { org_id: string; bytes?: number }): Promise<string[]> {
  const events = Array.from({ length: count }, () => {
    const event = outgoing(api, { org_id: more.org_id });
    return { ...event, payload: { ...event.payload, text: "x".repeat(more.bytes ?? 10) } };
  });
  // Whether somebody reads the organization's events is known for a second.
  await api.world.db.transaction((tx) =>
    enqueueWebhooks(tx, api.world, [outgoing(api, { org_id: more.org_id, event: "email.received" })]),
  );
  return api.world.db.transaction(async (inner) => {
    const { tx, statements } = counting(inner);
    await enqueueWebhooks(tx, api.world, events);
    return statements;
  });
}

async function counts(orgId: string): Promise<[events: number, deliveries: number]> {
  const [row] = await api.world.db.query<{ events: number; deliveries: number }>(
    `select (select count(*) from webhook_event where org_id = $1) as events,
            (select count(*) from webhook_queue where org_id = $1) as deliveries`,
    [orgId],
  );
  return [row?.events ?? -1, row?.deliveries ?? -1];
}

test("nothing costs nothing, and events that nobody subscribes to cost one select", async () => {
  const { org_id } = await api.organization();
  assert.deepEqual(await statementsFor(0, { org_id }), []);
  assert.deepEqual(await statementsFor(200, { org_id }), ["select"]);
  assert.deepEqual(await counts(org_id), [0, 0]);
});

test("200 events for three endpoints take three statements, two while the lanes are awake; bodies are stored once", async () => {
  const { org_id, live_key: key } = await api.organization();
  for (const path of ["a", "b", "c"]) await addWebhook(api, `https://hooks.example.com/${path}`, {}, { key });
  assert.equal((await statementsFor(200, { org_id })).length, 3);
  assert.equal((await statementsFor(200, { org_id })).length, 2);
  assert.deepEqual(await counts(org_id), [400, 1_200]);
});

test("large bodies are written in statements of at most some 8 MiB", async () => {
  const { org_id, live_key: key } = await api.organization();
  await addWebhook(api, "https://hooks.example.com/", {}, { key });
  const statements = await statementsFor(20, { org_id, bytes: 1024 * 1024 });
  assert.equal(statements.length, 1 + 3 + 1);
  assert.deepEqual(await counts(org_id), [20, 20]);
});

test("an endpoint that a test key made hears of test mail only, a live key's of both", async () => {
  const { org_id, live_key, test_key } = await api.organization();
  const live = await addWebhook(api, "https://hooks.example.com/live", {}, { key: live_key });
  const test = await addWebhook(api, "https://hooks.example.com/test", {}, { key: test_key });
  const reported = async (environment: string) => {
    const event = outgoing(api, { org_id });
    const about = { ...event, payload: { ...event.payload, environment } };
    return api.world.db.transaction(async (tx) => {
      await enqueueWebhooks(tx, api.world, [about]);
      return (await listEventDeliveries(tx, org_id, [event.event_id])).map(({ endpoint_id }) => endpoint_id).sort();
    });
  };
  assert.deepEqual(await reported("live"), [live.id]);
  assert.deepEqual(await reported("test"), [live.id, test.id].sort());
});

test("a producer may work for one organization only, behind row-level security", async () => {
  const { org_id, live_key: key } = await api.organization();
  const { id } = await addWebhook(api, "https://hooks.example.com/", {}, { key });
  const event = outgoing(api, { org_id });
  await api.world.db.asOrg(org_id, (tx) => enqueueWebhooks(tx, api.world, [event]));
  const rows = await api.world.db.asOrg(org_id, (tx) => listEventDeliveries(tx, org_id, [event.event_id]));
  assert.deepEqual(
    rows.map((row) => [row.endpoint_id, row.status, row.attempt]),
    [[id, "pending", 0]],
  );
  const foreign = await api.world.db.asOrg(api.org_id, (tx) => listEventDeliveries(tx, api.org_id, [event.event_id]));
  assert.deepEqual(foreign, []);
});

test("the same event queued again keeps the bytes of the first time", async () => {
  const { org_id, live_key: key } = await api.organization();
  await addWebhook(api, "https://hooks.example.com/", {}, { key });
  const event = outgoing(api, { org_id });
  const again = { ...event, payload: { ...event.payload, subject: "changed" } };
  for (const made of [event, again]) await api.world.db.transaction((tx) => enqueueWebhooks(tx, api.world, [made]));
  assert.deepEqual(await counts(org_id), [1, 2]);
  const [row] = await api.world.db.query<{ body: Buffer }>("select body from webhook_event where org_id = $1", [
    org_id,
  ]);
  assert.equal(JSON.parse(String(row?.body)).subject, event.payload.subject);
});

test("other features find the endpoints of their organization, and those of a domain's catch-all", async () => {
  const { org_id, live_key: key } = await api.organization();
  const domain = await api.ask("POST", "/v1/domains", { domain: "catch-all.example.com" }, { key });
  const url = "https://hooks.example.com/";
  const bound = { domain_id: domain.body.id };
  const all = await addWebhook(api, url, { events: ["email.received"] }, { key });
  const caught = await addWebhook(api, url, { events: ["email.received"], ...bound }, { key });
  await addWebhook(api, url, { events: ["email.delivered"], ...bound }, { key });
  const off = await addWebhook(api, url, { events: ["email.received"], ...bound }, { key });
  await api.ask("PUT", `/v1/webhooks/${off.id}`, { enabled: false }, { key });
  const [found, foreign, route] = await api.world.db.asOrg(org_id, async (tx) => [
    await findWebhooks(tx, org_id, [all.id, off.id, "x", org_id]),
    await findWebhooks(tx, api.org_id, [all.id]),
    await findDomainWebhooks(tx, [{ org_id, domain_id: domain.body.id }]),
  ]);
  assert.deepEqual(
    found?.map((row) => [row.id, row.enabled]).sort(),
    [
      [all.id, true],
      [off.id, false],
    ].sort(),
  );
  assert.deepEqual(foreign, []);
  assert.deepEqual(
    route?.map((row) => row.id),
    [caught.id],
  );
});

test("hints to other processes are at most ten a second, and none go out while a dispatcher listens in this one", async () => {
  let notified = 0;
  const world = {
    db: {
      async query() {
        notified += 1;
      },
    },
    log: { debug: () => undefined },
  } as unknown as Parameters<typeof wakeHooks>[0];
  for (let hint = 0; hint < 1_000; hint += 1) wakeHooks(world);
  assert.equal(notified, 1, "the first goes at once");
  await until("the others go together", () => notified === 2);
  const bell = createBell();
  const stopListening = listenInProcess(world.db, bell);
  wakeHooks(world);
  assert.equal(await bell.rang(0), true);
  assert.equal(notified, 2);
  stopListening();
  wakeHooks(world);
  await until("those of other processes are notified again", () => notified === 3);
});

test("a bell remembers one ring, and silence ends after the given time", async () => {
  const bell = createBell();
  bell.ring();
  bell.ring();
  assert.equal(await bell.rang(1_000), true);
  assert.equal(await bell.rang(1), false);
  const noted = bell.rang(5_000);
  bell.ring();
  assert.equal(await noted, true);
});
