// Mail that comes in while something is done to the service: clients try again what was not answered, as mail servers do.
// Everything that got its 250 is there afterwards, whole, once, processed and reported by its webhook. A second copy is
// allowed only where the connection broke between the final dot and the answer (RFC 1047), or where the answer there was
// 451: the process lost its database in the middle of the commit, and asked whether it was done too early
// (src/inbound/receive/accept.ts). Not here: what is done to it.
import { join } from "node:path";
import { apiOf, ask, type Posterns } from "../support/postern-process.ts";
import { type RawSmtp, rawSmtp } from "../support/raw-smtp.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { ageLeases } from "./drain.ts";
import { sleep } from "./load.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import type { Stage } from "./stage.ts";

const AGAIN_MS = 100;
/** Where a server says "later", on the same connection: so many at once would pass for an attack. */
const LATER_MS = 300;
/** As long as the other load goes on (load.ts): a machine with twenty other things to do starts a killed server slowly. */
const GIVE_UP_MS = 300_000;
const DOMAIN = "in.example";
const LOCAL_PART = "orders";
/** Every so many mails one is larger than what stays in the database's rows. */
const LARGE_EVERY = 50;
const LARGE_LINES = 5_500;
const LOOK_MS = 100;
const IDLE_MS = 1_500;
const STANDSTILL_MS = 60_000;
/** Of the small mails of a round; the large ones are all compared. */
const COMPARED = 50;
/** What says that it cannot be taken now (RFC 5321 §4.2.3): there is no room; a part of Postern does not answer. */
const NO_ROOM = 452;
const NOT_NOW = 451;
const BUSY = 421;

type Answered = { n: number; id: string };

export type MailIn = {
  name: string;
  recipient: string;
  /** Of the servers that take it: where one does not answer, the next is asked. */
  ports: number[];
  /** At least so many. */
  count: number;
  connections: number;
  /** That each connection waits between two mails. */
  pause_ms: number;
  recorder: Recorder;
  next: number;
  answered: Answered[];
  /** Mails that may be there although their final dot got no 250: the connection broke, or it got 451. */
  doubted: Set<number>;
  /** Replies 452. */
  no_room: number;
  /** Replies 451. */
  put_off: number;
};

export type ReceiveVerdict = {
  acknowledged: number;
  lost: number;
  /** Stored, but not as it was sent. */
  damaged: number;
  duplicates: number;
  /** Those whose client had reason to send again. */
  flagged: number;
  not_processed: number;
  webhooks_missing: number;
  /** E-mails with more than one event. */
  events_twice: number;
  /** Replies 452: there is no room. */
  no_room: number;
  /** Replies 451: the database or the store of large bodies does not answer. */
  put_off: number;
  /** Processes that ended by themselves. */
  died: number;
  ok: boolean;
};

/** A domain that receives, its alias and its webhook, and the process that takes its mail. */
export async function startReceiving(stage: Stage): Promise<void> {
  await addReceivingDomain(stage, stage.settings, DOMAIN);
  await stage.start("mx");
}

/** A domain that receives, its alias and its webhook, for the organization of these settings; answers the alias. */
export async function addReceivingDomain(
  { dns, receiver }: Pick<Stage, "dns" | "receiver">,
  settings: Pick<Posterns, "base_url" | "live_key">,
  domain: string,
): Promise<string> {
  const { id: domain_id } = await addVerifiedDomain(apiOf(settings), dns, domain, { type: "inbound" });
  for (const [path, body] of [
    ["/v1/aliases", { domain_id, local_part: LOCAL_PART }],
    ["/v1/webhooks", { url: `${receiver.url}/in`, domain_id }],
  ] as const) {
    const made = await ask(settings, "POST", path, body);
    if (made.status !== 201) throw new Error(`${path}: ${JSON.stringify(made.body)}`);
  }
  return `${LOCAL_PART}@${domain}`;
}

type Load = Pick<MailIn, "name" | "count" | "connections" | "pause_ms"> & Partial<Pick<MailIn, "recipient" | "ports">>;

/** A load of mails that were not sent yet; by default to the stage's one alias and server. */
export function mailIn(
  stage: Pick<Stage, "dir" | "settings">,
  {
    name,
    count,
    connections,
    pause_ms,
    recipient = `${LOCAL_PART}@${DOMAIN}`,
    ports = [Number(stage.settings.env.POSTERN_MX?.split(":")[1])],
  }: Load,
): MailIn {
  const recorder = startRecorder(join(stage.dir, `received ${name}.jsonl`));
  return {
    name,
    recipient,
    ports,
    count,
    connections,
    pause_ms,
    recorder,
    next: 0,
    answered: [],
    doubted: new Set(),
    no_room: 0,
    put_off: 0,
  };
}

/** Sends them, and on while `isGoing`; resolves when each that was begun has its 250. */
export async function sendMailIn(load: MailIn, isGoing: () => boolean = () => false): Promise<void> {
  async function work(): Promise<void> {
    let smtp: RawSmtp | null = null;
    while (load.next < load.count || isGoing()) {
      smtp = await deliverOne(smtp, load, load.next++);
      await sleep(load.pause_ms);
    }
    smtp?.destroy();
  }
  await Promise.all(Array.from({ length: load.connections }, work));
}

/** Tries until the mail has its 250, over this connection and then others; gives the last one. */
async function deliverOne(given: RawSmtp | null, load: MailIn, n: number): Promise<RawSmtp | null> {
  let smtp = given;
  const until = performance.now() + GIVE_UP_MS;
  for (let turn = n; performance.now() < until; turn += 1) {
    smtp ??= await connect(load.ports[turn % load.ports.length] as number);
    const reported = smtp === null ? "broken" : await deliver(smtp, load, n);
    if (typeof reported === "object") {
      await load.recorder.keep({ key: subjectOf(load, n), id: reported.id, message_id: subjectOf(load, n) });
      load.answered.push({ n, id: reported.id });
      return smtp;
    }
    if (reported === "broken") {
      smtp?.destroy();
      smtp = null;
    }
    await sleep(reported === "later" ? LATER_MS : AGAIN_MS);
  }
  throw new Error(`nobody took mail ${n} for five minutes`);
}

async function connect(port: number): Promise<RawSmtp | null> {
  try {
    const smtp = await rawSmtp(port);
    await smtp.reply();
    await smtp.ask("EHLO client.example");
    return smtp;
  } catch {
    return null;
  }
}

/** The id that the 250 gave; "later": the connection can be used again. */
async function deliver(smtp: RawSmtp, load: MailIn, n: number): Promise<{ id: string } | "later" | "broken"> {
  let isDotted = false;
  try {
    for (const command of ["MAIL FROM:<a@client.example>", `RCPT TO:<${load.recipient}>`, "DATA"]) {
      const { code } = await smtp.ask(command);
      if (code >= 400) return await putOff(smtp, load, code);
    }
    isDotted = true;
    smtp.write(`${contentOf(load, n)}.\r\n`);
    const { code, text } = await smtp.reply();
    if (code === NOT_NOW) load.doubted.add(n);
    const id = code === 250 ? /taken as (\S+)/.exec(text)?.[1] : undefined;
    return id === undefined ? await putOff(smtp, load, code) : { id };
  } catch {
    // Whether it was taken nobody knows: it is sent again.
    if (isDotted) load.doubted.add(n);
    return "broken";
  }
}

async function putOff(smtp: RawSmtp, load: MailIn, code: number): Promise<"later" | "broken"> {
  if (code === NO_ROOM) load.no_room += 1;
  if (code === NOT_NOW) load.put_off += 1;
  if (code === BUSY) return "broken";
  return (await smtp.ask("RSET")).code === 250 ? "later" : "broken";
}

function subjectOf(load: MailIn, n: number): string {
  return `${load.name}-${n}`;
}

function contentOf(load: MailIn, n: number): string {
  const lines = n % LARGE_EVERY === 0 ? LARGE_LINES : 5 + (n % 60);
  const body = `This is line of mail ${n}, which is as good as any other.\r\n`.repeat(lines);
  return `From: a@client.example\r\nTo: ${load.recipient}\r\nSubject: ${subjectOf(load, n)}\r\n\r\n${body}`;
}

type Left = { mails: number; hooks: number; wait_s: number | null };

/** Until nothing waits to be processed or reported; what waits for a later time gets it. Throws when nothing moves. */
export async function drainMailIn(stage: Stage): Promise<void> {
  let last = "";
  let movedAt = performance.now();
  for (;;) {
    const left = await whatIsLeft(stage);
    if (left.mails === 0 && left.hooks === 0) return;
    const now = JSON.stringify([left.mails, left.hooks, stage.receiver.requests.length]);
    if (now !== last) movedAt = performance.now();
    last = now;
    if (performance.now() - movedAt > STANDSTILL_MS) throw new Error(`nothing moves: ${JSON.stringify(left)}`);
    if (performance.now() - movedAt > IDLE_MS) await hurry(stage, left);
    await sleep(LOOK_MS);
  }
}

async function whatIsLeft(stage: Stage): Promise<Left> {
  const [row] = await stage.rows<{ mails: number; hooks: number; last_ms: number | null }>(
    `select (select count(*) from inbound_queue)::int as mails, (select count(*) from webhook_queue)::int as hooks,
            extract(epoch from greatest((select max(next_attempt_at) from inbound_queue),
                                        (select max(next_attempt_at) from webhook_queue)))::float8 * 1000 as last_ms`,
  );
  const { mails = 0, hooks = 0, last_ms = null } = row ?? {};
  return { mails, hooks, wait_s: last_ms === null ? null : (last_ms - stage.now()) / 1000 };
}

/** What waits for a later time gets it; leases of the dead are by the database's clock, which nobody moves: they are aged. */
async function hurry(stage: Stage, { wait_s }: Left): Promise<void> {
  if (wait_s !== null && wait_s > 0) stage.advance(Math.ceil(wait_s) + 1);
  for (const table of ["inbound_queue", "webhook_queue"] as const) await ageLeases(stage, table);
}

type Row = { id: string; subject: string | null; status: string };

/** Compares what was answered with what is there and what the receiver got. */
export async function judgeMailIn(stage: Stage, load: MailIn): Promise<ReceiveVerdict> {
  const rows = await stage.rows<Row>("select id, subject, status from inbound_email where subject like $1 || '-%'", [
    load.name,
  ]);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const copies = Map.groupBy(rows, ({ subject }) => subject);
  const events = eventsByMail(stage);
  const found = { lost: 0, duplicates: 0, flagged: 0, not_processed: 0, webhooks_missing: 0 };
  for (const { n, id } of load.answered) {
    const row = byId.get(id);
    if (!row) found.lost += 1;
    else if (row.status !== "delivered") found.not_processed += 1;
    if (!events.has(id)) found.webhooks_missing += 1;
    const tooMany = Math.max(0, (copies.get(subjectOf(load, n))?.length ?? 0) - 1);
    found.duplicates += tooMany;
    if (load.doubted.has(n)) found.flagged += tooMany;
  }
  const damaged = await countDamaged(stage, load);
  const events_twice = [...events.values()].filter((ids) => ids.size > 1).length;
  const died = stage.died.length;
  const { lost, duplicates, flagged, not_processed, webhooks_missing } = found;
  const isWhole = lost + damaged + not_processed + webhooks_missing + events_twice + died === 0;
  const acknowledged = load.answered.length;
  const ok = isWhole && duplicates === flagged && acknowledged === load.next && acknowledged > 0;
  const { no_room, put_off } = load;
  return { acknowledged, ...found, damaged, events_twice, no_room, put_off, died, ok };
}

/** The ids of the events of each mail that the receiver got. */
function eventsByMail(stage: Stage): Map<string, Set<string>> {
  const noted = new Map<string, Set<string>>();
  for (const { body, headers } of stage.receiver.requests) {
    const { event, email_id } = JSON.parse(body.toString()) as Record<string, string>;
    if (event !== "email.received" || !email_id) continue;
    noted.set(email_id, (noted.get(email_id) ?? new Set()).add(String(headers["x-service-event-id"])));
  }
  return noted;
}

async function countDamaged(stage: Stage, load: MailIn): Promise<number> {
  const { base_url, live_key } = stage.settings;
  const chosen = load.answered.filter(({ n }, at) => n % LARGE_EVERY === 0 || at < COMPARED);
  let damaged = 0;
  for (const { n, id } of chosen) {
    const response = await fetch(`${base_url}/v1/inbound-emails/${id}/raw`, {
      headers: { authorization: `Bearer ${live_key}` },
    });
    const isSame = response.status === 200 && (await response.text()).endsWith(contentOf(load, n));
    if (!isSame) damaged += 1;
  }
  return damaged;
}

/** The sum of several rounds; `ok` when each was. */
export function sumUpMailIn(rounds: ReceiveVerdict[]): ReceiveVerdict {
  const sum = (name: Exclude<keyof ReceiveVerdict, "ok">) => rounds.reduce((total, round) => total + round[name], 0);
  return {
    acknowledged: sum("acknowledged"),
    lost: sum("lost"),
    damaged: sum("damaged"),
    duplicates: sum("duplicates"),
    flagged: sum("flagged"),
    not_processed: sum("not_processed"),
    webhooks_missing: sum("webhooks_missing"),
    events_twice: sum("events_twice"),
    no_room: sum("no_room"),
    put_off: sum("put_off"),
    died: sum("died"),
    ok: rounds.length > 0 && rounds.every(({ ok }) => ok),
  };
}
