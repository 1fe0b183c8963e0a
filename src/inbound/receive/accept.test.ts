// What the client is answered when things fail before its mail is durable: a database that is away, answers to a commit that
// are lost, full disks.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";

let r: Receiving;

before(async () => {
  r = await startTestReceiving();
  await addAlias(r, "desk");
});
after(() => r.close());

const isAccept = (text: string): boolean => text.includes("insert into inbound_email");

test("while the database is away mail is deferred with 451, not lost and not bounced", async () => {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  await smtp.ask("EHLO x");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.equal((await smtp.ask("RCPT TO:<desk@in.example>")).code, 250);
  await smtp.ask("DATA");
  const { db } = r.api.world;
  const real = db.execute;
  const away = Object.assign(new Error("gone"), { code: "57P01" });
  let asked = 0;
  db.execute = async (text: string, values?: readonly unknown[]) => {
    if (!isAccept(text)) asked += 1;
    if (isAccept(text) || asked < 3) throw away;
    return real(text, values);
  };
  smtp.write("Subject: away\r\n\r\nx\r\n.\r\n");
  assert.match((await smtp.reply()).text, /^451 4\.3\.0 /);
  assert.equal(asked, 3, "asked until the database settled that nothing is stored");
  db.execute = real;
  assert.equal(
    (await smtp.deliver({ from: "a@b.example", to: ["desk@in.example"], content: "Subject: away\r\n\r\nx\r\n" })).code,
    250,
  );
  assert.equal((await r.processed("subject=away")).length, 1);
  smtp.destroy();
});

test("an accept that the server comes to only after it was asked for is answered with 451, and never happens", async () => {
  const { db } = r.api.world;
  const real = db.execute;
  let late: (() => Promise<number>) | undefined;
  db.execute = async (text: string, values?: readonly unknown[]) => {
    if (!isAccept(text)) return real(text, values);
    late = () => real(text, values);
    throw new Error("Connection terminated unexpectedly");
  };
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const content = "Subject: too late\r\n\r\nx\r\n";
  const answer = await smtp.deliver({ from: "a@b.example", to: ["desk@in.example"], content });
  db.execute = real;
  assert.equal(answer.code, 451);
  await assert.rejects(late?.() ?? Promise.resolve(), /duplicate key/);
  assert.equal((await r.api.ask("GET", "/v1/inbound-emails?subject=too%20late")).body.total, 0);
  smtp.destroy();
});

test("an accept whose answer was lost but which happened is answered with 250", async () => {
  const { db } = r.api.world;
  const real = db.execute;
  db.execute = async (text: string, values?: readonly unknown[]) => {
    const count = await real(text, values);
    if (isAccept(text)) throw new Error("Connection terminated unexpectedly");
    return count;
  };
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const answer = await smtp.deliver({
    from: "a@b.example",
    to: ["desk@in.example"],
    content: "Subject: answered\r\n\r\nx\r\n",
  });
  db.execute = real;
  assert.equal(answer.code, 250);
  await r.processed("subject=answered");
  assert.equal((await r.api.ask("GET", "/v1/inbound-emails?subject=answered")).body.total, 1);
  smtp.destroy();
});

test("a full disk is 452: for the spool, for blobs, and for the database", async () => {
  const { db, blobs, config } = r.api.world;
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const mail = (subject: string, size: number) => ({
    from: "a@b.example",
    to: ["desk@in.example"],
    content: `Subject: ${subject}\r\n\r\n${`${"x".repeat(76)}\r\n`.repeat(size)}`,
  });
  const realPut = blobs.put;
  blobs.put = async () => Promise.reject(Object.assign(new Error("no space"), { code: "ENOSPC" }));
  assert.match((await smtp.deliver(mail("full", 5_000))).text, /^452 4\.3\.1 /);
  blobs.put = realPut;
  const realExecute = db.execute;
  db.execute = async () => Promise.reject(Object.assign(new Error("disk full"), { code: "53100" }));
  assert.match((await smtp.deliver(mail("full", 1))).text, /^452 4\.3\.1 /);
  db.execute = realExecute;
  const spool = join(config.data_dir, "spool", String(process.pid));
  rmSync(spool, { recursive: true });
  writeFileSync(spool, "a file where the folder was");
  assert.match((await smtp.deliver(mail("full", 5_000))).text, /^4\d\d 4\.3\.[01] /);
  rmSync(spool);
  await r.restartMx();
  assert.equal((await r.api.ask("GET", "/v1/inbound-emails?subject=full")).body.total, 0, "nothing partial");
  const again = await rawSmtp(r.port);
  await again.reply();
  assert.equal((await again.deliver(mail("full", 5_000))).code, 250);
  again.destroy();
});
