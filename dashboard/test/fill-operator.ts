// What operators' pages show beside the mail of the stage: a destination that somebody suspended, a pool of addresses, a relay that
// cannot be reached.
import assert from "node:assert/strict";
import { rawSmtp } from "../../test/support/raw-smtp.ts";
import type { Scene } from "../../test/support/scene.ts";
import { emailWithStatus, receiveAt } from "../../test/support/stories.ts";
import { until } from "../../test/support/until.ts";
import { askAs, type Person } from "./persons.ts";

/** Its server defers, as that of all names below kontor.example. */
const SUSPENDED = "moving.kontor.example";
const SETTLED_MS = 30_000;
const NOTE = "They move their servers until Friday and asked us to wait";

/**
 * The addresses of a pool: one that is called as it says, one that is warmed up and has another name, and one that no
 * machine has.
 */
export const ADDRESSES = { named: "127.0.0.31", warming: "127.0.0.32", elsewhere: "10.20.0.61" };
/** A domain of fill-masked.ts, whose relay leads nowhere. */
export const RELAY = { domain: "brandt.example", host: "smtp.provider.example" };

/** Ids of mail for the installation: a complaint about nothing that left, and one with HTML and a file. */
export type OwnMailRecords = { complaint: string; letter: string };

/** With mail that waits for it. */
export async function fillOperator(scene: Scene, owner: Person): Promise<OwnMailRecords> {
  await fillSources(scene);
  for (const name of ["sales", "office"]) await deferredTo(scene, `${name}@${SUSPENDED}`, "Your order is packed");
  const made = await askAs(scene, owner.token, ["POST", `operator/queue/${SUSPENDED}/suspend`], { note: NOTE });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal((await askAs(scene, owner.token, ["POST", "operator/health/look"])).status, 200);
  return fillOwnMail(scene, owner);
}

/** Its file's name is written from right to left in part, as one that pretends to be a document. */
const LETTER = [
  "From: Greta Falk <greta.falk@netz.example>",
  "Subject: Mail that I did not ask for",
  "Message-ID: <letter-1@netz.example>",
  'Content-Type: multipart/mixed; boundary="part"',
  "",
  "--part",
  "Content-Type: text/html; charset=utf-8",
  "",
  "<p>Hello,</p><p>the attached came to my address, which I gave nobody. Please find out who sends it.</p>" +
    "<script>parent.document.title='owned'</script><img src=https://track.example/p.gif alt=''><p>Greta Falk</p>",
  "--part",
  "Content-Type: application/zip",
  "Content-Disposition: attachment; filename*=utf-8''evidence-%E2%80%AEfdp.zip",
  "",
  "PK",
  "--part--",
].join("\r\n");

const COMPLAINT = [
  "From: Feedback loop <fbl@freemail.example>",
  "Subject: FW: Spring sale",
  'Content-Type: multipart/report; report-type=feedback-report; boundary="part"',
  "",
  "--part",
  "Content-Type: text/plain",
  "",
  "One of our readers marked the attached mail as spam.",
  "--part",
  "Content-Type: message/feedback-report",
  "",
  "Feedback-Type: abuse",
  "User-Agent: FreemailLoop/2.1",
  "Version: 1",
  "",
  "--part",
  "Content-Type: message/rfc822",
  "",
  "Message-ID: <none@elsewhere.example>",
  "From: sale@elsewhere.example",
  "Subject: Spring sale",
  "",
  "Everything must go.",
  "--part--",
].join("\r\n");

const TO_US = "postern.example";
const OTHERS = [
  ["noc@carrier.example", "Maintenance on 3 December", `hostmaster@${TO_US}`],
  ["researcher@lab.example", "A question about your TLS", `security@${TO_US}`],
  ["", "Undelivered mail", "Postmaster"],
] as const;

async function fillOwnMail(scene: Scene, owner: Person): Promise<OwnMailRecords> {
  const smtp = await rawSmtp(scene.mx_port);
  await smtp.reply();
  const deliver = async (from: string, to: string, content: string): Promise<void> => {
    const { code, text } = await smtp.deliver({ from, to: [to], content: `${content}\r\n` });
    assert.equal(code, 250, text);
  };
  for (const [from, subject, to] of OTHERS)
    await deliver(from, to, `From: ${from || "mailer-daemon@carrier.example"}\r\nSubject: ${subject}\r\n\r\nHello`);
  await deliver("greta.falk@netz.example", `abuse@${TO_US}`, LETTER);
  await deliver("fbl@freemail.example", `fbl@${TO_US}`, COMPLAINT);
  smtp.destroy();
  const list = async () => {
    const { body } = await askAs(scene, owner.token, ["GET", "operator/mail"]);
    return body.mails as { id: string; mailbox: string; subject: string | null }[];
  };
  const idOf = async (mailbox: string) => (await list()).find((mail) => mail.mailbox === mailbox)?.id ?? "";
  const isRead = async () => (await list()).filter(({ subject }) => subject !== null).length === OTHERS.length + 2;
  await until("mail for the installation is read", isRead, SETTLED_MS);
  return { complaint: await idOf("fbl"), letter: await idOf("abuse") };
}

async function fillSources(scene: Scene): Promise<void> {
  const { named, warming, elsewhere } = ADDRESSES;
  scene.dns.set(named, "PTR", ["out1.nordkiosk.example"]);
  scene.dns.set("out1.nordkiosk.example", "A", [named]);
  scene.dns.set(warming, "PTR", ["host-32.provider.example"]);
  const ips = [
    { ip: named, ehlo: "out1.nordkiosk.example", warmup: false, weight: 3 },
    { ip: warming },
    { ip: elsewhere },
  ];
  const pool = await scene.ask("POST", "/v1/ip-pools", { name: "letters", ips });
  assert.equal(pool.status, 201, JSON.stringify(pool.body));
  const relay = { host: RELAY.host, username: "nordkiosk", password: "not this one" };
  const set = await scene.ask("PUT", `/v1/domains/${RELAY.domain}/relay`, relay);
  assert.equal(set.status, 200, JSON.stringify(set.body));
  const id = await sendTo(scene, "maja.lind@posteo.example", "Our new address", `hello@${RELAY.domain}`);
  await emailWithStatus(scene, id, ["deferred"], SETTLED_MS);
}

/** A mail that was tried once and waits. */
export async function deferredTo(scene: Scene, to: string, subject: string): Promise<string> {
  receiveAt(scene.dns, to.split("@")[1] ?? "", "mx.recipient.example");
  const id = await sendTo(scene, to, subject);
  await emailWithStatus(scene, id, ["deferred"], SETTLED_MS);
  return id;
}

const NORDKIOSK = "Nordkiosk <billing@nordkiosk.example>";

async function sendTo(scene: Scene, to: string, subject: string, from = NORDKIOSK): Promise<string> {
  const mail = { from, to: [to], subject, text_body: "Hello" };
  const { status, body } = await scene.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body.id);
}
