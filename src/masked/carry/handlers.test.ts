// Mail that was answered 250 is never lost because a parser is busy or a resolver is away: forwards go by the head alone,
// replies wait, and after hours their author is informed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import PostalMime from "postal-mime";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { readReturnedMail } from "../../mail/returned-mail.ts";
import { NotNow } from "../../platform/not-now.ts";
import { isFromContact } from "../arrive/answers.ts";
import { maskedCheck, routeTo } from "../arrive/arrival.ts";
import { findAlias } from "../queries.ts";
import { writeForwards } from "../rewrite/write-forwards.ts";
import type { TraceRow } from "../settle/trace-queries.ts";
import type { AliasRow } from "../types.ts";
import type * as carry from "./carry.ts";
import { forwardHandler } from "./forwarding.ts";
import { replyHandler } from "./replying.ts";

const C = "shop@contact.example";
const D = "anna@home.example";

let api: TestApi;
let world: carry.CarryWorld;
let alias: AliasRow;
let contact: { id: string; reply_address: string };
before(async () => {
  api = await testApi();
  world = api.world;
  const key = { key: api.test_key };
  const made = await api.ask("POST", "/v1/masked/aliases", { forward_to: [D] }, key);
  [alias] = (await findAlias(world.db, api.org_id, made.body.alias.id)) as [AliasRow];
  contact = (await api.ask("POST", `/v1/masked/aliases/${alias.id}/contacts`, { email: C }, key)).body.contact;
});
after(() => api.close());

const ports: carry.CarryPorts = {
  findSender: () => Promise.reject(new Error("the service's own domain has no sender")),
  keepIfLarge: async () => null,
};
const judging = {
  spam: async () => ({ report: { score: 0 }, quarantine: null }),
  describe: async () => ({}),
};

type Trouble = { dns?: boolean; parser?: boolean; builder?: string; age_ms?: number };
/** A mail as receiving hands it over, with what is in the way. */
function arrived(
  from: string,
  contactId: string | null,
  { dns, parser, builder, age_ms = 0 }: Trouble,
): carry.ArrivedMail {
  const to = contactId === null ? `${alias.local_part}@${alias.domain}` : contact.reply_address;
  const head = `From: ${from}\r\nTo: ${to}\r\nSubject: order\r\nMessage-ID: <m@home.example>\r\n`;
  const bytes = Buffer.from(`${head}\r\nhi\r\n`);
  const result = dns ? "temperror" : "pass";
  const fail = (reason: string) => Promise.resolve({ kind: "failed" as const, reason });
  const never = () => Promise.reject(new Error("nothing is built here"));
  return {
    org_id: alias.org_id,
    id: world.random.uuid(),
    environment: "test",
    route: routeTo(alias, contactId, null),
    recipient: to,
    envelope: { from },
    origin: { remote_ip: "192.0.2.1", helo: "mx.example" },
    size: bytes.length,
    received_at: new Date(world.clock.now() - age_ms),
    released: false,
    alone: false,
    examination: {
      bytes: async () => bytes,
      verdicts: async () => ({
        spf: { result, from_aligned: !dns },
        dkim: { result, from_aligned: !dns },
        dmarc: { result, applied: null },
      }),
      parsed: async () => {
        if (parser) return { kind: "failed", reason: "too many messages wait for the parser" };
        const mailbox = (email: string) => [{ name: null, email }] as never;
        const parts = {
          headers: [],
          message_id: "<m@home.example>",
          in_reply_to: null,
          answered: [],
          references: [],
          auto_submitted: false,
          subject: null,
          attachments: [],
        };
        const mail = { ...parts, from: mailbox(from), to: mailbox(to), cc: [], reply_to: [] };
        return { kind: "parsed", mail: mail as never };
      },
      returned: async () => ({ kind: "parsed", returned: readReturnedMail(bytes) }),
      reply: builder === undefined ? never : () => fail(builder),
      forwards: async (order) => (builder === undefined ? writeForwards(bytes, order) : fail(builder)),
    },
  };
}

test("a forward whose parser is busy goes on, in session and later", async () => {
  const mail = arrived(C, null, { parser: true });
  const incoming = {
    environment: "test" as const,
    envelope: mail.envelope,
    bytes: await mail.examination.bytes(),
    recipients: [{ route: routeTo(alias, null, null) }],
  };
  assert.equal(await maskedCheck(world)(incoming, mail.examination), null);
  const outcome = await forwardHandler(world, ports, judging)(mail);
  assert.equal(outcome.status, "delivered");
  const [forward] = outcome.forwards;
  assert.equal(forward?.recipient, D);
  const read = await PostalMime.parse(forward?.mime ?? "");
  assert.deepEqual([read.from?.address, read.subject], [contact.reply_address, "order"]);
});

test("a mail that nobody else's belongs to is forgotten with its outcome, any other by its trace", async () => {
  const forward = forwardHandler(world, ports, judging);
  const tracesOf = async (change: Partial<carry.ArrivedMail>) => {
    const outcome = await forward({ ...arrived(C, null, {}), ...change });
    return { forgets: outcome.forgets, kinds: outcome.shared?.fact.traces.map(({ kind }) => kind) };
  };
  const kept = { forgets: false, kinds: ["received", "forward"] };
  assert.deepEqual(await tracesOf({ alone: true, environment: "live" }), { forgets: true, kinds: ["forward"] });
  assert.deepEqual(await tracesOf({ alone: false, environment: "live" }), kept);
  assert.deepEqual(await tracesOf({ alone: true, environment: "test" }), kept, "a test is looked at for an hour");
});

test("a reply waits for the parser and for DNS; after four hours its author is informed, and it is over", async () => {
  const reply = replyHandler(world, ports, async () => ({ quarantine: null }));
  const cases: [Trouble, RegExp][] = [
    [{ parser: true }, /could not be read/],
    [{ dns: true }, /nobody could tell whether it came from you/],
  ];
  for (const [trouble, words] of cases) {
    await assert.rejects(reply(arrived(D, contact.id, { ...trouble, age_ms: 3 * 3_600_000 })), NotNow);
    const outcome = await reply(arrived(D, contact.id, { ...trouble, age_ms: 5 * 3_600_000 }));
    assert.equal(outcome.status, "failed");
    assert.deepEqual(
      outcome.forwards.map(({ recipient, envelope_from }) => [recipient, envelope_from]),
      [[D, ""]],
    );
    const { text } = await PostalMime.parse(outcome.forwards[0]?.mime ?? "");
    assert.match((text ?? "").replace(/\s+/g, " "), words);
  }
});

test("a reply whose builder is slow or stops waits; its author is informed when it was too much for half an hour", async () => {
  const reply = replyHandler(world, ports, async () => ({ quarantine: null }));
  for (const builder of ["the parser took too long", "the parser has stopped"]) {
    await assert.rejects(reply(arrived(D, contact.id, { builder, age_ms: 29 * 60_000 })), NotNow, builder);
  }
  const outcome = await reply(arrived(D, contact.id, { builder: "the parser took too long", age_ms: 31 * 60_000 }));
  assert.deepEqual([outcome.status, outcome.reason], ["failed", "too_complex"]);
  const { text } = await PostalMime.parse(outcome.forwards[0]?.mime ?? "");
  assert.match((text ?? "").replace(/\s+/g, " "), /it is too large, or has too many parts/);
});

test("a forward that is too much for a worker waits, and after half an hour lies in quarantine", async () => {
  const forward = forwardHandler(world, ports, judging);
  const builder = "the parser took too long";
  await assert.rejects(forward(arrived(C, null, { builder, age_ms: 29 * 60_000 })), NotNow);
  const outcome = await forward(arrived(C, null, { builder, age_ms: 31 * 60_000 }));
  assert.deepEqual([outcome.status, outcome.reason, outcome.forwards], ["quarantined", "too_complex", []]);
});

test("nobody is informed about a reply that somebody else wrote in their name", async () => {
  const forged = arrived("eve@elsewhere.example", contact.id, { parser: true });
  const outcome = await replyHandler(world, ports, async () => ({ quarantine: null }))(forged);
  assert.deepEqual([outcome.status, outcome.reason, outcome.forwards], ["failed", "unauthorised_sender", []]);
});

test("a contact's answer is its own whichever form of its domain it shows", async () => {
  const email = "laden@b\u00fccher.example";
  const path = `/v1/masked/aliases/${alias.id}/contacts`;
  const { body } = await api.ask("POST", path, { email }, { key: api.test_key });
  assert.equal(body.contact.email, "laden@xn--bcher-kva.example");
  const trace = { org_id: alias.org_id, contact_id: body.contact.id } as TraceRow;
  const from = (...emails: string[]) => ({ from: emails.map((one) => ({ name: null, email: one })) as never });
  assert.equal(await isFromContact(world, trace, from(email)), true);
  assert.equal(await isFromContact(world, trace, from("Laden@xn--bcher-kva.example")), true);
  assert.equal(await isFromContact(world, trace, from("laden@bucher.example")), false);
  assert.equal(await isFromContact(world, trace, from(email, C)), false);
  assert.equal(await isFromContact(world, { ...trace, contact_id: null }, from(email)), false);
});
