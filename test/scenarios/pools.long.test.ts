// Mail from dedicated addresses, over real sockets on loopback addresses: which address the server sees, how a new one is
// warmed up, and who sends when an address, or the machine that has it, is gone.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { giveBackSource, holdSource } from "../../src/outbound/operate/source-queries.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../support/moved-clock.ts";
import { type Received, type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

/** No machine here has it. */
const ELSEWHERE = "10.99.99.98";

const warm = (end: number, change: object = {}) => ({ ip: `127.0.0.${end}`, warmup: false, ...change });
const POOLS = {
  plain: [warm(2, { ehlo: "out2.sender.example" }), warm(3, { ehlo: "out3.sender.example" })],
  shrinking: [warm(4), warm(5), { ip: ELSEWHERE, warmup: false }],
  vanishing: [{ ip: "10.99.99.97", warmup: false }],
  listed: [warm(6), warm(7)],
  hopeless: [warm(8), warm(9)],
  held: [warm(18), warm(19)],
  new: [warm(10, { warmup: true })],
  young: [warm(14, { warmup: true }), warm(15, { warmup: true })],
  full: [warm(20, { warmup: true })],
  mixed: [warm(11, { warmup: true }), warm(12)],
};

const DAY_MS = 86_400_000;

let dns: DnsServer;
let sink: SmtpSink;
let api: TestApi;
let clock: MovedClock;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  clock = runningClock("2026-11-20T12:00:00Z");
  const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
  api = await testApi(env, byClock(clock));
  await api.startMta();
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
  for (const [name, ips] of Object.entries(POOLS)) {
    const { status, body } = await api.ask("POST", "/v1/ip-pools", { name, ips });
    assert.equal(status, 201, JSON.stringify(body));
  }
  for (const [name, ips] of Object.entries(POOLS)) {
    await settled(name, ips.filter(({ ip }) => ip.startsWith("127.")).length);
  }
});

after(async () => {
  await api?.close();
  await sink.stop();
  await dns.stop();
});

/**
 * Moves the clock a step at each look, by a day in all: on a busy machine there are so many looks that mail would end by its
 * deadline of 72 hours before it is tried.
 */
function untilLater<T>(what: string, step_ms: number, look: () => T | Promise<T>) {
  let leftMs = DAY_MS;
  return until(what, () => {
    if (leftMs > 0) clock.move(step_ms);
    leftMs -= step_ms;
    return look();
  });
}

/** Waits until the engine, which looks every five seconds, has those addresses that are this machine's. */
async function settled(name: string, available: number): Promise<void> {
  await until(`${available} addresses of ${name}`, async () => {
    const { ips } = (await api.ask("GET", `/v1/ip-pools/${name}`)).body.ip_pool;
    const [free] = await api.world.db.query<{ total: number }>(
      "select count(*) as total from lease l join source s on s.id = l.source_id where s.pool = $1 and node_id is null",
      [name],
    );
    return ips.filter(({ state }: { state: string }) => state !== "unavailable").length === available && !free?.total;
  });
}

async function send(ipPool: string, count: number): Promise<string[]> {
  const mail = { from: "a@sender.example", to: ["anna@recipient.example"], subject: "x", text_body: "x" };
  const sent = await api.ask("POST", "/v1/send/batch", Array(count).fill({ ...mail, ip_pool: ipPool }));
  assert.equal(sent.body.accepted, count, JSON.stringify(sent.body));
  return sent.body.results.map(({ id }: { id: string }) => id);
}

/** What the sink got of these messages, once it has them all. */
async function arrived(ids: string[], timeoutMs?: number): Promise<Received[]> {
  const mine = () => sink.messages.filter(({ message_id }) => ids.includes(message_id.split("@")[0] as string));
  await until(`${ids.length} messages`, async () => mine().length >= ids.length, timeoutMs);
  assert.equal(mine().length, ids.length, "none twice");
  return mine();
}

const countBy = (received: Received[]) =>
  Object.fromEntries([...Map.groupBy(received, ({ remote_ip }) => remote_ip)].map(([ip, all]) => [ip, all.length]));

async function attempts(id: string) {
  const { body } = await api.ask("GET", `/v1/emails/${id}/events`);
  return body.events.filter(({ attempt }: { attempt: number | null }) => attempt !== null);
}

describe("mail beyond the limit of its own pool", () => {
  it("says so in its timeline, once, and leaves as soon as the limit is lifted", async () => {
    const ids = await send("full", 53);
    const of = () => sink.messages.filter(({ message_id }) => ids.includes(message_id.split("@")[0] as string));
    await until("50 messages", async () => of().length >= 50);
    const gone = of().map(({ message_id }) => message_id.split("@")[0] as string);
    const waiting = ids.filter((id) => !gone.includes(id));
    const tomorrow = new Date((Math.floor(clock.now() / DAY_MS) + 1) * DAY_MS).toISOString();
    const why = "waits for tomorrow (UTC): the warm-up limit of 127.0.0.20 is reached for today";
    const deferrals = async (id: string) => {
      const { events } = (await api.ask("GET", `/v1/emails/${id}/events`)).body;
      return events.filter(({ event_type }: { event_type: string }) => event_type === "deferred");
    };
    assert.equal(waiting.length, 3);
    for (const id of waiting) {
      const email = await emailWithStatus(api, id, ["deferred"], 20_000);
      const [{ attempts: tries, diag_message, next_attempt_at }] = email.recipients;
      assert.deepEqual([tries, diag_message, next_attempt_at], [0, why, tomorrow]);
      const [event, again] = await deferrals(id);
      assert.deepEqual([event.message, event.attempt, again], [why, null, undefined]);
    }
    const ips = [{ ip: "127.0.0.20", warmup: false }];
    assert.equal((await api.ask("PUT", "/v1/ip-pools/full", { ips })).status, 200);
    await arrived(ids, 30_000);
    for (const id of waiting) {
      await emailWithStatus(api, id, ["delivered"]);
      assert.equal((await deferrals(id)).length, 1, "it is said once");
    }
  });
});

describe("a new address", () => {
  it("leaves what is beyond its limit to others of the pool", async () => {
    const ids = [...(await send("mixed", 100)), ...(await send("mixed", 60))];
    const counts = countBy(await arrived(ids));
    assert.equal(counts["127.0.0.11"], 50, JSON.stringify(counts));
    assert.equal(counts["127.0.0.12"], 110);
  });

  it("makes exactly its attempts of the day; the rest waits for the next day", async () => {
    const ids = await send("new", 70);
    const of = () => sink.messages.filter(({ message_id }) => ids.includes(message_id.split("@")[0] as string)).length;
    await until("50 messages", async () => of() >= 50);
    const { warmup } = (await api.ask("GET", "/v1/ip-pools/new")).body.ip_pool.ips[0];
    assert.deepEqual([warmup.day, warmup.daily_limit, warmup.used_today], [1, 50, 50]);
    // Two rounds of claims and more: nothing beyond the limit.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.equal(of(), 50);
    clock.nextDay(60_000);
    assert.deepEqual(countBy(await arrived(ids)), { "127.0.0.10": 70 });
    const later = (await api.ask("GET", "/v1/ip-pools/new")).body.ip_pool.ips[0].warmup;
    assert.deepEqual([later.day, later.daily_limit, later.used_today], [2, 100, 20]);
  });
});

describe("a pool's mail", () => {
  it("leaves from it as soon as it is made, also when it was asked for before", async () => {
    const mail = { from: "a@sender.example", to: ["anna@recipient.example"], subject: "x", text_body: "x" };
    const ask = () => api.ask("POST", "/v1/send", { ...mail, ip_pool: "late" });
    assert.equal((await ask()).status, 400);
    const ips = [{ ip: "127.0.0.16", warmup: false }];
    assert.equal((await api.ask("POST", "/v1/ip-pools", { name: "late", ips })).status, 201);
    assert.equal((await ask()).status, 202);
  });

  it("leaves from its addresses, each with its name, and the timeline shows which", async () => {
    const ids = await send("plain", 40);
    const received = await arrived(ids);
    const counts = countBy(received);
    assert.deepEqual(Object.keys(counts).sort(), ["127.0.0.2", "127.0.0.3"]);
    assert.ok(
      Object.values(counts).every((count) => count >= 8),
      JSON.stringify(counts),
    );
    for (const { remote_ip, ehlo } of received) assert.equal(ehlo, `out${remote_ip.at(-1)}.sender.example`);
    const [first] = received as [Received];
    const id = first.message_id.split("@")[0] as string;
    await emailWithStatus(api, id, ["delivered"]);
    assert.equal((await attempts(id)).at(-1)?.source_ip, first.remote_ip);
    await until("figures", async () => {
      const { ips } = (await api.ask("GET", "/v1/ip-pools/plain")).body.ip_pool;
      return ips.reduce((sum: number, one: { today: { delivered: number } }) => sum + one.today.delivered, 0) === 40;
    });
  });

  it("does not touch other mail, which leaves from the machine's usual address", async () => {
    const mail = { from: "a@sender.example", to: ["anna@recipient.example"], subject: "x", text_body: "x" };
    const sent = await api.ask("POST", "/v1/send", mail);
    const [received] = await arrived([sent.body.id]);
    assert.deepEqual([received?.remote_ip, received?.ehlo], ["127.0.0.1", "postern.test"]);
  });

  it("leaves from the rest when an address is taken out, or is no machine's", async () => {
    const ids = await send("shrinking", 20);
    assert.ok(!(ELSEWHERE in countBy(await arrived(ids))));
    const { body } = await api.ask("PUT", "/v1/ip-pools/shrinking", { ips: [{ ip: "127.0.0.5", warmup: false }] });
    assert.equal(body.ip_pool.ips.length, 1);
    await until("the engine to see it", async () => {
      return countBy(await arrived(await send("shrinking", 20)))["127.0.0.5"] === 20;
    });
    assert.deepEqual(countBy(await arrived(await send("shrinking", 20))), { "127.0.0.5": 20 });
  });

  it("leaves from the rest while an operator has an address out of use; with none left it waits until one is given back", async () => {
    const [first, second] = ["127.0.0.18", "127.0.0.19"];
    const change = async (ip: string, isHeld: boolean) => {
      const [source] = await api.world.db.query<{ id: string }>("select id from source where host(ip) = $1", [ip]);
      const order = { at: new Date(), by: "operator@example.net", note: null };
      await api.world.db.transaction((tx) =>
        isHeld ? holdSource(tx, source?.id ?? "", order) : giveBackSource(tx, source?.id ?? ""),
      );
    };
    await change(first, true);
    await settled("held", 1);
    assert.deepEqual(countBy(await arrived(await send("held", 20))), { [second]: 20 });
    await change(second, true);
    await settled("held", 0);
    const [waiting] = (await send("held", 1)) as [string];
    await emailWithStatus(api, waiting, ["deferred"]);
    assert.match((await attempts(waiting))[0].message, /the operator took the addresses of the pool held out of use/);
    await change(second, false);
    await settled("held", 1);
    await untilLater("it is due again", 60_000, () => {
      return sink.messages.some(({ message_id }) => message_id.startsWith(waiting));
    });
    assert.deepEqual(countBy(await arrived([waiting])), { [second]: 1 });
  });

  it("leaves from the shared address once the pool is gone", async () => {
    const ids = await send("vanishing", 3);
    const [first] = ids as [string];
    await emailWithStatus(api, first, ["deferred"]);
    assert.match((await attempts(first))[0].message, /no sending machine has an address of the pool vanishing/);
    assert.equal((await api.ask("DELETE", "/v1/ip-pools/vanishing")).status, 409);
    assert.equal((await api.ask("DELETE", "/v1/ip-pools/vanishing?force=true")).status, 200);
    // Each has a next attempt of its own.
    await untilLater("the engine sees it, and all are due again", 60_000, async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return ids.every((id) => sink.messages.some(({ message_id }) => message_id.startsWith(id)));
    });
    assert.deepEqual(countBy(await arrived(ids)), { "127.0.0.1": 3 });
  });
});

describe("an address that is refused for itself", () => {
  it("gives the message to another of its pool, once, and both tries are shown", async () => {
    const refusal = (ip: string) => ({
      code: 550,
      text: `5.7.1 Service unavailable; client host [${ip}] blocked using zen.spamhaus.org`,
    });
    sink.onMessage(({ remote_ip }) => (remote_ip === "127.0.0.6" ? refusal(remote_ip) : null));
    const ids = await send("listed", 12);
    // Three refusals in a row park the address's lanes for a quarter of an hour.
    await untilLater("delivery of all", 60_000, async () => {
      const statuses = await Promise.all(ids.map((id) => api.ask("GET", `/v1/emails/${id}`)));
      return statuses.every(({ body }) => body.email.status === "delivered");
    });
    const refused = (await Promise.all(ids.map(attempts))).filter((tries) => tries.length > 1);
    assert.ok(refused.length > 0, "some were refused");
    for (const tries of refused) {
      const seen = tries.map((one: { event_type: string; source_ip: string }) => `${one.event_type} ${one.source_ip}`);
      assert.deepEqual(seen, ["deferred 127.0.0.6", "delivered 127.0.0.7"]);
    }
    sink.onMessage(() => null);
    await until("figures", async () => {
      const [shown] = (await api.ask("GET", "/v1/ip-pools/listed")).body.ip_pool.ips;
      return shown.last_7_days.blocked === refused.length;
    });
  });

  it("gives it to the other one as well while both are warmed up, and each try is counted where it was made", async () => {
    sink.onMessage(({ remote_ip }) =>
      remote_ip === "127.0.0.14" ? { code: 550, text: `5.7.1 [${remote_ip}] is listed by Spamhaus` } : null,
    );
    const ids = await send("young", 8);
    await untilLater("delivery of all", 5 * 60_000, async () => {
      const statuses = await Promise.all(ids.map((id) => api.ask("GET", `/v1/emails/${id}`)));
      return statuses.every(({ body }) => body.email.status === "delivered");
    });
    const tries = (await Promise.all(ids.map(attempts))).flat();
    const from = (ip: string) => tries.filter(({ source_ip }: { source_ip: string }) => source_ip === ip).length;
    assert.ok(from("127.0.0.14") > 0, "some were refused");
    const made = [from("127.0.0.14"), from("127.0.0.15")];
    // What a parked lane held is given back once it is in the queue again.
    await until(`${made} to be counted`, async () => {
      const { ips } = (await api.ask("GET", "/v1/ip-pools/young")).body.ip_pool;
      const used = ips.map(({ warmup }: { warmup: { used_today: number } }) => warmup.used_today);
      return used.join() === made.join();
    });
    sink.onMessage(() => null);
  });

  it("makes it bounce when the other one is refused as well", async () => {
    sink.onMessage(({ remote_ip }) => ({ code: 550, text: `5.7.1 [${remote_ip}] is listed by Spamhaus` }));
    const [id] = (await send("hopeless", 1)) as [string];
    await emailWithStatus(api, id, ["bounced"], 15_000);
    const tries = await attempts(id);
    assert.deepEqual(
      tries.map(({ event_type }: { event_type: string }) => event_type),
      ["deferred", "bounced"],
    );
    assert.equal(new Set(tries.map(({ source_ip }: { source_ip: string }) => source_ip)).size, 2);
    sink.onMessage(() => null);
  });
});

describe("an address of another machine", () => {
  it("is left to that machine; when it dies, the pool's others send what waits", async () => {
    const [node] = await api.world.db.query<{ id: number }>(
      `insert into node (machine, pid, roles, addresses) values ('other/boot/space', 1, '{mta}', '{${ELSEWHERE}}')
       returning id`,
    );
    const alive = setInterval(() => {
      void api.world.db.query("update node set seen_at = statement_timestamp() where id = $1", [node?.id]);
    }, 1_000);
    const { status } = await api.ask("POST", "/v1/ip-pools", {
      name: "spread",
      ips: [
        { ip: ELSEWHERE, warmup: false },
        { ip: "127.0.0.13", warmup: false },
      ],
    });
    assert.equal(status, 201);
    await until("both to be available", async () => {
      const { ips } = (await api.ask("GET", "/v1/ip-pools/spread")).body.ip_pool;
      return ips.every(({ state }: { state: string }) => state === "ready");
    });
    const ids = await send("spread", 20);
    const [mine] = await api.world.db.query<{ total: number }>(
      `select count(*) as total from delivery d join lane l on l.id = d.lane_id join source s on s.id = l.source_id
        where host(s.ip) = $1`,
      [ELSEWHERE],
    );
    const waiting = mine?.total as number;
    assert.ok(waiting > 0 && waiting < 20, `${waiting} of 20 wait for the other machine`);
    const of = () => sink.messages.filter(({ message_id }) => ids.includes(message_id.split("@")[0] as string));
    await until("the others", async () => of().length === 20 - waiting);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    assert.equal(of().length, 20 - waiting, "this machine does not send what is the other's");
    clearInterval(alive);
    await api.world.db.query("delete from node where id = $1", [node?.id]);
    assert.deepEqual(countBy(await arrived(ids)), { "127.0.0.13": 20 });
  });
});
