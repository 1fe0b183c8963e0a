// A month of a shop for `npm run demo -- --keep`: everything is asked of the running Postern, day by day under a clock that was set
// back, with servers around it that refuse, defer and complain as servers do. So lists, timelines, statistics and webhooks agree,
// for they are what the product made of it.
import { setTimeout as sleep } from "node:timers/promises";
import {
  addMember,
  askAs,
  invite,
  PASSWORD,
  type Person,
  setUpFirst,
  signUp,
} from "../../../dashboard/test/persons.ts";
import { reportXml } from "../../../src/mail/dmarc-report/report.fixture.ts";
import { rawSmtp } from "../../support/raw-smtp.ts";
import { feedbackReport, fieldOf } from "../../support/returned-mail.ts";
import type { Scene } from "../../support/scene.ts";
import type { Received } from "../../support/smtp-sink.ts";
import { SPAMMY } from "../../support/spam-texts.ts";
import { receiveAt } from "../../support/stories.ts";
import { until } from "../../support/until.ts";
import { addVerifiedDomain } from "../../support/verified-domain.ts";
import { type Mail, type Moment, planMonth, type Question, SHOPS } from "./plan.ts";
import { bodyOf, IMPORT, TEMPLATES } from "./texts.ts";

const SEED = 20_261_126;
const DAY_MS = 86_400_000;
const SETTLED_MS = 3_000;
const AGAIN_MAX = 20;
const AGAIN_MS = 500;
/** Whose mail goes where: large providers are known by their servers' names. */
const HOSTS: Record<string, string> = {
  "posteo.example": "mx.recipient.example",
  "freemail.example": "gmail-smtp-in.l.google.com",
  "inbox.example": "inbox-example.mail.protection.outlook.com",
  "kontor.example": "mx.kontor.example",
  "uni.example": "mta5.am0.yahoodns.net",
  "home.example": "mx.home.example",
};
/** So many days ago the endpoint of the customers' list went down, and came back: what was due there failed for good. */
const DOWN = { from: 7, to: 3 };
/** Greylisted mail is tried again after five minutes; in the days that a visitor sees first it is not late either. */
const GREYLISTED_MS = 6 * 60_000;
const PUNCTUAL_DAYS = 8;
const AGAIN_WITHIN_MS = 2_000;

export const OWNER = { email: "ines@shop.example", name: "Ines Brandt" };

type Shop = {
  scene: Scene;
  masked: { alias: string; reply: string }[];
  question: string | null;
  day: number;
  at_ms: number;
};

/** What the servers around go by: how many days are left, and who is to come again. */
type Around = { greylisted: Set<string>; daysLeft: number };

/** Before Postern starts: its clock is where the month begins, at midnight. */
export function setBack(scene: Scene, days: number): Promise<void> {
  return scene.moveClock(-days * DAY_MS - (Date.now() % DAY_MS));
}

/** Lives the last `days` up to now; `report` is called with each day that is over. */
export async function liveMonth(scene: Scene, days: number, report: (day: number) => void): Promise<void> {
  const moments = planMonth(SEED, Date.now(), days);
  const around: Around = { greylisted: new Set(), daysLeft: days };
  serveAround(scene, around);
  const shop = await open(scene);
  for (const [place, moment] of moments.entries()) {
    await scene.moveClock(moment.at_ms - Date.now());
    around.daysLeft = days - moment.day;
    if (moment.day !== shop.day || place === 0) await beginDay(shop, moment);
    await live(shop, moment);
    const { greylisted } = around;
    if (greylisted.size > 0 && around.daysLeft < PUNCTUAL_DAYS) await passGreylist(scene, greylisted, moment.at_ms);
    if (moments[place + 1]?.day !== moment.day) report(moment.day);
  }
  await make(scene, "/v1/send", {
    ...{
      from: "Nordkiosk <news@news.shop.example>",
      to: ["Maja Lind <maja.lind@posteo.example>"],
      tags: ["newsletter"],
    },
    ...{
      subject: "Advent starts on Sunday",
      text_body: "See you there.",
      scheduled_at: new Date(Date.now() + 2 * DAY_MS),
    },
  });
  const owner = await signIn(scene);
  await signUp(scene, owner, { email: "lou@atelier-brun.example", name: "Lou Marsh" });
  await invite(scene, owner, { email: "sofia@shop.example", role: "developer" });
  await scene.moveClock(0);
  // What arrives from now on is the visitor's own.
  scene.sink.messages.length = 0;
  scene.receiver.requests.length = 0;
}

async function passGreylist(scene: Scene, greylisted: ReadonlySet<string>, at_ms: number): Promise<void> {
  await scene.moveClock(at_ms + GREYLISTED_MS - Date.now());
  const givenUpAt = performance.now() + AGAIN_WITHIN_MS;
  while (greylisted.size > 0 && performance.now() < givenUpAt) await sleep(20);
}

/** The session of the first day is over by now. */
async function signIn(scene: Scene): Promise<Person> {
  const { status, token } = await askAs(scene, null, ["POST", "sign-in"], { email: OWNER.email, password: PASSWORD });
  if (status !== 200 || token === null) throw new Error(`not signed in: ${status}`);
  return { email: OWNER.email, token };
}

/** Servers of recipients and of webhooks that are not always well. */
function serveAround(scene: Scene, around: Around): void {
  for (const [domain, host] of Object.entries(HOSTS)) receiveAt(scene.dns, domain, host);
  const shops = SHOPS.map((shop) => shop.split("@")[1] as string);
  for (const domain of shops) receiveAt(scene.dns, domain);
  const senders = [...Object.keys(HOSTS), ...shops, "supplier.example"];
  for (const domain of senders) scene.dns.set(domain, "TXT", ["v=spf1 ip4:127.0.0.1 -all"]);
  const seen = new Map<string, number>();
  scene.sink.onRcpt((address) => {
    if (/^(gone|old)\./.test(address)) return { code: 550, text: "5.1.1 No such user here" };
    if (address.startsWith("full.")) return { code: 452, text: "4.2.2 The mailbox is full" };
    const tries = (seen.get(address) ?? 0) + 1;
    seen.set(address, tries);
    if (address.endsWith("kontor.example") && tries % 5 === 1) {
      around.greylisted.add(address);
      return { code: 451, text: "4.7.1 Greylisted, please try again in five minutes" };
    }
    around.greylisted.delete(address);
    return null;
  });
  scene.sink.onMessage(({ to, bytes }) =>
    to.some((one) => one.endsWith("uni.example")) && /^Subject: Last days/m.test(bytes.toString("latin1"))
      ? { code: 554, text: "5.7.1 Message rejected as spam" }
      : null,
  );
  scene.receiver.respond(({ path }) => {
    const isDown = path === "/crm" && around.daysLeft <= DOWN.from && around.daysLeft >= DOWN.to;
    return isDown ? { status: 503, body: "maintenance" } : { status: 200 };
  });
}

/** A busy machine says now and then that it has no time: then again. */
async function make(scene: Scene, path: string, body: unknown): Promise<Record<string, never>> {
  let answer = await scene.ask("POST", path, body);
  for (let again = 0; answer.status === 503 && again < AGAIN_MAX; again += 1) {
    await sleep(AGAIN_MS);
    answer = await scene.ask("POST", path, body);
  }
  if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body as Record<string, never>;
}

/** The first day: people, domains, keys, templates, endpoints. */
async function open(scene: Scene): Promise<Shop> {
  const owner = await setUpFirst(scene, OWNER);
  const { body } = await askAs(scene, owner.token, ["GET", "session"]);
  const [organization] = body.organizations as { id: string }[];
  await askAs(scene, owner.token, ["PUT", `operator/organizations/${organization?.id}`], { name: "Nordkiosk" });
  await addMember(scene, owner, { role: "admin", email: "tom@shop.example", name: "Tom Okafor" });
  await addMember(scene, owner, { role: "developer", email: "maja@shop.example", name: "Maja Lind" });
  await addMember(scene, owner, { role: "viewer", email: "paul@shop.example", name: "Paul Reyes" });
  await addVerifiedDomain(scene, scene.dns, "shop.example", { type: "outbound" });
  await addVerifiedDomain(scene, scene.dns, "news.shop.example", { type: "outbound" });
  await make(scene, "/v1/domains", { domain: "atelier.shop.example", type: "outbound" });
  for (const [name, environment] of [
    ["Shop backend", "live"],
    ["Newsletter tool", "live"],
    ["Staging", "test"],
  ])
    await make(scene, "/v1/api-keys", { name, environment });
  for (const template of TEMPLATES) await make(scene, "/v1/templates", template);
  const events = ["email.delivered", "email.bounced", "email.deferred", "email.complained"];
  await make(scene, "/v1/webhooks", { url: `${scene.receiver.url}/shop`, events });
  await make(scene, "/v1/webhooks", {
    url: `${scene.receiver.url}/crm`,
    events: ["email.delivered", "email.bounced", "email.complained"],
  });
  await openInbox(scene);
  const { job } = await make(scene, "/v1/imports/suppressions/preview", { csv: IMPORT });
  await make(scene, `/v1/imports/suppressions/jobs/${(job as unknown as { id: string }).id}/commit`, {});
  return { scene, masked: await openMasked(scene), question: null, day: 0, at_ms: 0 };
}

async function openInbox(scene: Scene): Promise<void> {
  const { id: domain_id } = await addVerifiedDomain(scene, scene.dns, "help.shop.example", { type: "inbound" });
  const { webhook } = await make(scene, "/v1/webhooks", {
    url: `${scene.receiver.url}/help`,
    events: ["email.received"],
  });
  const webhook_ids = [(webhook as unknown as { id: string }).id];
  await make(scene, "/v1/aliases", {
    domain_id,
    local_part: "support",
    description: "The shop's questions",
    webhook_ids,
  });
  await make(scene, "/v1/aliases", { domain_id, local_part: "returns", description: "What comes back", webhook_ids });
  await make(scene, "/v1/inbound-rules", {
    ...{ domain_id, name: "Invoices are only kept", action: "store" },
    match: { any: [{ field: "subject", comparator: "contains", value: "invoice 2026" }] },
  });
  await scene.ask("PUT", `/v1/domains/${domain_id}/spam`, { thresholds: { tag: 2, quarantine: 4, reject: 100 } });
}

/** Two customers' masked addresses: their mailboxes have confirmed. */
async function openMasked(scene: Scene): Promise<Shop["masked"]> {
  const masked: Shop["masked"] = [];
  for (const [who, description] of [
    ["ines.brandt", "Ines: shops"],
    ["jonas.weber", "Jonas: travel"],
  ]) {
    const fields = { forward_to: [`${who}@home.example`], local_part: who, description };
    const { alias } = await make(scene, "/v1/masked/aliases", fields);
    const { id, email } = alias as unknown as { id: string; email: string };
    const contact = await make(scene, `/v1/masked/aliases/${id}/contacts`, { email: SHOPS[0], name: "The bookshop" });
    masked.push({ alias: email, reply: (contact.contact as unknown as { reply_address: string }).reply_address });
    await confirm(scene, `${who}@home.example`);
  }
  await make(scene, "/v1/masked/aliases", {
    forward_to: ["lena.berg@home.example"],
    format: "words",
    description: "Newsletters",
  });
  return masked;
}

async function confirm({ sink, base_url }: Scene, mailbox: string): Promise<void> {
  const link = await until(`the mail that asks ${mailbox}`, () => {
    const mail = sink.messages
      .find(({ to }) => to.includes(mailbox))
      ?.bytes.toString("latin1")
      .replaceAll(/=\r\n/g, "");
    return mail && /\/masked\/confirm\/[\w.-]+/.exec(mail)?.[0];
  });
  const answer = await fetch(`${base_url}${link}`, { method: "POST" });
  if (!answer.ok) throw new Error(`not confirmed: ${answer.status}`);
}

/** Receivers report on the day before; now and then a person does something. */
async function beginDay(shop: Shop, { day, at_ms }: Moment): Promise<void> {
  const { scene } = shop;
  shop.day = day;
  const begin_s = (Math.floor(at_ms / DAY_MS) - 1) * 86_400;
  for (const [n, org] of ["google.com", "Enterprise Outlook", "posteo.example"].entries()) {
    if ((day + n) % 3 === 2) continue;
    const records = [
      { ip: "192.0.2.1", count: 40 + ((day * 37 + n * 11) % 60) },
      { ip: "198.51.100.9", count: 3 + (day % 4), spf: "fail", spf_result: "fail" },
      ...(day % 5 === n
        ? [{ ip: "203.0.113.77", count: 2 + (day % 3), dkim: "fail", spf: "fail", spf_result: "fail" }]
        : []),
    ];
    const body = reportXml({ id: `${org}-${day}`, org, domain: "shop.example", begin_s, p: "none", records });
    const headers = { authorization: `Bearer ${scene.live_key}`, "content-type": "application/octet-stream" };
    await fetch(`${scene.base_url}/v1/dmarc/reports`, { method: "POST", headers, body });
  }
  if (day % 6 === 2) await make(scene, "/v1/suppressions", { email: `asked${day}@inbox.example`, note: "By phone" });
  if (day === 11) await make(scene, "/v1/api-keys", { name: "Returns service", environment: "live" });
  if (day % 7 === 4) await complain(shop);
}

/** Somebody marked a newsletter as spam; their provider says so at the address that the mail names for it. */
async function complain({ scene }: Shop): Promise<void> {
  const copy = scene.sink.messages.findLast(({ bytes }) => fieldOf(bytes, "CFBL-Address") !== "" && isNews(bytes));
  if (!copy) return;
  const report = feedbackReport({
    from: copy.from,
    to: copy.to[0] as string,
    return_path: copy.from,
    bytes: copy.bytes,
  });
  const smtp = await rawSmtp(scene.mx_port);
  const [address = ""] = fieldOf(copy.bytes, "CFBL-Address").split(";");
  await smtp.deliver({ from: "feedback@provider.example", to: [address], content: report });
  smtp.end();
}

const isNews = (bytes: Received["bytes"]) => /^From: .*news@news\.shop\.example/m.test(bytes.toString("latin1"));

async function live(shop: Shop, { at_ms, mails, questions, shops }: Moment): Promise<void> {
  shop.at_ms = at_ms;
  const news = mails.filter(({ kind }) => kind === "news");
  const each = mails.filter(({ kind }) => kind !== "news");
  await Promise.all([
    ...(news.length > 0 ? [make(shop.scene, "/v1/send/batch", news.map(bodyOf))] : []),
    ...each.map((mail) => send(shop, mail)),
    ...questions.map((question) => receive(shop, question)),
    ...shops.map((from) => receiveMasked(shop, from)),
  ]);
  await settle(shop.scene);
}

/** What goes to an address that bounced before is declined: that is what suppressions are for. */
async function send({ scene }: Shop, mail: Mail): Promise<void> {
  await make(scene, "/v1/send", bodyOf(mail)).catch((error: Error) => {
    if (!error.message.startsWith("POST /v1/send: 422")) throw error;
  });
}

async function receive(shop: Shop, { kind, from, to, subject, text }: Question): Promise<void> {
  const message_id = `<${shop.at_ms}.${subject.length}.${from.length}@${from.split("@")[1]?.replace(">", "")}>`;
  const thread: Record<string, string> =
    kind === "reply" && shop.question ? { "In-Reply-To": shop.question, References: shop.question } : {};
  if (subject === "Where is my parcel?") shop.question = message_id;
  const content = kind === "spam" ? SPAMMY : text;
  await deliver(shop.scene, {
    at_ms: shop.at_ms,
    from,
    to,
    content,
    headers: { Subject: subject, "Message-ID": message_id, ...thread },
  });
}

async function receiveMasked({ scene, masked, day, at_ms }: Shop, from: string): Promise<void> {
  const { alias, reply } = masked[day % masked.length] as Shop["masked"][0];
  await deliver(scene, { at_ms, from, to: alias, content: "News for you.", headers: { Subject: "News for you" } });
  if (from === SHOPS[0] && day % 3 === 0) {
    const mailbox = alias.startsWith("ines") ? "ines.brandt@home.example" : "jonas.weber@home.example";
    await deliver(scene, {
      at_ms,
      from: mailbox,
      to: reply,
      content: "Thank you.",
      headers: { Subject: "Re: News for you" },
    });
  }
}

type Arriving = { at_ms: number; from: string; to: string; content: string; headers: Record<string, string> };

/** By SMTP, as everybody's mail comes. */
async function deliver(scene: Scene, { at_ms, from, to, content, headers }: Arriving): Promise<void> {
  const date = new Date(at_ms).toUTCString().replace("GMT", "+0000");
  const head = Object.entries({ From: from, To: to, Date: date, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const smtp = await rawSmtp(scene.mx_port);
  try {
    const envelope = /<(.+)>/.exec(from)?.[1] ?? from;
    await smtp.deliver({ from: envelope, to: [to], content: `${head.join("")}\r\n${content}\r\n` });
  } finally {
    smtp.end();
  }
}

/** Until nothing is under way: what is deferred waits for its time. */
async function settle(scene: Scene): Promise<void> {
  const givenUpAt = performance.now() + SETTLED_MS;
  while (performance.now() < givenUpAt) {
    const counts = await Promise.all(["queued", "sending"].map((status) => countOf(scene, status)));
    if (counts.every((count) => count === 0)) return;
    await sleep(15);
  }
}

async function countOf(scene: Scene, status: string): Promise<number> {
  const { body } = await scene.ask("GET", `/v1/emails?status=${status}&limit=1`);
  return Number(body.total);
}
