// Aliases made on the fly by pattern, over SMTP: the first mail makes the alias, switches of one alias act on it alone, and
// made-up addresses fill nothing and tell nothing.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { lockAliasesOf } from "../../src/masked/queries.ts";
import { startMaskedStage } from "../support/masked-stage.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const stage = await startMaskedStage();
const { api, dns, send, arrived, activity } = stage;
after(() => stage.close());

const LENA = "lena.real@home.example";
const C = "shop.keeper@contact.example";
const OWN = "own.example";
const domain = await addVerifiedDomain(api, dns, OWN, { type: "both" });

const { body: added } = await api.ask("POST", "/v1/masked/destinations", { email: LENA });
const path = `/v1/masked/destinations/${added.destination.id}/patterns`;
const pattern = async (text: string, more: object = {}) => {
  const { status, body } = await api.ask("POST", path, { pattern: text, ...more });
  assert.equal(status, 201, JSON.stringify(body));
  return body.pattern;
};
const mail = (to: string | string[], ip?: string, from = C) =>
  send({
    from,
    to,
    ...(ip ? { ip } : {}),
    content: `From: ${from}\r\nTo: ${[to].flat()[0]}\r\nSubject: hi\r\n\r\nhello`,
  });
const codeOf = async (...about: Parameters<typeof mail>) => (await mail(...about)).code;
const find = async (address: string) => {
  const { body } = await api.ask("GET", `/v1/masked/aliases?q=${encodeURIComponent(address)}`);
  return body.aliases.find(({ email }: { email: string }) => email === address);
};
const countAliases = async () => {
  const [row] = await api.world.db.query<{ total: number }>("select count(*) as total from masked_alias");
  return row?.total ?? 0;
};
const lena = await pattern(`*.lena@${OWN}`);

test("a pattern is refused by the field at fault", async () => {
  const refused = async (text: unknown, status: number, code: string, more: object = {}, field = "pattern") => {
    const { status: said, body } = await api.ask("POST", path, { pattern: text, ...more });
    assert.deepEqual([said, body.code, body.field], [status, code, field], `${text}: ${JSON.stringify(body)}`);
  };
  for (const text of ["", "*", "lena@own.example", `*.*.lena@${OWN}`, `le na*@${OWN}`, `.*@${OWN}`, `r.*@${OWN}`]) {
    await refused(text, 400, "validation_error");
  }
  await refused(`${"a".repeat(64)}*@${OWN}`, 400, "validation_error");
  await refused("*@masked.postern.test", 400, "validation_error");
  await refused("*@elsewhere.example", 404, "not_found");
  await refused(`*.LENA@${OWN}`, 409, "already_exists");
  await refused(`x-*@${OWN}`, 400, "validation_error", { aliases_hour: 0 }, "aliases_hour");
  await refused(`x-*@${OWN}`, 400, "validation_error", { aliases_day: "many" }, "aliases_day");
  const { body } = await api.ask("POST", "/v1/domains", { domain: "young.example", type: "both" });
  assert.ok(body.id);
  await refused("*@young.example", 403, "domain_not_ready");
  for (const email of [`me@${OWN}`, `Mine+In@${OWN}`]) {
    const own = await api.ask("POST", "/v1/masked/destinations", { email });
    const answer = await api.ask("POST", `/v1/masked/destinations/${own.body.destination.id}/patterns`, {
      pattern: `m*@${OWN}`,
    });
    assert.deepEqual([answer.status, answer.body.field], [400, "pattern"], "its own mailbox");
  }
});

test("the first mail makes the alias once the mailbox has confirmed; it says where it comes from and works both ways", async () => {
  const address = `shop.lena@${OWN}`;
  assert.equal(await codeOf(address), 450, "not confirmed");
  assert.equal(await find(address), undefined);
  await api.world.db.execute("update masked_destination set status = 'verified', confirmed_at = now()");
  assert.equal(await codeOf(`Shop.Lena+news@${OWN}`), 250);
  const forward = (await arrived(LENA, 2)).find(({ bytes }) => bytes.includes("Subject: hi"));
  const alias = await find(address);
  assert.deepEqual(
    [alias.pattern, alias.forward_to, alias.domain_id, alias.active],
    [`*.lena@${OWN}`, [LENA], domain.id, true],
  );
  assert.ok((await activity(alias.id)).includes("config sent created by a pattern"));
  const r = /<(r\.[a-z2-7]{26}@own\.example)>/.exec(String(forward?.bytes))?.[1] ?? "";
  const reply = {
    from: LENA,
    to: r,
    ip: "127.0.0.3",
    content: `From: ${LENA}\r\nTo: ${r}\r\nSubject: Re: hi\r\n\r\nyes`,
  };
  assert.equal((await send(reply)).code, 250);
  const [answer] = await arrived(C);
  assert.match(String(answer?.bytes), /^From: shop\.lena@own\.example\r$/m);
  assert.doesNotMatch(String(answer?.bytes), /lena\.real/);
  const { body } = await api.ask("GET", `/v1/masked/aliases?pattern=${encodeURIComponent(`*.Lena@${OWN}`)}`);
  assert.deepEqual([body.total, body.aliases[0].id], [1, alias.id]);
  assert.equal((await api.ask("GET", path)).body.patterns.find(({ id }: { id: string }) => id === lena.id).aliases, 1);
});

test("switched off or deleted, an address is not made again, and the others stay", async () => {
  const [one, two] = [`one.lena@${OWN}`, `two.lena@${OWN}`];
  assert.deepEqual([await codeOf([one, two])], [250]);
  const [a, b] = [await find(one), await find(two)];
  await api.ask("PUT", `/v1/masked/aliases/${a.id}`, { active: false, on_disabled: "reject" });
  assert.equal(await codeOf(one), 550);
  assert.equal(await codeOf(two), 250);
  await api.ask("DELETE", `/v1/masked/aliases/${b.id}`);
  assert.equal(await codeOf(two), 550);
  await api.world.db.execute("delete from masked_alias where id = $1", [b.id]);
  assert.equal(await codeOf(two), 550, "also once it is forgotten");
  assert.equal(await find(two), undefined);
});

test("names of the service, mailboxes, reply addresses and what a domain alias takes make no alias", async () => {
  await pattern(`*@${OWN}`, { aliases_hour: 500, aliases_day: 1_000 });
  const globs = await api.ask("POST", "/v1/aliases", {
    domain_id: domain.id,
    local_part: "support-*",
    action: "store",
  });
  const exact = await api.ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "desk", action: "store" });
  assert.deepEqual([globs.status, exact.status], [201, 201]);
  const before = await countAliases();
  for (const local of [
    "postmaster",
    "abuse",
    "no-reply",
    `r.${"a".repeat(26)}`,
    "r.x",
    "me",
    "mine+in",
    '"a b"',
    "a%b",
    "_x",
  ]) {
    assert.equal(await codeOf(`${local}@${OWN}`), 550, local);
  }
  assert.equal(await codeOf(`support-1@${OWN}`), 250);
  assert.equal(await codeOf(`desk@${OWN}`), 250);
  assert.equal(await countAliases(), before);
  assert.equal(await codeOf(`anything@${OWN}`), 250);
  assert.equal((await find(`anything@${OWN}`)).pattern, `*@${OWN}`);
  assert.equal(await codeOf(`three.lena@${OWN}`), 250);
  assert.equal((await find(`three.lena@${OWN}`)).pattern, `*.lena@${OWN}`, "what has more fixed characters goes first");
});

test("a removed pattern makes none, and its aliases stay; another organization can do nothing with it", async () => {
  const made = await pattern(`gone-*@${OWN}`);
  assert.equal(await codeOf(`gone-1@${OWN}`, "127.0.1.2"), 250);
  const stranger = await api.organization();
  const theirs = { key: stranger.live_key };
  assert.equal((await api.ask("GET", path, undefined, theirs)).status, 404);
  assert.equal((await api.ask("DELETE", `${path}/${made.id}`, undefined, theirs)).status, 404);
  const { body } = await api.ask("GET", path);
  for (const { id, pattern: text } of body.patterns) {
    if (text === `*@${OWN}` || id === made.id) assert.equal((await api.ask("DELETE", `${path}/${id}`)).status, 200);
  }
  assert.equal((await api.ask("DELETE", `${path}/${made.id}`)).status, 404);
  assert.equal(await codeOf(`gone-1@${OWN}`, "127.0.1.2"), 250);
  assert.equal(await codeOf(`gone-2@${OWN}`, "127.0.1.2"), 550);
  assert.equal((await find(`gone-1@${OWN}`)).pattern, `gone-*@${OWN}`);
});

test("made-up addresses fill nothing and tell nothing: over the limits all addresses of the pattern are deferred alike", async () => {
  // Limits count by the clock's hours: one that ends in the middle would let twice as many pass.
  await until("half a minute of the hour is left", () => (Date.now() % 3_600_000 < 3_570_000 ? true : null));
  const flooded = "flood-*";
  await pattern(`${flooded}@${OWN}`, { aliases_hour: 12, aliases_day: 14 });
  const known = `flood-known@${OWN}`;
  assert.equal(await codeOf(known, "127.0.2.2"), 250);
  const before = await countAliases();
  const eve = "eve@evil.example";
  const codes: number[] = [];
  for (let n = 0; n < 30; n += 1) codes.push(await codeOf(`flood-${n}@${OWN}`, "127.0.3.2", eve));
  assert.deepEqual([codes.filter((code) => code === 250).length, new Set(codes.slice(10))], [10, new Set([450])]);
  assert.equal((await countAliases()) - before, 10);
  // One network knows no more of addresses that are there, of those that it made, too.
  for (const local of ["known", "0", "unknown"]) {
    assert.equal(await codeOf(`flood-${local}@${OWN}`, "127.0.3.9", "eve2@evil.example"), 450, local);
  }
  assert.equal(
    (await mail([`flood-x@${OWN}`, `flood-y@${OWN}`], "127.0.4.2", eve)).code,
    450,
    "neither of two: one is over",
  );
  assert.equal(await codeOf(`flood-x@${OWN}`, "127.0.5.2"), 450, "the limit of the pattern");
  assert.equal(await codeOf(known, "127.0.6.2"), 250, "others reach what is there");
  assert.equal(await codeOf(known, "127.0.3.2"), 250, "and whom it knows, from wherever");
  assert.ok((await countAliases()) - before <= 14);
  const notices = await until("a notice", () => {
    const found = stage.sink.messages.filter(({ bytes }) => bytes.includes("Subject: Your pattern flood-"));
    return found.length > 0 ? found : null;
  });
  assert.deepEqual([notices.length, notices[0]?.to], [1, [LENA]]);
  assert.match(String(notices[0]?.bytes), /12 an hour and 14 a day/);
});

test("the limit of a mailbox over all its patterns holds, and can be set", async () => {
  const [row] = await api.world.db.query<{ total: number }>(
    "select count(*) as total from masked_alias where pattern is not null and deleted_at is null",
  );
  const limit = (row?.total ?? 0) + 1;
  assert.equal((await api.ask("PUT", "/v1/masked/settings", { pattern_aliases: limit })).status, 200);
  await pattern(`full-*@${OWN}`);
  assert.equal(await codeOf(`full-1@${OWN}`, "127.0.7.2"), 250);
  assert.equal(await codeOf(`full-2@${OWN}`, "127.0.8.2"), 450);
  await api.ask("PUT", "/v1/masked/settings", { pattern_aliases: limit + 1 });
  assert.equal(
    await codeOf([`full-3@${OWN}`, `full-4@${OWN}`], "127.0.11.2"),
    450,
    "one message counts for all it brings",
  );
  assert.equal(await find(`full-3@${OWN}`), undefined);
  assert.equal(await codeOf(`full-2@${OWN}`, "127.0.9.2"), 250);
});

test("of two mails at a time one makes the last alias that a mailbox may have", async () => {
  const [row] = await api.world.db.query<{ total: number }>(
    "select count(*) as total from masked_alias where pattern is not null and deleted_at is null",
  );
  const limit = (row?.total ?? 0) + 1;
  await pattern(`pair-*@${OWN}`);
  assert.equal((await api.ask("PUT", "/v1/masked/settings", { pattern_aliases: limit })).status, 200);
  const codes = await Promise.all([1, 2, 3].map((n) => codeOf(`pair-${n}@${OWN}`, `127.0.2${n}.2`)));
  assert.deepEqual(codes.sort(), [250, 450, 450]);
  const made = await Promise.all([1, 2, 3].map((n) => find(`pair-${n}@${OWN}`)));
  assert.equal(made.filter(Boolean).length, 1);
  await api.ask("PUT", "/v1/masked/settings", { pattern_aliases: limit + 10 });
});

test("a message to several new addresses makes all or none, also when a pattern goes in the middle", async () => {
  const [first, second] = [await pattern(`all-*@${OWN}`), await pattern(`none-*@${OWN}`)];
  assert.ok(first.id && second.id);
  const { db } = api.world;
  let sending: Promise<number> | undefined;
  // The checks are over and the aliases are about to be made, when the second pattern is removed.
  await db.transaction(async (tx) => {
    await lockAliasesOf(tx, api.org_id);
    sending = codeOf([`all-1@${OWN}`, `none-1@${OWN}`], "127.0.31.2");
    await until("it waits for its turn", async () => {
      const waiting = await db.query("select 1 from pg_locks where locktype = 'advisory' and not granted");
      return waiting.length > 0;
    });
    await tx.execute("delete from masked_pattern where id = $1", [second.id]);
  });
  assert.equal(await sending, 550);
  assert.equal(await find(`all-1@${OWN}`), undefined);
  assert.equal(await codeOf(`all-1@${OWN}`, "127.0.32.2"), 250);
  assert.ok(await find(`all-1@${OWN}`));
});

test("test keys' patterns take simulated mail alone", async () => {
  const key = api.test_key;
  const mailbox = await api.ask("POST", "/v1/masked/destinations", { email: LENA }, { key });
  const tests = `/v1/masked/destinations/${mailbox.body.destination.id}/patterns`;
  assert.equal((await api.ask("POST", tests, { pattern: `try-*@${OWN}` }, { key })).status, 201);
  assert.equal(await codeOf(`try-1@${OWN}`, "127.0.10.2"), 550);
  const simulated = { from: C, to: [`try-1@${OWN}`], text: "hi", remote_ip: "127.0.0.2" };
  const { body } = await api.ask("POST", "/v1/inbound-emails/simulate", simulated, { key });
  assert.deepEqual([body.results?.[0]?.smtp_code ?? body, body.messages?.[0]?.recipient], [250, LENA]);
  const { body: listed } = await api.ask("GET", "/v1/masked/aliases", undefined, { key });
  assert.deepEqual([listed.aliases[0].environment, listed.aliases[0].pattern], ["test", `try-*@${OWN}`]);
});
