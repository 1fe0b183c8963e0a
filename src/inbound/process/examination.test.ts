// When a mail is judged: as of its receipt, however late it is processed and however often.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { dkimSign } from "mailauth";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { dkimRecord, generateDkimKey } from "../../mail/dkim/key.ts";
import { createInbound, type InboundPorts } from "../inbound.ts";

const HOUR_MS = 3_600_000;
const KEY_NAME = "s1._domainkey.news.example";

let r: Receiving;
let key: { private_key_pem: string; public_key: string };

before(async () => {
  r = await startTestReceiving();
  key = await generateDkimKey("rsa");
  await addAlias(r, "desk");
});
after(() => r.close());

function publish(): void {
  r.dns.set(KEY_NAME, "TXT", [dkimRecord(key.public_key, "rsa")]);
  r.dns.set("_dmarc.news.example", "TXT", ["v=DMARC1; p=reject"]);
}

/** A mail of news.example, signed; the signature lapses at `expires`. */
async function signedMail(subject: string, expires: Date): Promise<Buffer> {
  const mail = Buffer.from(`From: Anna <anna@news.example>\r\nSubject: ${subject}\r\n\r\nHello\r\n`);
  const signer = { signingDomain: "news.example", selector: "s1", privateKey: key.private_key_pem };
  const signTime = new Date(expires.getTime() - HOUR_MS);
  const { signatures } = await dkimSign(mail, { ...signer, signTime, expires, signatureData: [signer] });
  return Buffer.concat([Buffer.from(signatures), mail]);
}

async function receive(subject: string) {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const content = await signedMail(subject, new Date(r.api.world.clock.now() + HOUR_MS));
  const reply = await smtp.deliver({ from: "anna@news.example", to: ["desk@in.example"], content });
  assert.equal(reply.code, 250, reply.text);
  smtp.destroy();
  const [row] = await r.processed(`subject=${subject}`);
  return row.id as string;
}

const show = async (id: string) => (await r.api.ask("GET", `/v1/inbound-emails/${id}`)).body.email;
const rawOf = async (id: string) => (await r.api.ask("GET", `/v1/inbound-emails/${id}/raw`)).body as string;
const resultsOf = (raw: string) => /^Authentication-Results: [^\r]*\r\n(?:[ \t][^\r]*\r\n)*/m.exec(raw)?.[0] ?? "none";
const again = (id: string, how: string) => r.api.ask("POST", `/v1/inbound-emails/${id}/${how}`);

test("a mail that waited two hours is judged by the time of its receipt", async () => {
  publish();
  const nothing: Omit<InboundPorts, "handlers"> = {
    findLane: () => Promise.reject(new Error("nothing is sent here")),
    outbound: () => null,
    notifyOutbound: () => undefined,
    ...{ exact: [], own: [], checks: [] },
    spam: async () => ({ report: { score: null, verdict: null, symbols: [] }, quarantine: null }),
    rules: async () => null,
    findHolder: async () => undefined,
  };
  const engine = createInbound(r.api.world, { ...nothing, handlers: new Map() }, { claims: false });
  const received_at = new Date(r.api.world.clock.now() - 2 * HOUR_MS);
  const detail = { domain: "in.example", domain_webhook_ids: [] };
  const offered = await engine.take({
    origin: { remote_ip: "192.0.2.7", remote_port: 1, helo: "x", protocol: "SMTP", tls: null },
    envelope: { from: "anna@news.example", smtputf8: false },
    environment: "live",
    received_at,
    recipients: [
      {
        recipient: "any@in.example",
        route: {
          kind: "catch_all",
          org_id: r.api.org_id,
          domain_id: r.domain.id,
          alias_id: null,
          tag: null,
          ...detail,
        },
      },
    ],
    bytes: await signedMail("waited", new Date(received_at.getTime() + HOUR_MS)),
  });
  assert.ok(offered.kind === "taken");
  await offered.processed;
  const { dkim, auth_results } = await show(offered.ids[0] as string);
  assert.deepEqual([dkim, auth_results.dmarc.result], ["pass", "pass"]);
  await engine.stop();
});

test("a replay and a release say who sent a mail as it was found at its receipt", async () => {
  publish();
  const id = await receive("kept");
  const before = await show(id);
  const results = resultsOf(await rawOf(id));
  assert.equal(before.dkim, "pass");
  assert.match(results, /dkim=pass[\s\S]*dmarc=pass/);
  // The key is rotated away, and the policy with it.
  r.dns.remove(KEY_NAME);
  r.dns.remove("_dmarc.news.example");
  const rule = await r.api.ask("POST", "/v1/inbound-rules", {
    ...{ name: "unsigned", domain_id: r.domain.id, action: "drop" },
    conditions: [{ field: "dkim", comparator: "not_equals", value: "pass" }],
  });
  assert.equal((await again(id, "replay")).status, 200);
  await r.api.world.db.query("update inbound_email set status = 'quarantined' where id = $1", [id]);
  assert.equal((await again(id, "release")).status, 200);
  const after = await show(id);
  assert.deepEqual([after.status, after.rule_ids], ["delivered", []]);
  assert.deepEqual([after.dkim, after.spf, after.auth_results], [before.dkim, before.spf, before.auth_results]);
  assert.equal(resultsOf(await rawOf(id)), results);
  const reported = (await r.events(id)).map(({ body }) => [body.dkim, body.auth_results.dmarc.result]);
  assert.deepEqual(reported, Array(3).fill(["pass", "pass"]));
  await r.api.ask("DELETE", `/v1/inbound-rules/${rule.body.rule.id}`);
});

test("what DNS did not answer at the receipt is asked for again by a replay", async () => {
  publish();
  r.dns.fail(KEY_NAME, "servfail");
  const id = await receive("undecided");
  assert.equal((await show(id)).dkim, "temperror");
  r.dns.heal(KEY_NAME);
  assert.equal((await again(id, "replay")).status, 200);
  assert.equal((await show(id)).dkim, "pass");
});
