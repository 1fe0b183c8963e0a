import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { type SmtpSink, startSmtpSink } from "../../../test/support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../../../test/support/stories.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { watchForgotten } from "./orphans.ts";

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

const NODE = 4711;

async function send(): Promise<string> {
  const body = { from: "a@sender.example", to: ["anna@recipient.example"], subject: "x", text_body: "x" };
  const answer = await api.ask("POST", "/v1/send", body);
  assert.equal(answer.status, 202);
  return answer.body.id;
}

/** What a claim leaves whose answer never came. */
async function own(id: string, node: number): Promise<void> {
  await api.world.db.query("update delivery set owner = $2, due_at = now() where message_id = $1", [id, node]);
}

async function ownerOf(id: string): Promise<number | null> {
  const [row] = await api.world.db.query<{ owner: number | null }>("select owner from delivery where message_id = $1", [
    id,
  ]);
  return row?.owner ?? null;
}

test("what a node owns without knowing goes back at the second look, what it knows of never", async () => {
  const [forgotten, held] = [await send(), await send()];
  await own(forgotten, NODE);
  await own(held, NODE);
  let woken = 0;
  const watch = watchForgotten(api.world, {
    node: () => NODE,
    knows: ({ message_id }) => message_id === held,
    returned: () => {
      woken += 1;
    },
  });
  try {
    assert.equal(await watch.look(), 0);
    assert.equal(await ownerOf(forgotten), NODE, "one look could meet a claim that is just being answered");
    assert.equal(await watch.look(), 1);
    assert.deepEqual([await ownerOf(forgotten), await ownerOf(held), woken], [null, NODE, 1]);
    assert.equal(await watch.look(), 0);
  } finally {
    await watch.stop();
  }
});

test("what a node took between two looks under another id is not suspected from before", async () => {
  const id = await send();
  await own(id, NODE);
  let node = NODE;
  const watch = watchForgotten(api.world, { node: () => node, knows: () => false, returned: () => undefined });
  try {
    await watch.look();
    node = NODE + 1;
    await own(id, node);
    assert.equal(await watch.look(), 0);
  } finally {
    await watch.stop();
  }
});

test("the engine knows what waits, what is on the wire and what is not recorded: nothing is sent twice", async () => {
  await api.world.db.query("update delivery set owner = null");
  sink.onMessage(async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return null;
  });
  await api.startMta();
  const ids = await Promise.all(Array.from({ length: 60 }, send));
  for (const id of ids) await emailWithStatus(api, id, ["delivered"]);
  // Mail of the tests before goes too.
  await until("nobody owns anything", async () => {
    return (await api.world.db.query("select 1 from delivery where owner is not null")).length === 0;
  });
  const counts = Map.groupBy(sink.messages, ({ message_id }) => message_id);
  assert.deepEqual([...new Set([...counts.values()].map(({ length }) => length))], [1]);
});
