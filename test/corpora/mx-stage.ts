// Third-party mail over real SMTP: a Postern process with `mx`, `hooks` and `api`, a name server that answers as each case
// says, and an HTTPS receiver of its `email.received` events. A case's connecting address comes by the PROXY protocol.
// What SMTP must refuse (a bare CR, a name that is no HELO) is refused, and then goes in through simulate; any other
// refusal is one.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import type { DnsServer } from "../support/dns-server.ts";
import { ask, type PosternProcess, type Posterns } from "../support/postern-process.ts";
import { rawSmtp } from "../support/raw-smtp.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import type { WebhookSink } from "../support/webhook-sink.ts";
import { answerTo } from "./case-files.ts";

export type Delivery = {
  bytes: Buffer;
  remote_ip?: string;
  helo?: string;
  mail_from?: string;
  recipient?: string;
};

/** `ms`: from the final dot to the event. `refused`: what SMTP rightly answered, when the mail had to come by HTTP. */
export type Arrival = {
  kind: "arrived";
  id: string;
  // biome-ignore lint/suspicious/noExplicitAny: events are looked into freely; the expectations are the check
  event: any;
  is_utf8: boolean;
  ms: number;
  refused: string | null;
};
/** Or taken, and no event came. `is_due`: SMTP must refuse these bytes, and HTTP cannot carry them either (NUL). */
export type Refusal = { kind: "refused"; answer: string; is_due: boolean };

export type MxStage = {
  dns: DnsServer;
  settings: Posterns;
  postern: PosternProcess;
  domain_id: string;
  /** Delivers and waits for the event. */
  deliver(delivery: Delivery): Promise<Arrival | Refusal>;
  /** Over SMTP only, to any recipient; the last answer. */
  send(delivery: Delivery): Promise<{ code: number; text: string }>;
  /** A body of the API as it is. */
  download(path: string): Promise<Buffer>;
  ask(method: string, path: string, body?: unknown): ReturnType<typeof ask>;
  /** Moves the clock of the running process to this moment; null is today. */
  moveTime(ms: number | null): Promise<void>;
  /** The most memory that the process has had, in bytes; null where the system does not tell. */
  peakBytes(): number | null;
  /** From now on the peak is counted again. */
  forgetPeak(): void;
  close(): Promise<void>;
};

export const RECIPIENT = "cases@corpus-in.example";
/** TEST-NET-3 (RFC 5737): for cases that name no client. */
export const SOME_CLIENT = "203.0.113.250";
const DOMAIN = "corpus-in.example";
/** RFC 5321 §2.3.8, §4.1.1.4. */
const UNCARRIED = /^554 5\.[56]\.\d .*\b(?:CR|LF|NUL)\b/;
/** Why a refusal that is due is no failure. */
export const NOT_CARRIED =
  "refused at the door: SMTP carries no NUL and no bare CR (RFC 5321 §2.3.8, §4.1.2), and servers that read them differently can be tricked";
const ANSWER_WITHIN_MS = 60_000;
const EVENT_WITHIN_MS = 20_000;
const ROLES = ["api", "mx", "hooks"];
/** So that names that do not answer cost a case a second or two. */
const DNS_TIMEOUT_MS = "700";

type Received = { event: unknown; is_utf8: boolean; at: number };
/** Null: nothing came. */
type Inbox = { take(id: string): Promise<Received | null> };

let shared: Promise<MxStage> | null = null;

/** The stage that the corpora of a run share; `closeMxStage` ends it. */
export function mxStage(): Promise<MxStage> {
  shared ??= setMxStage();
  return shared;
}

/** Ends the shared stage, if there is one. One that could not be set has said so to those who asked for it. */
export async function closeMxStage(): Promise<void> {
  const stage = await shared?.catch(() => null);
  shared = null;
  await stage?.close();
}

/** A scene with an alias that goes to the receiver and nobody who judges spam; what was begun is undone when it fails. */
async function setMxStage(): Promise<MxStage> {
  const scene = await setScene({
    env: { POSTERN_PROXY_PROTOCOL_FROM: "127.0.0.1", POSTERN_TESTING_DNS_TIMEOUT_MS: DNS_TIMEOUT_MS },
  });
  try {
    return await startOn(scene);
  } catch (error) {
    await scene.close();
    throw error;
  }
}

async function startOn(scene: Scene): Promise<MxStage> {
  const postern = await scene.start(ROLES);
  const domain_id = await furnish(scene);
  const inbox = receiveEvents(scene.receiver);
  return {
    ...{ dns: scene.dns, settings: scene, domain_id, postern },
    deliver: (delivery) => deliver(scene, inbox, delivery),
    send: (delivery) => send(scene, delivery),
    download: (path) => download(scene, path),
    ask: scene.ask,
    moveTime: (ms) => scene.moveClock(ms === null ? 0 : ms - Date.now()),
    peakBytes: () => peakBytes(postern.pid),
    forgetPeak: () => forgetPeak(postern.pid),
    close: scene.close,
  };
}

async function furnish(scene: Scene): Promise<string> {
  const { id } = await addVerifiedDomain(scene, scene.dns, DOMAIN, { type: "inbound" });
  await expectMade(scene.ask("POST", "/v1/aliases", { domain_id: id, local_part: RECIPIENT.split("@")[0] }));
  await expectMade(scene.ask("POST", "/v1/webhooks", { url: `${scene.receiver.url}/in`, domain_id: id }));
  // Judged as spam, a case would lie in quarantine, without its event.
  const spam = await scene.ask("PUT", `/v1/domains/${id}/spam`, { enabled: false });
  if (spam.status !== 200 && spam.status !== 404) throw new Error(JSON.stringify(spam));
  return id;
}

async function expectMade(asked: ReturnType<typeof ask>): Promise<void> {
  const { status, body } = await asked;
  if (status !== 201) throw new Error(`the stage could not be set: ${status} ${JSON.stringify(body)}`);
}

// VmHWM of Linux: the high-water mark of the resident set.
function peakBytes(pid: number): number | null {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kib === undefined ? null : Number(kib) * 1024;
  } catch {
    return null;
  }
}

/** proc(5): 5 resets the high-water mark. */
function forgetPeak(pid: number): void {
  if (existsSync(`/proc/${pid}/clear_refs`)) writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

async function download(settings: Posterns, path: string): Promise<Buffer> {
  const headers = { authorization: `Bearer ${settings.live_key}` };
  const response = await fetch(settings.base_url + path, { headers });
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return Buffer.from(await response.arrayBuffer());
}

// --- events ------------------------------------------------------------------------------------------------------------

function receiveEvents(sink: WebhookSink): Inbox {
  const here = new Map<string, Received>();
  const awaited = new Map<string, (received: Received) => void>();
  sink.respond(({ body }) => {
    const received = readEvent(body);
    const id = String((received.event as { email_id?: unknown }).email_id);
    const take = awaited.get(id);
    if (take) take(received);
    else here.set(id, received);
    sink.requests.length = 0;
    return { status: 200 };
  });
  return {
    async take(id) {
      const known = here.get(id);
      here.delete(id);
      if (known) return known;
      const coming = Promise.withResolvers<Received | null>();
      const timer = setTimeout(() => coming.resolve(null), EVENT_WITHIN_MS);
      awaited.set(id, coming.resolve);
      return coming.promise.finally(() => {
        clearTimeout(timer);
        awaited.delete(id);
      });
    },
  };
}

function readEvent(body: Buffer): Received {
  let isUtf8 = true;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    isUtf8 = false;
  }
  const event: unknown = JSON.parse(body.toString());
  return {
    event,
    is_utf8: isUtf8 && body.toString().isWellFormed() && !hasLoneSurrogate(event),
    at: performance.now(),
  };
}

/** An escape like \ud800 is valid JSON and no valid text. */
function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some(hasLoneSurrogate);
}

// --- deliveries ----------------------------------------------------------------------------------------------------------

async function deliver(scene: Scene, inbox: Inbox, delivery: Delivery): Promise<Arrival | Refusal> {
  const { code, text, dotted_at } = await send(scene, delivery);
  const id = /taken as (\S+)/.exec(text)?.[1];
  const due = refusalDue(delivery);
  if (code === 250 && id && due === null) return arrival(scene, inbox, { id, at: dotted_at, refused: null });
  if (!due?.test(text)) return { kind: "refused", answer: due ? `${text}, not ${due}` : text, is_due: false };
  const simulated = await simulate(scene, delivery);
  if (simulated === null) return { kind: "refused", answer: text, is_due: delivery.bytes.includes(0) };
  return arrival(scene, inbox, { ...simulated, refused: text });
}

/** What SMTP has to answer to a delivery that it cannot carry; null when it can. */
function refusalDue({ bytes, helo = "x", mail_from = "" }: Delivery): RegExp | null {
  // Spaces within are taken: clients give such names, and RFC 7208's suite has them.
  if (!/^[^\s\x00-\x20\x7f](?:[^\s\x00-\x1f\x7f]| )*$/.test(helo)) return /^501 /;
  if (/[\x00-\x1f\x7f]/.test(mail_from)) return /^50[01] /;
  return answerTo(bytes) === "554" ? UNCARRIED : null;
}

type Taken = { id: string; at: number; refused: string | null };

async function arrival(scene: Scene, inbox: Inbox, { id, at, refused }: Taken): Promise<Arrival | Refusal> {
  const received = await inbox.take(id);
  if (received) {
    return { kind: "arrived", id, event: received.event, is_utf8: received.is_utf8, ms: received.at - at, refused };
  }
  const { body } = await scene.ask("GET", `/v1/inbound-emails/${id}`);
  const { status, reason, spam } = (body.email ?? {}) as Record<string, unknown>;
  return { kind: "refused", answer: `no event, but ${JSON.stringify({ status, reason, spam })}`, is_due: false };
}

async function send({ mx_port }: Scene, delivery: Delivery) {
  const { bytes, helo = "client.invalid", mail_from = "", recipient = RECIPIENT } = delivery;
  const smtp = await rawSmtp(mx_port);
  try {
    smtp.write(proxyLine(delivery.remote_ip ?? SOME_CLIENT));
    let answer = await smtp.reply(ANSWER_WITHIN_MS);
    const smtputf8 = /[^\x00-\x7f]/.test(mail_from) ? " SMTPUTF8" : "";
    const commands = [
      `EHLO ${helo}`,
      `MAIL FROM:<${onTheWire(mail_from)}>${smtputf8}`,
      `RCPT TO:<${recipient}>`,
      "DATA",
    ];
    for (const command of commands) {
      if (answer.code < 400) answer = await smtp.ask(command);
    }
    const dotted_at = performance.now();
    if (answer.code === 354) {
      smtp.write(dotStuffed(bytes));
      answer = await smtp.reply(ANSWER_WITHIN_MS);
    }
    return { code: answer.code, text: answer.text, dotted_at };
  } finally {
    smtp.destroy();
  }
}

/** RFC 5321 §4.1.2: a local part that is empty or has a space is written in quotes. */
function onTheWire(address: string): string {
  const [, local, domain] = /^([^"]*)(@[^@]*)$/s.exec(address) ?? [];
  return local === undefined || (local !== "" && !local.includes(" ")) ? address : `"${local}"${domain}`;
}

function proxyLine(ip: string): string {
  const [family, to] = isIP(ip) === 6 ? ["TCP6", "2001:db8::25"] : ["TCP4", "192.0.2.25"];
  return `PROXY ${family} ${ip} ${to} 40000 25\r\n`;
}

function dotStuffed(bytes: Buffer): Buffer {
  const text = bytes.toString("latin1").replace(/(^|\r\n)\./g, "$1..");
  return Buffer.from(`${text}${text.endsWith("\r\n") ? "" : "\r\n"}.\r\n`, "latin1");
}

async function simulate(settings: Posterns, delivery: Delivery): Promise<{ id: string; at: number } | null> {
  const { bytes, remote_ip = SOME_CLIENT, helo, mail_from = "", recipient = RECIPIENT } = delivery;
  const at = performance.now();
  const { body } = await ask({ ...settings, live_key: settings.test_key }, "POST", "/v1/inbound-emails/simulate", {
    to: recipient,
    envelope_from: mail_from,
    raw_base64: bytes.toString("base64"),
    remote_ip,
    ...(helo ? { helo } : {}),
  });
  const [reply] = (body.results ?? []) as { email_id: string | null }[];
  return reply?.email_id ? { id: reply.email_id, at } : null;
}
