// kill -9 of the receiving process under load: every mail that got its 250 is there, processed, with exactly one event.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

let s: Scene;

before(async () => {
  s = await setScene();
  await s.start(["api"]);
  const { id } = await addVerifiedDomain(s, s.dns, "in.example", { type: "inbound" });
  const alias = await s.ask("POST", "/v1/aliases", { domain_id: id, local_part: "x" });
  assert.equal(alias.status, 201);
  const webhook = await s.ask("POST", "/v1/webhooks", { url: "https://hooks.example/in", domain_id: id });
  assert.equal(webhook.status, 201);
});
after(() => s?.close());

const startMx = () => s.start(["mx"], { POSTERN_INTERNAL: "127.0.0.1:0" });

/** Delivers mails one after another until asked to stop; keeps what was acknowledged. */
async function sendUntil(stop: AbortSignal, name: string, acknowledged: Set<string>): Promise<void> {
  for (let n = 0; !stop.aborted; n += 1) {
    const subject = `${name}-${n}`;
    try {
      const smtp = await rawSmtp(s.mx_port);
      await smtp.reply();
      const content = `From: a@b.example\r\nSubject: ${subject}\r\n\r\n${"x".repeat(500)}\r\n`;
      const { code } = await smtp.deliver({ from: "a@b.example", to: ["x@in.example"], content });
      if (code === 250) acknowledged.add(subject);
      smtp.destroy();
    } catch {
      // The process was killed under us: the mail is not acknowledged, and the next one finds the new process.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

test("two kills under load lose nothing that was acknowledged, and make no event twice", async () => {
  const acknowledged = new Set<string>();
  const stop = new AbortController();
  let mx = await startMx();
  const senders = Array.from({ length: 8 }, (_, at) => sendUntil(stop.signal, `s${at}`, acknowledged));
  for (let round = 1; round <= 2; round += 1) {
    const wanted = acknowledged.size + 60;
    await until("60 more are acknowledged", () => acknowledged.size >= wanted);
    mx.child.kill("SIGKILL");
    await mx.exited;
    mx = await startMx();
  }
  stop.abort();
  await Promise.all(senders);
  const admin = await s.admin();
  await until("all are processed", async () => !(await admin.query("select 1 from inbound_queue limit 1")).rowCount);
  const { rows } = await admin.query(
    `select e.subject, e.status, (select count(*)::int from webhook_event w
        where w.org_id = e.org_id and convert_from(w.body, 'utf8')::jsonb ->> 'email_id' = e.id::text) as events
       from inbound_email e`,
  );
  const stored = Map.groupBy(rows, (row) => row.subject as string);
  const lost = [...acknowledged].filter((subject) => !stored.has(subject));
  assert.deepEqual(lost, [], `${lost.length} of ${acknowledged.size}`);
  for (const row of rows) assert.deepEqual([row.status, row.events], ["delivered", 1], row.subject);
  const doubled = [...stored].filter(([, copies]) => copies.length > 1);
  assert.deepEqual(doubled, [], "one message, one row: nothing was sent twice here");
  assert.ok(acknowledged.size >= 120, `${acknowledged.size} acknowledged`);
});
