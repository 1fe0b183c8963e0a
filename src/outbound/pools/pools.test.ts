// /v1/ip-pools, field by field, and `ip_pool` on domains and sends. Where the mail then leaves from is in
// test/scenarios/pools.long.test.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type SendingApi, sendingApi } from "../../../test/api/sender.ts";
import { sweepSources } from "../background.ts";

let api: SendingApi;
let other: Awaited<ReturnType<SendingApi["organization"]>>;
let address = 1;

before(async () => {
  api = await sendingApi();
  other = await api.organization();
});
after(() => api.close());

/** Addresses are one pool's alone: each test takes new ones. */
function fresh(): string {
  address += 1;
  return `10.20.${address >> 8}.${address & 255}`;
}

const create = (body: Record<string, unknown>, key?: string) =>
  api.ask("POST", "/v1/ip-pools", body, key === undefined ? {} : { key });

const NOTHING = { delivered: 0, deferred: 0, bounced: 0, blocked: 0 };

describe("an IP pool", () => {
  it("is created with defaults, and shows the state of each address", async () => {
    const [first, second] = [fresh(), fresh()];
    const ips = [{ ip: first }, { ip: second, ehlo: "Out2.Sender.Example", weight: 3, warmup: false }];
    const { status, body } = await create({ name: "marketing", ips });
    assert.equal(status, 201, JSON.stringify(body));
    const { id, created_at, updated_at, ...rest } = body.ip_pool;
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.equal(created_at, updated_at);
    const shown = { state: "unavailable", today: NOTHING, last_7_days: NOTHING };
    assert.deepEqual(rest, {
      name: "marketing",
      ips: [
        {
          ip: first,
          ehlo: "postern.test",
          weight: 1,
          ...shown,
          warmup: { started_at: created_at, day: 1, daily_limit: 50, used_today: 0 },
        },
        { ip: second, ehlo: "out2.sender.example", weight: 3, ...shown, warmup: null },
      ],
    });
    assert.deepEqual((await api.ask("GET", `/v1/ip-pools/${id}`)).body, body);
    assert.deepEqual((await api.ask("GET", "/v1/ip-pools/marketing")).body, body);
    const { body: page } = await api.ask("GET", "/v1/ip-pools?limit=1");
    assert.deepEqual([page.ip_pools, page.limit, page.offset], [[body.ip_pool], 1, 0]);
    assert.ok(page.total >= 1);
  });

  it("shows its addresses' figures of today and of the last seven days", async () => {
    const ip = fresh();
    await create({ name: "figures", ips: [{ ip }] });
    const [source] = await api.world.db.query<{ id: string }>("select id from source where host(ip) = $1", [ip]);
    const day = (ago: number) => new Date(api.world.clock.now() - ago * 86_400_000).toISOString().slice(0, 10);
    for (const [ago, count] of [
      [0, 1],
      [6, 10],
      [7, 100],
    ] as const) {
      await api.world.db.query(
        `insert into source_day (source_id, day, granted, delivered, deferred, bounced, blocked)
         values ($1, $2, $3::int, $3::int, $3::int * 2, $3::int * 3, $3::int * 4)`,
        [source?.id, day(ago), count],
      );
    }
    const [shown] = (await api.ask("GET", "/v1/ip-pools/figures")).body.ip_pool.ips;
    assert.deepEqual(shown.today, { delivered: 1, deferred: 2, bounced: 3, blocked: 4 });
    assert.deepEqual(shown.last_7_days, { delivered: 11, deferred: 22, bounced: 33, blocked: 44 });
    assert.equal(shown.warmup.used_today, 1);
  });

  it("gets and loses addresses, and keeps the warm-up of those that stay", async () => {
    const [first, second, third] = [fresh(), fresh(), fresh()];
    await create({ name: "changing", ips: [{ ip: first }, { ip: second, warmup: false }] });
    api.advance(2 * 86_400_000);
    const ips = [{ ip: first, weight: 2 }, { ip: second }, { ip: third }];
    const { status, body } = await api.ask("PUT", "/v1/ip-pools/changing", { ips });
    assert.equal(status, 200, JSON.stringify(body));
    const shown = body.ip_pool.ips.map((one: { ip: string; weight: number; warmup: { day: number } | null }) => [
      one.ip,
      one.weight,
      one.warmup?.day ?? null,
    ]);
    assert.deepEqual(shown, [
      [first, 2, 3],
      [second, 1, null],
      [third, 1, 1],
    ]);
    assert.ok(body.ip_pool.updated_at > body.ip_pool.created_at);
    const fewer = await api.ask("PUT", "/v1/ip-pools/changing", { ips: [{ ip: third, warmup: false }] });
    assert.deepEqual(
      fewer.body.ip_pool.ips.map(({ ip, warmup }: { ip: string; warmup: null }) => [ip, warmup]),
      [[third, null]],
    );
    const again = await create({ name: "elsewhere", ips: [{ ip: first }] });
    assert.equal(again.status, 201, "an address that was taken out is free");
  });

  it("has a name of its own, and addresses that nobody else has", async () => {
    const ip = fresh();
    await create({ name: "mine", ips: [{ ip }] });
    const twice = await create({ name: "mine", ips: [{ ip: fresh() }] });
    assert.deepEqual([twice.status, twice.body.code, twice.body.field], [409, "already_exists", "name"]);
    for (const key of [api.live_key, other.live_key]) {
      const taken = await create({ name: "theirs", ips: [{ ip }] }, key);
      assert.deepEqual([taken.status, taken.body.code, taken.body.field], [409, "already_exists", "ips"]);
    }
    assert.equal((await create({ name: "mine", ips: [{ ip: fresh() }] }, other.live_key)).status, 201);
    const moved = await api.ask("PUT", "/v1/ip-pools/mine", { ips: [{ ip }, { ip: fresh() }] });
    assert.equal(moved.status, 200, "its own address is no obstacle");
  });

  const bad: [string, Record<string, unknown>, string][] = [
    ["no name", { name: undefined }, "name"],
    ["a name with capitals", { name: "Bulk" }, "name"],
    ["a name too long", { name: "x".repeat(64) }, "name"],
    ["no addresses", { ips: undefined }, "ips"],
    ["an empty list", { ips: [] }, "ips"],
    ["too many addresses", { ips: Array.from({ length: 65 }, (_, n) => ({ ip: `10.9.8.${n}` })) }, "ips"],
    ["a name for an address", { ips: [{ ip: "mail.example.eu" }] }, "ips[0].ip"],
    ["an address in another spelling", { ips: [{ ip: "0x7f000001" }] }, "ips[0].ip"],
    ["an address with a zone", { ips: [{ ip: "fe80::1%eth0" }] }, "ips[0].ip"],
    ["the unspecified address", { ips: [{ ip: "0.0.0.0" }] }, "ips[0].ip"],
    ["a group address", { ips: [{ ip: "224.0.0.1" }] }, "ips[0].ip"],
    ["a link-local address", { ips: [{ ip: "fe80::1" }] }, "ips[0].ip"],
    ["a mapped address", { ips: [{ ip: "::ffff:10.0.0.1" }] }, "ips[0].ip"],
    ["an address twice", { ips: [{ ip: "2001:4860::1" }, { ip: "2001:4860:0::1" }] }, "ips[1].ip"],
    ["a bare word for EHLO", { ips: [{ ip: "10.1.1.1", ehlo: "mail" }] }, "ips[0].ehlo"],
    ["a line break in EHLO", { ips: [{ ip: "10.1.1.1", ehlo: "a.example\r\nMAIL" }] }, "ips[0].ehlo"],
    ["weight 0", { ips: [{ ip: "10.1.1.1", weight: 0 }] }, "ips[0].weight"],
    ["weight 101", { ips: [{ ip: "10.1.1.1", weight: 101 }] }, "ips[0].weight"],
    ["a word for warmup", { ips: [{ ip: "10.1.1.1", warmup: "yes" }] }, "ips[0].warmup"],
    ["an unknown field", { colour: "blue" }, "colour"],
    ["an unknown field of an address", { ips: [{ ip: "10.1.1.1", pool: "x" }] }, "ips[0].pool"],
  ];
  for (const [what, change, field] of bad) {
    it(`is refused with ${what}`, async () => {
      const { status, body } = await create({ name: "bad", ips: [{ ip: "10.1.1.1" }], ...change });
      assert.deepEqual([status, body.code, body.field], [400, "validation_error", field], JSON.stringify(body));
    });
  }

  it("needs a plan with dedicated addresses", async () => {
    for (const plan of ["free", "starter", "growth"] as const) {
      const { live_key } = await api.organization(plan);
      const refused = await create({ name: "small", ips: [{ ip: fresh() }] }, live_key);
      assert.deepEqual([refused.status, refused.body.code], [403, "plan_limit_reached"], plan);
      assert.equal((await api.ask("GET", "/v1/ip-pools", undefined, { key: live_key })).status, 200);
    }
    const { live_key } = await api.organization("scale");
    assert.equal((await create({ name: "small", ips: [{ ip: fresh() }] }, live_key)).status, 201);
  });

  it("is its organization's alone", async () => {
    const { body } = await create({ name: "private", ips: [{ ip: fresh() }] });
    for (const id of [body.ip_pool.id, "private"]) {
      for (const method of ["GET", "PUT", "DELETE"]) {
        const change = method === "PUT" ? { ips: [{ ip: fresh() }] } : undefined;
        const answer = await api.ask(method, `/v1/ip-pools/${id}`, change, { key: other.live_key });
        assert.equal(answer.status, 404, `${method} ${id}`);
      }
    }
    const theirs = await api.ask("GET", "/v1/ip-pools", undefined, { key: other.live_key });
    assert.ok(!JSON.stringify(theirs.body).includes("private"));
    assert.equal((await api.ask("GET", "/v1/ip-pools/nowhere")).status, 404);
    assert.equal((await api.ask("GET", "/v1/ip-pools/private", undefined, { key: null })).status, 401);
    const rows = await api.world.db.asOrg(other.org_id, (tx) =>
      tx.query("select 1 from source where pool = 'private'"),
    );
    assert.deepEqual(rows, [], "row-level security hides the addresses as well");
  });

  it("is removed only while nothing needs it, unless forced; its domains then use the shared address", async () => {
    await create({ name: "leaving", ips: [{ ip: fresh() }] });
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: "leaving" });
    const needed = await api.ask("DELETE", "/v1/ip-pools/leaving");
    assert.deepEqual([needed.status, needed.body.code], [409, "invalid_state"]);
    assert.match(needed.body.error, /domains/);
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: null });
    assert.equal((await api.send({ ip_pool: "leaving" })).status, 202);
    const queued = await api.ask("DELETE", "/v1/ip-pools/leaving");
    assert.deepEqual([queued.status, queued.body.code], [409, "invalid_state"]);
    assert.match(queued.body.error, /mail waiting/);
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: "leaving" });
    const forced = await api.ask("DELETE", "/v1/ip-pools/leaving?force=true");
    assert.deepEqual([forced.status, forced.body.deleted], [200, true]);
    assert.equal((await api.ask("GET", `/v1/domains/${api.domain_id}`)).body.ip_pool, null);
    assert.equal((await api.ask("DELETE", "/v1/ip-pools/leaving")).status, 404);
  });

  it("leaves nothing behind once its lanes are gone", async () => {
    const ip = fresh();
    await create({ name: "forgotten", ips: [{ ip }] });
    await api.send({ ip_pool: "forgotten" });
    await api.ask("DELETE", "/v1/ip-pools/forgotten?force=true");
    const left = async () => (await api.world.db.query("select 1 from source where host(ip) = $1", [ip])).length;
    await sweepSources(api.world);
    assert.equal(await left(), 1, "its mail still waits in a lane of its own");
    await api.world.db.query("delete from delivery");
    await api.world.db.query("delete from lane");
    await sweepSources(api.world);
    assert.equal(await left(), 0);
  });
});

describe("ip_pool of a send", () => {
  const placed = async (id: string) => {
    const [row] = await api.world.db.query<{ ip_pool: string | null; ip: string | null; pool: string | null }>(
      `select m.ip_pool, host(s.ip) as ip, s.pool from message m join delivery d on d.message_id = m.id
         join lane l on l.id = d.lane_id join source s on s.id = l.source_id where m.id = $1`,
      [id],
    );
    return row;
  };

  it("places the mail at an address of the pool", async () => {
    const ip = fresh();
    await create({ name: "chosen", ips: [{ ip }] });
    const { body } = await api.send({ ip_pool: "chosen" });
    assert.deepEqual(await placed(body.id), { ip_pool: "chosen", ip, pool: "chosen" });
    const without = await api.send();
    assert.deepEqual(await placed(without.body.id), { ip_pool: null, ip: null, pool: null });
  });

  it("goes before its domain's, which counts otherwise", async () => {
    const [own, general] = [fresh(), fresh()];
    await create({ name: "own", ips: [{ ip: own }] });
    await create({ name: "general", ips: [{ ip: general }] });
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: "general" });
    assert.equal((await placed((await api.send()).body.id))?.ip, general);
    assert.equal((await placed((await api.send({ ip_pool: "own" })).body.id))?.ip, own);
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: null });
  });

  it("is refused by name, live or test, alone or in a batch", async () => {
    await create({ name: "theirs-only", ips: [{ ip: fresh() }] }, other.live_key);
    for (const pool of ["nowhere", "theirs-only", "Not A Pool"]) {
      for (const key of [api.live_key, api.test_key]) {
        const { status, body } = await api.send({ ip_pool: pool }, { key });
        assert.deepEqual([status, body.code, body.field], [400, "validation_error", "ip_pool"], pool);
      }
    }
    const good = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", text_body: "x" };
    const batch = await api.ask("POST", "/v1/send/batch", [good, { ...good, ip_pool: "nowhere" }]);
    assert.deepEqual([batch.body.accepted, batch.body.results[1].field], [1, "ip_pool"]);
  });

  it("needs the plan; a domain's pool is passed over once the plan has none", async () => {
    await create({ name: "planned", ips: [{ ip: fresh() }] });
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: "planned" });
    await api.world.db.query("update organization set plan = 'growth' where id = $1", [api.org_id]);
    const refused = await api.send({ ip_pool: "planned" });
    assert.deepEqual([refused.status, refused.body.code], [403, "plan_limit_reached"]);
    const { status, body } = await api.send();
    assert.equal(status, 202);
    assert.deepEqual(await placed(body.id), { ip_pool: null, ip: null, pool: null });
    await api.world.db.query("update organization set plan = 'enterprise' where id = $1", [api.org_id]);
    await api.ask("PUT", `/v1/domains/${api.domain_id}`, { ip_pool: null });
  });

  it("is divided among the addresses by their weights, each message always alike", async () => {
    const [heavy, light] = [fresh(), fresh()];
    const ips = [
      { ip: heavy, weight: 3 },
      { ip: light, weight: 1 },
    ];
    await create({ name: "weighed", ips });
    const mail = { from: "a@sender.example", to: ["b@recipient.example", "c@elsewhere.example"], subject: "x" };
    const all = Array.from({ length: 100 }, () => ({ ...mail, text_body: "x", ip_pool: "weighed" }));
    for (let n = 0; n < 4; n += 1) assert.equal((await api.ask("POST", "/v1/send/batch", all)).body.accepted, 100);
    const rows = await api.world.db.query<{ ip: string; messages: number; addresses: number }>(
      `select host(s.ip) as ip, count(distinct d.message_id) as messages
         from delivery d join lane l on l.id = d.lane_id join source s on s.id = l.source_id
        where s.pool = 'weighed' group by 1`,
    );
    const of = (ip: string) => rows.find((row) => row.ip === ip)?.messages ?? 0;
    assert.equal(of(heavy) + of(light), 400, "both recipients of a message leave from one address");
    assert.ok(of(heavy) > 260 && of(heavy) < 340, `${of(heavy)} of 400 at weight 3 of 4`);
  });
});
