// The decision at RCPT for our own addresses and for features that plug in: return paths, their age and forgery, and the
// order in which deciders are asked.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { aliasFinder } from "../../aliases/aliases.ts";
import { makeToken } from "../../mail/bounce-token.ts";
import { parsePathCommand } from "../../mail/smtp-server/command.ts";
import { TOKEN_CONTEXT } from "../../outbound/outbound.ts";
import { fixedClock } from "../../platform/clock.ts";
import { uuidTime } from "../../platform/random.ts";
import type { RcptDecider, Route } from "../types.ts";
import { createRcptPolicy, ownReceiver } from "./rcpt.ts";

let api: TestApi;
let messageId: string;
const clock = fixedClock(Date.now());

before(async () => {
  api = await testApi({}, (world) => ({ ...world, clock }));
  const domain = await api.ask("POST", "/v1/domains", { domain: "in.example", catch_all_enabled: true });
  for (const local_part of ["exact", "glob*"]) {
    await api.ask("POST", "/v1/aliases", { domain_id: domain.body.id, local_part });
  }
  messageId = api.world.random.uuid();
  await api.world.db.query(
    `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size,
       recipient_count, created_at) values ($1, $2, 'live', $3, 'm@x', 'a@x', 'a@x', '', 'queued', 1, 1, now())`,
    [api.org_id, messageId, domain.body.id],
  );
});
after(() => api.close());

const path = (text: string) => {
  const parsed = parsePathCommand(`TO:<${text}>`, "TO");
  assert.ok(parsed, text);
  return parsed.path;
};
const client = { ip: "192.0.2.1", port: 1, helo: "x", protocol: "ESMTP", tls: null };
const ask = async (to: string, deciders: { exact?: RcptDecider[]; own?: RcptDecider[] } = {}) => {
  const policy = createRcptPolicy(api.world, {
    findReceiver: ownReceiver(api.world, api.org_id),
    findAlias: aliasFinder(api.world),
    exact: [],
    own: [],
    ...deciders,
  });
  const decision = await policy({ client, from: path("a@b.example"), to: path(to) });
  return decision.kind === "accept" ? decision.route.kind : `${decision.code} ${decision.enhanced}`;
};
const token = (id = messageId, position = 3) =>
  makeToken(id, position, (text) => api.world.seal.hash(text, TOKEN_CONTEXT));

test("a return path that we signed is taken, at the bounce host and at customers' names for it", async () => {
  for (const host of ["bounces.postern.test", "pt-bounces.in.example", "pt-bounces.anything.example"]) {
    assert.equal(await ask(`b+${token()}@${host}`), "return_path", host);
    assert.equal(await ask(`B+${token().toUpperCase()}@${host}`), "return_path", host);
  }
  const policy = createRcptPolicy(api.world, {
    ...{ findReceiver: ownReceiver(api.world, api.org_id), findAlias: aliasFinder(api.world), exact: [], own: [] },
  });
  const decision = await policy({ client, from: path("a@b.example"), to: path(`b+${token()}@bounces.postern.test`) });
  assert.ok(decision.kind === "accept");
  assert.deepEqual(decision.route, {
    kind: "return_path",
    org_id: api.org_id,
    domain_id: decision.route.domain_id,
    alias_id: null,
    tag: null,
    message_id: messageId,
    position: 3,
  });
});

test("where several cells have one door, a return path of another one's name is taken as well, if it was signed", async () => {
  const world = { ...api.world, config: { ...api.world.config, cells_door: { host: "127.0.0.1", port: 1 } } };
  const ports = { findReceiver: ownReceiver(world, api.org_id), findAlias: aliasFinder(world), exact: [], own: [] };
  const policy = createRcptPolicy(world, { ...ports, isElsewhere: async () => false });
  const decide = async (to: string) => {
    const decision = await policy({ client, from: path("a@b.example"), to: path(to) });
    return decision.kind === "accept" ? decision.route.kind : `${decision.code} ${decision.enhanced}`;
  };
  assert.equal(await decide(`b+${token()}@bounces.former.example`), "return_path");
  assert.equal(await decide(`b+${token().slice(0, -1)}@bounces.former.example`), "550 5.7.1");
});

test("every forged, foreign or malformed return path is refused", async () => {
  const good = token();
  for (let at = 0; at < good.length; at += 1) {
    const forged = `${good.slice(0, at)}${good[at] === "a" ? "b" : "a"}${good.slice(at + 1)}`;
    // The last character carries two bits that mean nothing.
    if (at === good.length - 1 && (await ask(`b+${forged}@bounces.postern.test`)) === "return_path") continue;
    assert.equal(await ask(`b+${forged}@bounces.postern.test`), "550 5.1.1", forged);
  }
  for (const local of ["b+", "b+x", "b", `b+${good}x`, `c+${good}`, `b-${good}`]) {
    assert.equal(await ask(`${local}@bounces.postern.test`), "550 5.1.1", local);
  }
  const unknown = token(api.world.random.uuid());
  assert.equal(await ask(`b+${unknown}@bounces.postern.test`), "550 5.1.1", "signed, but no such message");
  assert.equal(await ask(`b+${good}@elsewhere.example`), "550 5.7.1");
});

test("a return path is good for ten days", async () => {
  clock.advance(uuidTime(messageId) + 10 * 86_400_000 - 5_000 - clock.now());
  assert.equal(await ask(`b+${token()}@bounces.postern.test`), "return_path");
  clock.advance(10_000);
  assert.equal(await ask(`b+${token()}@bounces.postern.test`), "550 5.1.1");
});

test("exact alias, then exact deciders, then globs and the catch-all, then our own addresses", async () => {
  const take =
    (kind: "masked" | "report", locals: string[]): RcptDecider =>
    async ({ to }) => {
      if (!locals.includes(to.local)) return null;
      const owner = { org_id: api.org_id, domain_id: null, alias_id: null, tag: null };
      return { kind: "accept", route: { kind, ...owner, detail: {} } as Route };
    };
  const exact = [take("masked", ["exact", "globular", "anything"])];
  const own = [take("report", ["exact", "globular", "anything", "dmarc"])];
  assert.equal(await ask("exact@in.example", { exact, own }), "alias");
  assert.equal(await ask("globular@in.example", { exact, own }), "masked");
  assert.equal(await ask("glob@in.example", { exact, own }), "alias");
  assert.equal(await ask("anything@in.example", { exact, own }), "masked");
  assert.equal(await ask("something@in.example", { exact, own }), "catch_all");
  assert.equal(await ask("anything@masked.postern.test", { exact, own }), "masked");
  assert.equal(await ask("dmarc@reports.postern.test", { exact, own }), "report");
  assert.equal(await ask("other@reports.postern.test", { exact, own }), "550 5.1.1");
  assert.equal(await ask("dmarc@elsewhere.example"), "550 5.7.1");
});

test("an alias of a test key takes live mail only where nothing live takes it", async () => {
  const test_key = { key: api.test_key };
  const add = async (domain: string, alias: object, options?: { key: string }) => {
    const made = await api.ask("POST", "/v1/aliases", { domain_id: domain, ...alias }, options);
    assert.equal(made.status, 201, JSON.stringify(made.body));
  };
  const domain = async (name: string, more: object, options?: { key: string }) =>
    assert.equal((await api.ask("POST", "/v1/domains", { domain: name, ...more }, options)).status, 201);
  await domain("live.example", {});
  await add("live.example", { local_part: "sup*", action: "store" });
  await add("live.example", { local_part: "support", action: "drop" }, test_key);
  await add("live.example", { local_part: "suppo*", active: false }, test_key);
  await add("live.example", { local_part: "free", action: "store" }, test_key);
  await add("in.example", { local_part: "grabbed", action: "drop" }, test_key);
  await domain("trial.example", { catch_all_enabled: true }, test_key);
  await add("trial.example", { local_part: "tried", action: "store" }, test_key);
  const actionOf = async (to: string, environment: "live" | "test" = "live") => {
    const parts = { findReceiver: ownReceiver(api.world, api.org_id), findAlias: aliasFinder(api.world) };
    const policy = createRcptPolicy(api.world, { ...parts, exact: [], own: [], environment });
    const decision = await policy({ client, from: path("a@b.example"), to: path(to) });
    if (decision.kind === "refuse") return decision.code;
    return decision.route.kind === "alias" ? decision.route.action : decision.route.kind;
  };
  assert.equal(await actionOf("support@live.example"), "store", "an exact alias of a test key shadows no live pattern");
  assert.equal(await actionOf("supporter@live.example"), "store", "nor does a longer pattern that is switched off");
  assert.equal(await actionOf("grabbed@in.example"), "catch_all", "nor does it shadow a live catch-all");
  assert.equal(await actionOf("free@live.example"), "store", "an address that nothing live takes is its own");
  assert.equal(await actionOf("tried@trial.example"), "store", "on a domain of a test key the usual order holds");
  assert.equal(await actionOf("support@live.example", "test"), "drop", "and in a trial, too");
});

test("nothing is refused for good where no domain is set up yet: the database may be the wrong one", async () => {
  const parts = { findReceiver: async () => undefined, findAlias: aliasFinder(api.world), exact: [], own: [] };
  for (const [has, unknown, own] of [
    [false, "451 4.3.5", "451 4.3.5"],
    [true, "550 5.7.1", "550 5.1.1"],
  ] as const) {
    const policy = createRcptPolicy(api.world, { ...parts, hasDomains: async () => has });
    const reported = async (to: string) => {
      const decision = await policy({ client, from: path("a@b.example"), to: path(to) });
      return decision.kind === "accept" ? decision.route.kind : `${decision.code} ${decision.enhanced}`;
    };
    assert.equal(await reported("x@served.example"), unknown);
    assert.equal(await reported("b+nothing@bounces.postern.test"), own);
    assert.equal(await reported("postmaster@postern.test"), "operator", "the operator's mail is taken in any case");
  }
});
