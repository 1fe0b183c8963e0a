// Clients that connect and take their time do not stop a normal one, at a process of its own: silent ones, ones that
// trickle a command, ones that trickle a message. 200 of them, and 1,000 in the proof
// run; POSTERN_SLOW_CLIENTS sets another number.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PosternProcess } from "../support/postern-process.ts";
import { type RawSmtp, rawSmtp } from "../support/raw-smtp.ts";
import { residentMib } from "../support/resident.ts";
import { rounds } from "../support/rounds.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const SLOW = Number(process.env.POSTERN_SLOW_CLIENTS ?? rounds(200, 1_000));
/** Of one client address (src/inbound/limits.ts); the slow ones come from many. */
const PER_CLIENT_MAX = 50;
const NORMAL_MAILS = 20;
const MEMORY_MIB_MAX = 200;
const TRICKLE_MS = 200;

let s: Scene;
let postern: PosternProcess;

before(async () => {
  s = await setScene({ env: { POSTERN_PROXY_PROTOCOL_FROM: "127.0.0.9" } });
  postern = await s.start(["api", "mx"]);
  const { id } = await addVerifiedDomain(s, s.dns, "in.example", { type: "inbound" });
  await s.ask("POST", "/v1/aliases", { domain_id: id, local_part: "desk", action: "store" });
});
after(() => s?.close());

async function clientFrom(ip: string): Promise<RawSmtp> {
  const smtp = await rawSmtp(s.mx_port, { localAddress: "127.0.0.9" });
  smtp.write(`PROXY TCP4 ${ip} 192.0.2.25 4711 25\r\n`);
  return smtp;
}

/** From a kind of its own each: silent, in the middle of a command, in the middle of a message. */
async function slowClient(number: number): Promise<RawSmtp> {
  const smtp = await clientFrom(`198.51.100.${1 + Math.floor(number / (PER_CLIENT_MAX - 1))}`);
  const greeting = await smtp.reply();
  assert.equal(greeting.code, 220, greeting.text);
  if (number % 3 === 1) smtp.write("EHL");
  if (number % 3 === 2) {
    for (const line of ["EHLO x", "MAIL FROM:<a@b.example>", "RCPT TO:<desk@in.example>", "DATA"]) await smtp.ask(line);
    smtp.write("Subject: slow\r\n");
  }
  return smtp;
}

async function normalMail(number: number): Promise<number> {
  const started = performance.now();
  const smtp = await clientFrom("203.0.113.7");
  await smtp.reply();
  const content = `From: a@b.example\r\nSubject: normal ${number}\r\n\r\nx\r\n`;
  const { code, text } = await smtp.deliver({ from: "a@b.example", to: ["desk@in.example"], content });
  assert.equal(code, 250, text);
  smtp.destroy();
  return performance.now() - started;
}

test(`${SLOW} slow clients do not stop a normal one`, async (t) => {
  await normalMail(0);
  const memoryBefore = residentMib(postern.pid);
  const slow: RawSmtp[] = [];
  for (let at = 0; at < SLOW; at += 50) {
    const more = Array.from({ length: Math.min(50, SLOW - at) }, (_, index) => slowClient(at + index));
    slow.push(...(await Promise.all(more)));
  }
  const trickle = setInterval(() => {
    for (const [at, smtp] of slow.entries()) if (at % 3 !== 0) smtp.write("x");
  }, TRICKLE_MS);
  const took: number[] = [];
  for (let number = 1; number <= NORMAL_MAILS; number += 1) took.push(await normalMail(number));
  clearInterval(trickle);
  const memory = residentMib(postern.pid);
  for (const smtp of slow) smtp.destroy();
  took.sort((a, b) => a - b);
  const [median, worst] = [took[NORMAL_MAILS / 2] ?? 0, took.at(-1) ?? 0].map(Math.round);
  const grown = memory === null || memoryBefore === null ? null : Math.round(memory - memoryBefore);
  t.diagnostic(
    `beside ${SLOW} slow clients: normal mail in ${median} ms (median), ${worst} ms (worst); ${grown} MiB more`,
  );
  assert.ok(grown === null || grown < MEMORY_MIB_MAX, `${grown} MiB`);
  // Its subject is known once a mail was worked on, a moment after its 250.
  let total = 0;
  await until("every normal mail", async () => {
    total = Number((await s.ask("GET", "/v1/inbound-emails?subject=normal")).body.total);
    return total >= NORMAL_MAILS + 1;
  });
  assert.equal(total, NORMAL_MAILS + 1);
});

test("one client address has its share of connections and no more", async () => {
  const all: RawSmtp[] = [];
  for (let at = 0; at < PER_CLIENT_MAX; at += 1) all.push(await clientFrom("198.51.100.250"));
  for (const smtp of all) assert.equal((await smtp.reply()).code, 220);
  const more = await clientFrom("198.51.100.250");
  assert.match((await more.reply()).text, /^421 4\.7\.0 too many connections from your network at once/);
  const other = await clientFrom("198.51.100.251");
  assert.equal((await other.reply()).code, 220);
  for (const smtp of [...all, more, other]) smtp.destroy();
});
