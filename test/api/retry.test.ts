// Sending again by hand is under the rules that new mail is under: suppressions, quota, warming, a record that is the fold of
// its recipients; and it works where a day partition is missing, as canceling does.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Answer } from "../support/api.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { type SendingApi, sendingApi } from "./sender.ts";

let api: SendingApi;
let sink: SmtpSink;

before(async () => {
  sink = await startSmtpSink();
  sink.onRcpt((address) => {
    if (address.startsWith("full")) return { code: 552, text: "5.2.2 mailbox full" };
    return address.startsWith("busy") ? { code: 451, text: "4.3.0 try again later" } : null;
  });
  api = await sendingApi({ POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  receiveAt(api.dns, "recipient.example");
  await api.startMta();
});

after(async () => {
  await api?.close();
  await sink?.stop();
});

function refuses({ status, body }: Answer, expected: [status: number, code: string]): void {
  assert.deepEqual([status, body.code], expected, JSON.stringify(body));
}

type Recipient = { email: string; status: string; attempts: number; next_attempt_at: string | null };

const retry = (id: string) => api.ask("POST", `/v1/emails/${id}/retry`);
const show = async (id: string) => (await api.ask("GET", `/v1/emails/${id}`)).body.email;
const address = (name: string) => `${name}@recipient.example`;

let mails = 0;

/** A name that stands for one mail only, so that what one test suppresses is not in another's way. */
function name(kind: string): string {
  mails += 1;
  return `${kind}${mails}`;
}

/** An e-mail whose attempts are over, with the full mailboxes softly bounced. */
async function tried(to: string[], status: string, change: Record<string, unknown> = {}): Promise<string> {
  const { body } = await api.send({ to: to.map(address), ...change });
  return (await emailWithStatus(api, body.id, [status])).id;
}

async function timeline(id: string): Promise<string[][]> {
  const { body } = await api.ask("GET", `/v1/emails/${id}/events`);
  return body.events.map((event: { event_type: string; recipient: string }) => [event.event_type, event.recipient]);
}

describe("the record of an e-mail that is sent again", () => {
  it("is the fold of its recipients, due now, with the attempts that were made", async () => {
    for (const [others, before, folded] of [
      [[], "bounced", "queued"],
      [["fine"], "partially_delivered", "sending"],
      [["busy"], "deferred", "deferred"],
    ] as const) {
      const id = await tried([name("full"), ...others], before);
      const { status, body } = await retry(id);
      assert.equal(status, 200, JSON.stringify(body));
      const [again] = body.email.recipients as Recipient[];
      assert.deepEqual([body.email.status, body.email.completed_at], [folded, null]);
      assert.deepEqual([again?.status, again?.attempts], ["queued", 1]);
      assert.ok(Math.abs(Date.parse(String(again?.next_attempt_at)) - api.world.clock.now()) < 60_000);
      await until("the second attempt is counted on", async () => (await show(id)).recipients[0].attempts === 2);
      assert.equal((await show(id)).status, before);
    }
  });
});

describe("suppressions", () => {
  it("that came meanwhile are heeded: 422, and the e-mail stays as it was", async () => {
    const to = name("full");
    const id = await tried([to], "bounced");
    await api.ask("POST", "/v1/suppressions", { email: address(to) });
    const before = await show(id);
    const answer = await retry(id);
    refuses(answer, [422, "all_recipients_suppressed"]);
    assert.deepEqual(answer.body.suppressed, [{ email: address(to), reason: "manual" }]);
    assert.deepEqual(await show(id), before);
  });

  it("of some recipients make these suppressed, and the others get it", async () => {
    const [gone, stays] = [name("full"), name("full")];
    const id = await tried([gone, stays], "bounced");
    await api.ask("POST", "/v1/suppressions", { email: address(gone) });
    const { status, body } = await retry(id);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      body.email.recipients.map((recipient: Recipient) => [recipient.status, recipient.next_attempt_at !== null]),
      [
        ["suppressed", false],
        ["queued", true],
      ],
    );
    await emailWithStatus(api, id, ["bounced"]);
    assert.deepEqual(
      (await timeline(id)).filter(([, recipient]) => recipient === address(gone)),
      [
        ["queued", address(gone)],
        ["bounced", address(gone)],
        ["suppressed", address(gone)],
      ],
    );
  });

  it("of another list do not matter, of its own list they do", async () => {
    const to = name("full");
    const id = await tried([to], "bounced", { unsubscribe: { list: "news" } });
    const leave = (list: string) =>
      api.ask("POST", "/v1/suppressions", { email: address(to), scope_type: "list", scope_id: list });
    assert.equal((await leave("other")).status, 201);
    assert.equal((await retry(id)).status, 200);
    await emailWithStatus(api, id, ["bounced"]);
    assert.equal((await leave("news")).status, 201);
    refuses(await retry(id), [422, "all_recipients_suppressed"]);
  });
});

describe("limits", () => {
  const used = async () => {
    const sql = "select used from allowance where org_id = $1 and kind = 'monthly_quota'";
    return (await api.world.db.query<{ used: number }>(sql, [api.org_id]))[0]?.used as number;
  };

  it("count who is sent to again", async () => {
    const id = await tried([name("full"), name("full"), "fine"], "partially_delivered");
    const before = await used();
    assert.equal((await retry(id)).status, 200);
    assert.equal(await used(), before + 2);
  });

  it("that are full refuse it with the contract's 429, and change nothing", async () => {
    const { body: sent } = await api.send({ to: [address(name("full"))] });
    await emailWithStatus(api, sent.id, ["bounced"]);
    const before = [await used(), await show(sent.id)];
    const fill = "update allowance set used = $2, ceiling = $3 where org_id = $1 and kind = 'monthly_quota'";
    await api.world.db.execute(fill, [api.org_id, sent.quota_limit, sent.quota_limit]);
    const { status, body } = await retry(sent.id);
    await api.world.db.execute(fill, [api.org_id, before[0], sent.quota_limit]);
    assert.deepEqual([status, body.error, body.limit_type], [429, "rate_limit_exceeded", "monthly_quota"]);
    assert.deepEqual([body.limit, body.used], [sent.quota_limit, sent.quota_limit]);
    assert.deepEqual([await used(), await show(sent.id)], before);
  });

  it("of a new domain's warming hold it back, too", async () => {
    const domain = await addVerifiedDomain(api, api.dns, "new.example", { warm: false });
    const id = await tried([name("full")], "bounced", { from: "a@new.example" });
    assert.equal((await retry(id)).status, 200);
    await emailWithStatus(api, id, ["bounced"]);
    // Two in a minute is what the first phase lets through; a new minute may have begun.
    const fill = "update allowance set used = ceiling where org_id = $1 and scope_id = $2 and kind = 'daily'";
    assert.equal(await api.world.db.execute(fill, [api.org_id, domain.id]), 1);
    const { status, body } = await retry(id);
    assert.deepEqual([status, body.limit_type], [429, "daily"]);
  });
});

describe("mail that the service made", () => {
  const origin = "update message set origin = $3, from_header = $4 where org_id = $1 and id = $2";

  it("is retried when it is a forward, whoever wrote it, and costs no quota", async () => {
    const id = await tried([name("full")], "bounced");
    await api.world.db.execute(origin, [api.org_id, id, "forward", "Somebody Else <x@elsewhere.example>"]);
    const { status, body } = await retry(id);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal((await emailWithStatus(api, id, ["bounced"])).recipients[0].attempts, 2);
  });

  it("is 409 when it is a notice or went through a masked address", async () => {
    for (const kind of ["system", "masked"]) {
      const id = await tried([name("full")], "bounced");
      await api.world.db.execute(origin, [api.org_id, id, kind, "service@postern.test"]);
      refuses(await retry(id), [409, "invalid_state"]);
    }
  });
});

describe("where the day's partition of events is missing", () => {
  /** As after a jump of the clock, before the rounds have made the new day's partitions. */
  async function withoutPartition(): Promise<void> {
    const rows = await api.world.db.query<{ leaf: string }>(
      "select c.relname as leaf from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'event'::regclass",
    );
    assert.ok(rows.length > 0);
    for (const { leaf } of rows) await api.world.db.query(`drop table "${leaf}"`);
  }

  it("retry and cancel make it", async () => {
    const id = await tried([name("full")], "bounced");
    const scheduled_at = new Date(api.world.clock.now() + 86_400_000).toISOString();
    const { body: later } = await api.send({ scheduled_at });
    await withoutPartition();
    assert.equal((await api.ask("POST", `/v1/emails/${later.id}/cancel`)).status, 200);
    await withoutPartition();
    assert.equal((await retry(id)).status, 200);
    assert.ok((await timeline(id)).some(([type]) => type === "retried"));
  });
});
