// /v1/emails: lists with every filter, one e-mail by id or Message-ID, its timeline and content, retry and cancel, and
// 404 for whatever is not ours.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Answer } from "../support/api.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { type SendingApi, sendingApi, wireOf } from "./sender.ts";

const DAY_MS = 86_400_000;
const RANDOM_ID = "0190a000-0000-7000-8000-00000000dead";

let api: SendingApi;
let sink: SmtpSink;

before(async () => {
  sink = await startSmtpSink();
  api = await sendingApi({ POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  receiveAt(api.dns, "recipient.example");
});

after(async () => {
  await api?.close();
  await sink?.stop();
});

function refuses({ status, body }: Answer, expected: [status: number, code: string, field?: string]): void {
  assert.deepEqual([status, body.code, ...(expected.length === 3 ? [body.field] : [])], expected, JSON.stringify(body));
}

const get = (path: string, key?: string) => api.ask("GET", path, undefined, key === undefined ? {} : { key });
const post = (path: string, key?: string) => api.ask("POST", path, undefined, key === undefined ? {} : { key });

describe("the list", () => {
  const ids = new Map<string, string>();
  let other: string;

  before(async () => {
    const domain = await addVerifiedDomain(api, api.dns, "second.example");
    other = domain.id;
    const mails: [name: string, change: Record<string, unknown>, key?: string][] = [
      ["plain", { subject: "Plain 100% sure" }],
      ["tagged", { tags: ["invoice", "eu"], subject: "Tagged_one" }],
      ["second", { from: "Billing <b@second.example>", subject: "From the second" }],
      ["cc", { to: ["x@recipient.example"], cc: ["carla@bücher.example"], subject: "With copy to Łódź" }],
      ["test", { subject: "Simulated" }, api.test_key],
      ["later", { subject: "Later", scheduled_at: new Date(Date.now() + DAY_MS).toISOString() }],
    ];
    for (const [name, change, key] of mails) {
      const { status, body } = await api.send(change, key === undefined ? {} : { key });
      assert.equal(status, 202, JSON.stringify(body));
      ids.set(name, body.id);
    }
  });

  const names = (body: { emails: { id: string }[] }) =>
    body.emails.map(({ id }) => [...ids].find(([, known]) => known === id)?.[0] ?? id);

  it("is newest first, with an exact total", async () => {
    const { status, body } = await get("/v1/emails");
    assert.equal(status, 200);
    assert.deepEqual(names(body), ["later", "test", "cc", "second", "tagged", "plain"]);
    assert.deepEqual([body.total, body.limit, body.offset], [6, 50, 0]);
    assert.deepEqual(Object.keys(body), ["emails", "total", "limit", "offset"]);
  });

  it("comes in pages without gaps and repetitions", async () => {
    const seen: string[] = [];
    for (let offset = 0; offset < 8; offset += 2) {
      const { body } = await get(`/v1/emails?limit=2&offset=${offset}`);
      assert.deepEqual([body.total, body.limit, body.offset], [6, 2, offset]);
      seen.push(...names(body));
    }
    assert.deepEqual(seen, ["later", "test", "cc", "second", "tagged", "plain"]);
  });

  const encode = encodeURIComponent;
  /** Mails of a day and of the next, when midnight passes while this runs. */
  const BEGAN = new Date();
  const FILTERS: [query: () => string, found: string[]][] = [
    [() => "status=scheduled", ["later"]],
    [() => "status=simulated", ["test"]],
    [() => "status=delivered", []],
    [() => "environment=test", ["test"]],
    [() => "environment=live&status=queued", ["cc", "second", "tagged", "plain"]],
    [() => "from=billing", ["second"]],
    [() => "from=SECOND.example", ["second"]],
    [() => "to=carla", ["cc"]],
    ...["carla@bücher.example", "@BÜCHER", "bücher.ex", "xn--bcher-kva"].map((to): [() => string, string[]] => [
      () => `to=${encode(to)}`,
      ["cc"],
    ]),
    [() => "to=ANNA", ["later", "test", "second", "tagged", "plain"]],
    [() => "subject=tagged_one", ["tagged"]],
    [() => "subject=100%25", ["plain"]],
    [() => "subject=%25", ["plain"]],
    [() => "subject=d_o", ["tagged"]],
    [() => "subject=%5C", []],
    ...["łódź", "ŁÓDŹ", "Copy To Łódź"].map((subject): [() => string, string[]] => [
      () => `subject=${encode(subject)}`,
      ["cc"],
    ]),
    [() => "tag=invoice", ["tagged"]],
    [() => "tag=inv", []],
    [() => `domain_id=${other}`, ["second"]],
    [() => `domain_id=${RANDOM_ID}`, []],
    [() => `message_id=${ids.get("cc")}@sender.example`, ["cc"]],
    [() => `message_id=${encode(`<${ids.get("cc")}@sender.example>`)}`, ["cc"]],
    [() => `from_date=${BEGAN.toISOString().slice(0, 10)}`, ["later", "test", "cc", "second", "tagged", "plain"]],
    [() => `from_date=${new Date(Date.now() + DAY_MS).toISOString().slice(0, 10)}`, []],
    [() => `to_date=${new Date().toISOString().slice(0, 10)}`, ["later", "test", "cc", "second", "tagged", "plain"]],
    [() => `to_date=${new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10)}`, []],
    [() => `from_date=${encode(new Date(Date.now() + 60_000).toISOString())}`, []],
    [() => "from_date=1901-01-01&to_date=2999-12-31&tag=eu", ["tagged"]],
    [() => "subject=e&environment=live&tag=eu&from=sender", ["tagged"]],
  ];

  it("filtered by the very times that are shown hold the e-mails of them", async () => {
    const { body } = await get("/v1/emails");
    for (const { id, created_at } of body.emails) {
      const at = encode(created_at);
      const found = (await get(`/v1/emails?from_date=${at}&to_date=${at}`)).body.emails;
      assert.ok(
        found.some((one: { id: string }) => one.id === id),
        `${id} of ${created_at}`,
      );
    }
  });

  for (const [query, found] of FILTERS) {
    it(`with ${query.toString().slice(6, 70)} holds ${found.join(", ") || "nothing"}`, async () => {
      const { status, body } = await get(`/v1/emails?${query()}`);
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(names(body), found);
      assert.equal(body.total, found.length);
    });
  }

  for (const [query, field] of [
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=x", "limit"],
    ["limit=1.5", "limit"],
    ["offset=-1", "offset"],
    ["status=gone", "status"],
    ["environment=prod", "environment"],
    ["domain_id=sender.example", "domain_id"],
    ["from_date=yesterday", "from_date"],
    ["from_date=2026-02-30", "from_date"],
    ["to_date=2026-04-31T00:00:00Z", "to_date"],
    ["to_date=2026-02-30T25:00:00Z", "to_date"],
    ["from_date=2026-11-20T10:00:00", "from_date"],
    ["sort=asc", "sort"],
    ["__proto__=1", "__proto__"],
  ] as const) {
    it(`with ${query} is 400 naming ${field}`, async () => {
      const answer = await get(`/v1/emails?${query}`);
      refuses(answer, [400, "validation_error", field]);
      assert.ok(answer.body.error.includes(field), answer.body.error);
    });
  }

  it("never shows another organization's mail", async () => {
    const { live_key } = await api.organization();
    for (const query of ["", "?tag=invoice", `?message_id=${ids.get("cc")}@sender.example`]) {
      const { body } = await get(`/v1/emails${query}`, live_key);
      assert.deepEqual([body.emails, body.total], [[], 0]);
    }
  });
});

describe("one e-mail", () => {
  it("has a recipient once that was named 60 times", async () => {
    const { status, body } = await api.send({ to: Array(60).fill("same@recipient.example") });
    assert.equal(status, 202, JSON.stringify(body));
    assert.equal((await get(`/v1/emails/${body.id}`)).body.email.recipients.length, 1);
  });

  it("is found by its Message-ID, not a forward of it that keeps that", async () => {
    const [sent, later] = [await api.send(), await api.send()];
    await api.world.db.query("update message set origin = 'forward', message_id = $2 where id = $1", [
      later.body.id,
      sent.body.message_id,
    ]);
    assert.equal((await api.ask("GET", `/v1/emails/${sent.body.message_id}`)).body.email.id, sent.body.id);
  });

  it("is found by id, by Message-ID, and by Message-ID in angle brackets", async () => {
    const { body } = await api.send();
    for (const name of [body.id, body.message_id, `<${body.message_id}>`]) {
      for (const part of ["", "/events", "/content"]) {
        const { status } = await get(`/v1/emails/${encodeURIComponent(name)}${part}`);
        assert.equal(status, 200, `${name}${part}`);
      }
      assert.equal((await get(`/v1/emails/${encodeURIComponent(name)}`)).body.email.id, body.id);
    }
  });

  it("that is not ours is 404 with one and the same body", async () => {
    const { body: own } = await api.send();
    const stranger = await api.organization();
    for (const part of ["", "/events", "/content"]) {
      const absent = await get(`/v1/emails/${RANDOM_ID}${part}`, stranger.live_key);
      for (const name of [own.id, own.message_id, `<${own.message_id}>`, "x", "%00", "'", "<>"]) {
        const foreign = await get(`/v1/emails/${encodeURIComponent(name)}${part}`, stranger.live_key);
        refuses(foreign, [404, "not_found"]);
        assert.equal(foreign.body.error, absent.body.error);
      }
    }
    for (const action of ["retry", "cancel"]) {
      refuses(await post(`/v1/emails/${own.id}/${action}`, stranger.live_key), [404, "not_found"]);
      refuses(await post(`/v1/emails/${RANDOM_ID}/${action}`), [404, "not_found"]);
    }
    assert.equal((await get(`/v1/emails/${own.id}`)).body.email.status, "queued");
  });

  it("has a timeline that begins with the accept of every recipient", async () => {
    const { body: own } = await api.send({ to: ["a@recipient.example"], cc: ["b@recipient.example"] });
    const { body } = await get(`/v1/emails/${own.id}/events`);
    assert.deepEqual(
      body.events.map(({ event_type, recipient }: Record<string, string>) => [event_type, recipient]),
      [
        ["queued", "a@recipient.example"],
        ["queued", "b@recipient.example"],
      ],
    );
    const idsOf = (events: { id: string }[]) => events.map(({ id }) => id);
    assert.equal(new Set([own.id, ...idsOf(body.events)]).size, 3, "each has an id of its own");
    assert.deepEqual(idsOf((await get(`/v1/emails/${own.id}/events`)).body.events), idsOf(body.events));
    assert.deepEqual(
      Object.keys(body.events[0]),
      "id event_type recipient timestamp attempt smtp_code enhanced_code message mx_host mx_ip source_ip tls duration_ms".split(
        " ",
      ),
    );
  });

  it("shows its content to a test key too", async () => {
    const { body } = await api.send({}, { key: api.test_key });
    assert.match(await wireOf(api, body.id, api.test_key), /^From: Shop <orders@sender\.example>\r\n/);
  });

  it("answers 404 for its content once that is no longer stored", async () => {
    const { body } = await api.send();
    await api.world.db.query("delete from message_body where id = $1", [body.id]);
    refuses(await get(`/v1/emails/${body.id}/content`), [404, "not_found"]);
  });
});

describe("cancel", () => {
  it("takes scheduled mail out of the queue, for good", async () => {
    const { body } = await api.send({ scheduled_at: new Date(Date.now() + DAY_MS).toISOString() });
    const { status, body: canceled } = await post(`/v1/emails/${body.id}/cancel`);
    assert.equal(status, 200, JSON.stringify(canceled));
    assert.equal(canceled.email.status, "canceled");
    assert.equal(canceled.email.recipients[0].status, "canceled");
    assert.ok(canceled.email.completed_at);
    const left = await api.world.db.query("select 1 from delivery where message_id = $1", [body.id]);
    assert.equal(left.length, 0);
    const { body: log } = await get(`/v1/emails/${body.id}/events`);
    assert.deepEqual(
      log.events.map(({ event_type }: Record<string, string>) => event_type),
      ["scheduled", "canceled"],
    );
    refuses(await post(`/v1/emails/${body.id}/cancel`), [409, "invalid_state"]);
  });

  it("takes queued mail that nobody attempted", async () => {
    const { body } = await api.send();
    assert.equal((await post(`/v1/emails/${body.message_id}/cancel`)).body.email.status, "canceled");
  });

  it("of a simulated e-mail is 409, also with a test key", async () => {
    const { body } = await api.send({}, { key: api.test_key });
    refuses(await post(`/v1/emails/${body.id}/cancel`, api.test_key), [409, "invalid_state"]);
  });

  it("leaves suppressed recipients as they are", async () => {
    await api.ask("POST", "/v1/suppressions", { email: "stop@recipient.example" });
    const { body } = await api.send({ to: ["stop@recipient.example", "go@recipient.example"] });
    const { email } = (await post(`/v1/emails/${body.id}/cancel`)).body;
    assert.deepEqual(
      email.recipients.map(({ status }: { status: string }) => status),
      ["suppressed", "canceled"],
    );
    assert.equal(email.status, "canceled");
  });
});

describe("after an attempt", () => {
  before(async () => {
    sink.onRcpt((address) => {
      if (address.startsWith("full")) return { code: 552, text: "5.2.2 mailbox full" };
      if (address.startsWith("gone")) return { code: 550, text: "5.1.1 no such user" };
      return address.startsWith("busy") ? { code: 451, text: "4.3.0 try again later" } : null;
    });
    await api.startMta();
  });

  it("cancel is 409: delivered, deferred and bounced mail stays what it is", async () => {
    for (const [to, status] of [
      ["anna", "delivered"],
      ["busy", "deferred"],
      ["gone1", "bounced"],
    ]) {
      const { body } = await api.send({ to: [`${to}@recipient.example`] });
      await emailWithStatus(api, body.id, [String(status)]);
      refuses(await post(`/v1/emails/${body.id}/cancel`), [409, "invalid_state"]);
      assert.equal((await get(`/v1/emails/${body.id}`)).body.email.status, status);
    }
  });

  it("retry sends softly bounced mail again, the same bytes under the same Message-ID", async () => {
    const { body } = await api.send({ to: ["full@recipient.example", "fine@recipient.example"] });
    const bounced = await emailWithStatus(api, body.id, ["partially_delivered"]);
    assert.deepEqual(
      bounced.recipients.map((recipient: Record<string, string>) => [
        recipient.status,
        recipient.bounce_type,
        recipient.bounce_code,
        recipient.diag_code,
      ]),
      [
        ["bounced", "soft", "552", "5.2.2"],
        ["delivered", null, null, null],
      ],
    );
    sink.onRcpt(() => null);
    const { status, body: retried } = await post(`/v1/emails/${body.id}/retry`);
    assert.equal(status, 200, JSON.stringify(retried));
    const done = await emailWithStatus(api, body.id, ["delivered"]);
    assert.equal(done.recipients[0].bounce_code, null);
    const received = sink.messages.filter(({ message_id }) => message_id === body.message_id);
    assert.deepEqual(received.map(({ to }) => to[0]).sort(), ["fine@recipient.example", "full@recipient.example"]);
    const withoutHead = received.map(({ bytes }) => bytes.subarray(bytes.indexOf("\r\nFrom: ")).toString("latin1"));
    assert.equal(withoutHead[0], withoutHead[1]);
    const { body: log } = await get(`/v1/emails/${body.id}/events`);
    assert.ok(log.events.some(({ event_type }: Record<string, string>) => event_type === "retried"));
  });

  it("retry of anything else is 409", async () => {
    const { body: sent } = await api.send({ to: ["ok@recipient.example"] });
    await emailWithStatus(api, sent.id, ["delivered"]);
    refuses(await post(`/v1/emails/${sent.id}/retry`), [409, "invalid_state"]);
    sink.onRcpt(() => ({ code: 550, text: "5.1.1 no such user" }));
    const { body: hard } = await api.send({ to: ["gone2@recipient.example"] });
    const email = await emailWithStatus(api, hard.id, ["bounced"]);
    assert.equal(email.recipients[0].bounce_type, "hard");
    refuses(await post(`/v1/emails/${hard.id}/retry`), [409, "invalid_state"]);
    sink.onRcpt(() => null);
    const { body: simulated } = await api.send({}, { key: api.test_key });
    refuses(await post(`/v1/emails/${simulated.id}/retry`), [409, "invalid_state"]);
  });

  it("a test key cannot retry: 403", async () => {
    const { body } = await api.send({}, { key: api.test_key });
    refuses(await post(`/v1/emails/${body.id}/retry`, api.test_key), [403, "test_key_not_allowed"]);
  });
});
