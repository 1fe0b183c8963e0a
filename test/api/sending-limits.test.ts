// Who may send, from which domain, how much, to whom: keys, states of organizations, sender domains, suppressions, quota.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Answer } from "../support/api.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { GOOD, type SendingApi, sendingApi } from "./sender.ts";

let api: SendingApi;

before(async () => {
  api = await sendingApi();
});

after(async () => {
  await api?.close();
});

function refuses({ status, body }: Answer, expected: [status: number, code: string, field?: string]): void {
  assert.deepEqual([status, body.code, ...(expected.length === 3 ? [body.field] : [])], expected, JSON.stringify(body));
}

const count = async (table: string): Promise<number> =>
  (await api.world.db.query<{ total: number }>(`select count(*) as total from ${table}`))[0]?.total ?? -1;

/** An organization with a domain it may send from. */
async function organization(state: "active" | "pending_review" = "active") {
  const made = await api.organization("enterprise", state);
  const domain = `d${made.org_id.slice(-8)}.example`;
  const { id } = await addVerifiedDomain(api, api.dns, domain, { key: made.test_key, warm: false });
  const warmed = await api.ask("POST", `/v1/domains/${id}/warming/start`, { phase: "warmed" }, { key: made.test_key });
  assert.equal(warmed.status, 200);
  const send = (change: Record<string, unknown> = {}, key = made.live_key) =>
    api.send({ from: `a@${domain}`, ...change }, { key });
  return { ...made, domain, domain_id: id, send };
}

const to = (...names: string[]) => names.map((name) => `${name}@recipient.example`);

describe("a test key", () => {
  it("stores a simulated e-mail and does nothing else", async () => {
    const before = [await count("delivery"), await count("event"), await count("allowance")];
    const { status, body } = await api.send({ to: to("a", "b"), tags: ["t"] }, { key: api.test_key });
    assert.equal(status, 202);
    const { id, message_id, ...rest } = body;
    assert.deepEqual(rest, {
      status: "simulated",
      environment: "test",
      suppressed: [],
      quota_limit: 0,
      quota_used: 0,
      quota_remaining: 0,
    });
    assert.deepEqual([await count("delivery"), await count("event"), await count("allowance")], before);
    const { body: shown } = await api.ask("GET", `/v1/emails/${id}`);
    assert.deepEqual(
      [shown.email.status, shown.email.environment, shown.email.message_id],
      ["simulated", "test", message_id],
    );
    assert.deepEqual(
      shown.email.recipients.map((recipient: { status: string; next_attempt_at: string | null }) => [
        recipient.status,
        recipient.next_attempt_at,
      ]),
      [
        ["simulated", null],
        ["simulated", null],
      ],
    );
    const { body: log } = await api.ask("GET", `/v1/emails/${id}/events`);
    assert.deepEqual(
      log.events.map(({ event_type }: { event_type: string }) => event_type),
      ["simulated", "simulated"],
    );
  });

  it("is validated like a live one", async () => {
    const as = { key: api.test_key };
    refuses(await api.send({ to: ["nobody"] }, as), [400, "validation_error", "to[0]"]);
    refuses(await api.send({ from: "a@stranger.example" }, as), [403, "domain_not_owned", "from"]);
    refuses(await api.send({ template: "unknown", subject: undefined, html_body: undefined }, as), [404, "not_found"]);
  });

  it("never schedules: a time ahead is simulated as well", async () => {
    const scheduled_at = new Date(Date.now() + 3_600_000).toISOString();
    const { body } = await api.send({ scheduled_at }, { key: api.test_key });
    assert.equal(body.status, "simulated");
    assert.equal(await count("delivery"), 0);
  });

  it("works while the organization is in review, when a live key is 403", async () => {
    const reviewed = await organization("pending_review");
    assert.equal((await reviewed.send({}, reviewed.test_key)).body.status, "simulated");
    refuses(await reviewed.send(), [403, "organization_in_review"]);
  });
});

describe("an organization that is suspended", () => {
  it("sends nothing, with either key", async () => {
    const suspended = await api.organization("enterprise", "suspended");
    for (const key of [suspended.live_key, suspended.test_key]) {
      refuses(await api.send({}, { key }), [403, "organization_suspended"]);
    }
  });
});

describe("the sender's domain", () => {
  it("must be one's own: 403 domain_not_owned naming from", async () => {
    refuses(await api.send({ from: "a@stranger.example" }), [403, "domain_not_owned", "from"]);
    const stranger = await api.organization();
    refuses(await api.send({}, { key: stranger.live_key }), [403, "domain_not_owned", "from"]);
  });

  it("is not owned with a domain above or below it", async () => {
    refuses(await api.send({ from: "a@sub.sender.example" }), [403, "domain_not_owned", "from"]);
    refuses(await api.send({ from: "a@xsender.example" }), [403, "domain_not_owned", "from"]);
  });

  it("must be ready: 403 domain_not_ready with the reason", async () => {
    const made = await api.ask("POST", "/v1/domains", { domain: "pending.example", type: "outbound" });
    assert.equal(made.status, 201);
    const answer = await api.send({ from: "a@pending.example" });
    refuses(answer, [403, "domain_not_ready", "from"]);
    assert.match(answer.body.error, /pending\.example/);
    await addVerifiedDomain(api, api.dns, "inbound.example", { type: "inbound" });
    refuses(await api.send({ from: "a@inbound.example" }), [403, "domain_not_ready", "from"]);
  });

  it("must be active, and have a DKIM key", async () => {
    const { id } = await addVerifiedDomain(api, api.dns, "off.example");
    assert.equal((await api.send({ from: "a@off.example" })).status, 202);
    assert.equal((await api.ask("PUT", `/v1/domains/${id}`, { active: false })).status, 200);
    refuses(await api.send({ from: "a@off.example" }), [403, "domain_not_ready", "from"]);
    assert.equal((await api.ask("PUT", `/v1/domains/${id}`, { active: true })).status, 200);
    const { body } = await api.ask("GET", `/v1/domains/${id}/dkim`);
    const gone = await api.ask("DELETE", `/v1/domains/${id}/dkim/${body.keys[0].selector}?force=true`);
    assert.equal(gone.status, 200);
    refuses(await api.send({ from: "a@off.example" }), [403, "domain_not_ready", "from"]);
  });
});

describe("the order of checks", () => {
  it("is key, shape, sender domain, template, recipients, suppressions", async () => {
    await api.ask("POST", "/v1/suppressions", { email: "gone@recipient.example" });
    const faults: [Record<string, unknown>, number][] = [
      [{ tags: 1 }, 400],
      [{ from: "a@stranger.example" }, 403],
      [{ template: "unknown", subject: undefined, html_body: undefined }, 404],
      [{ to: ["nobody"] }, 400],
      [{ to: to("gone") }, 422],
    ];
    for (const [index, [, status]] of faults.entries()) {
      const together = Object.assign(
        {},
        ...faults
          .slice(index)
          .reverse()
          .map(([change]) => change),
      );
      assert.equal((await api.send(together)).status, status, JSON.stringify(together));
    }
    refuses(await api.send({ tags: 1 }, { key: null }), [401, "missing_api_key"]);
  });
});

describe("suppressed recipients", () => {
  before(async () => {
    for (const email of ["stop@recipient.example", "halt@recipient.example"]) {
      assert.ok((await api.ask("POST", "/v1/suppressions", { email })).status < 300);
    }
  });

  it("are left out and named", async () => {
    const { body } = await api.send({ to: to("Stop", "go") });
    assert.deepEqual(body.suppressed, [{ email: "Stop@recipient.example", reason: "manual" }]);
    const { email } = (await api.ask("GET", `/v1/emails/${body.id}`)).body;
    assert.deepEqual(
      email.recipients.map(({ status }: { status: string }) => status),
      ["suppressed", "queued"],
    );
  });

  it("who are all there are: 422 with the list", async () => {
    for (const key of [api.live_key, api.test_key]) {
      const { status, body } = await api.send({ to: to("stop"), bcc: to("halt") }, { key });
      refuses({ status, body, headers: {} }, [422, "all_recipients_suppressed"]);
      assert.deepEqual(body.suppressed, [
        { email: "stop@recipient.example", reason: "manual" },
        { email: "halt@recipient.example", reason: "manual" },
      ]);
    }
  });
});

describe("the month's quota", () => {
  const small = async (quota: number) => {
    const made = await organization();
    await api.world.db.query("update organization set monthly_quota = $2 where id = $1", [made.org_id, quota]);
    return made;
  };

  it("counts accepted recipients, and is 429 with the contract's body when it would be exceeded", async () => {
    const { send } = await small(3);
    const first = await send({ to: to("a"), cc: to("b") });
    assert.deepEqual([first.body.quota_limit, first.body.quota_used, first.body.quota_remaining], [3, 2, 1]);
    const over = await send({ to: to("c", "d") });
    assert.equal(over.status, 429);
    const { request_id, retry_after_seconds, message, ...rest } = over.body;
    assert.deepEqual(rest, {
      error: "rate_limit_exceeded",
      code: "rate_limit_exceeded",
      limit_type: "monthly_quota",
      limit: 3,
      used: 2,
      warming_phase: "",
    });
    assert.match(message, /quota/);
    assert.ok(Number.isInteger(retry_after_seconds) && retry_after_seconds > 0 && retry_after_seconds <= 31 * 86_400);
    assert.equal(over.headers["retry-after"], String(retry_after_seconds));
    assert.equal(request_id, over.headers["x-request-id"]);
    const last = await send({ to: to("c") });
    assert.deepEqual([last.status, last.body.quota_remaining], [202, 0]);
    assert.equal((await send()).status, 429);
  });

  it("does not count suppressed recipients, test keys and refused requests", async () => {
    const { send, test_key, live_key } = await small(1);
    await api.ask("POST", "/v1/suppressions", { email: "s@recipient.example" }, { key: live_key });
    assert.equal((await send({}, test_key)).status, 202);
    assert.equal((await send({ to: ["nobody"] })).status, 400);
    assert.equal((await send({ to: to("s", "a") })).body.quota_used, 1);
    assert.equal((await send()).status, 429);
  });

  it("is never exceeded by requests at the same time", async () => {
    const { send, org_id } = await small(20);
    const answers = await Promise.all(Array.from({ length: 60 }, () => send()));
    const statuses = answers.map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 202).length, 20, statuses.join(" "));
    assert.ok(
      answers.every(({ status, body }) => status === 202 || (status === 429 && body.limit === 20)),
      statuses.join(" "),
    );
    const rows = await api.world.db.query("select used from allowance where org_id = $1", [org_id]);
    assert.deepEqual(rows, [{ used: 20 }]);
  });

  it("begins again with the next month", async () => {
    const { send } = await small(1);
    assert.equal((await send()).status, 202);
    const full = await send();
    assert.equal(full.status, 429);
    api.advance(full.body.retry_after_seconds * 1000);
    assert.deepEqual([(await send()).status, (await send()).status], [202, 429]);
  });
});

describe("the rate of requests", () => {
  it("is the plan's: 429 requests_per_second beyond it", async () => {
    const { test_key } = await api.organization("starter");
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => api.ask("GET", "/v1/emails", undefined, { key: test_key })),
    );
    const over = answers.filter(({ status }) => status === 429);
    // 10 at once; the slower the machine, the more flow in meanwhile.
    assert.ok(over.length > 0 && over.length <= 30, String(over.length));
    const { request_id: _id, message, ...body } = over[0]?.body ?? {};
    assert.deepEqual(body, {
      error: "rate_limit_exceeded",
      code: "rate_limit_exceeded",
      limit_type: "requests_per_second",
      limit: 10,
      used: 10,
      retry_after_seconds: 1,
      warming_phase: "",
    });
    assert.match(message, /10 requests per second/);
    assert.equal(over[0]?.headers["retry-after"], "1");
  });

  it("comes after the key and before the shape", async () => {
    const { test_key } = await api.organization("starter");
    const send = () => api.ask("POST", "/v1/send", { ...GOOD, to: 1 }, { key: test_key });
    const statuses = (await Promise.all(Array.from({ length: 40 }, send))).map(({ status }) => status);
    assert.deepEqual([...new Set(statuses)].sort(), [400, 429]);
    assert.equal((await api.ask("POST", "/v1/send", GOOD, { key: "svc_live_wrong" })).status, 401);
  });
});
