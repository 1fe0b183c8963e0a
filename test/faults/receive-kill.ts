// `receive-kill`: kill -9 of the mx process and of PostgreSQL at random points while mail comes in; clients try again what
// was not answered, as mail servers do. Everything that got its 250 is there afterwards, whole, processed and told of by
// its webhook. A second copy is allowed only where the connection broke between the final dot and the answer (RFC 1047).
import { apiOf, ask } from "../support/postern-process.ts";
import { type RawSmtp, rawSmtp } from "../support/raw-smtp.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { sleep } from "./load.ts";
import type { ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const MAILS = 2_000;
const CONNECTIONS = 16;
const TARGETS = ["mx", "postgres"] as const;
const AGAIN_MS = 100;
const GIVE_UP_MS = 120_000;
const DOMAIN = "in.example";
const RECIPIENT = `orders@${DOMAIN}`;
/** Every so many mails one is larger than what stays in the database's rows. */
const LARGE_EVERY = 50;
const LARGE_LINES = 5_500;
const LOOK_MS = 100;
const IDLE_MS = 1_500;
const STANDSTILL_MS = 60_000;
/** Of the small mails of a round; the large ones are all compared. */
const COMPARED = 50;

type Target = (typeof TARGETS)[number];
type Kills = Record<Target, number>;

export type ReceiveVerdict = {
  acknowledged: number;
  lost: number;
  /** Stored, but not as it was sent. */
  damaged: number;
  duplicates: number;
  /** Those whose client never got its answer. */
  flagged: number;
  not_processed: number;
  webhooks_missing: number;
  /** E-mails with more than one event. */
  events_twice: number;
  /** Processes that ended by themselves. */
  died: number;
  ok: boolean;
};

/** Runs it; `ok` when nothing that was taken is missing anywhere. */
export async function runReceiveKill(options: ScenarioOptions): Promise<ReceiveVerdict & { kills: Kills }> {
  const { rounds, seed, sends = MAILS, say } = options;
  const chance = chanceOf(seed);
  const kills: Kills = { mx: 0, postgres: 0 };
  const stage = await setStage({ roles: ["api", "hooks"] });
  try {
    await furnish(stage);
    const verdicts: ReceiveVerdict[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const load: Load = { name: `round-${round}`, count: sends, next: 0, answered: [], doubted: new Set() };
      const startedAt = performance.now();
      await Promise.all([sendAll(stage, load), killWhile(stage, { chance, kills }, load)]);
      await drain(stage);
      const verdict = await judge(stage, load);
      verdicts.push(verdict);
      say?.(`${load.name}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s ${JSON.stringify(verdict)}`);
    }
    return { ...sumUp(verdicts), kills };
  } finally {
    await stage.close();
  }
}

async function furnish(stage: Stage): Promise<void> {
  const { id: domain_id } = await addVerifiedDomain(apiOf(stage.settings), stage.dns, DOMAIN, { type: "inbound" });
  await stage.start("mx");
  for (const [path, body] of [
    ["/v1/aliases", { domain_id, local_part: RECIPIENT.split("@")[0] }],
    ["/v1/webhooks", { url: `${stage.receiver.url}/in`, domain_id }],
  ] as const) {
    const made = await ask(stage.settings, "POST", path, body);
    if (made.status !== 201) throw new Error(`${path}: ${JSON.stringify(made.body)}`);
  }
}

// --- the load ------------------------------------------------------------------------------------------------------------

type Answered = { n: number; id: string };
type Load = {
  name: string;
  count: number;
  next: number;
  answered: Answered[];
  /** Mails whose connection broke after the final dot. */
  doubted: Set<number>;
};

async function sendAll(stage: Stage, load: Load): Promise<void> {
  const port = Number(stage.settings.env.POSTERN_MX?.split(":")[1]);
  async function work(): Promise<void> {
    let smtp: RawSmtp | null = null;
    for (let n = load.next++; n < load.count; n = load.next++) {
      const until = performance.now() + GIVE_UP_MS;
      for (;;) {
        smtp ??= await connect(port);
        const id = smtp === null ? null : await deliver(smtp, load, n);
        if (id !== null) {
          await stage.recorder.keep({ key: subjectOf(load, n), id, message_id: subjectOf(load, n) });
          load.answered.push({ n, id });
          break;
        }
        if (performance.now() > until) throw new Error(`nobody took mail ${n} for two minutes`);
        smtp?.destroy();
        smtp = null;
        await sleep(AGAIN_MS);
      }
    }
    smtp?.destroy();
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
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

/** The id that the 250 told; null when there was none. */
async function deliver(smtp: RawSmtp, load: Load, n: number): Promise<string | null> {
  let isDotted = false;
  try {
    for (const command of ["MAIL FROM:<a@client.example>", `RCPT TO:<${RECIPIENT}>`, "DATA"]) {
      if ((await smtp.ask(command)).code >= 400) return null;
    }
    isDotted = true;
    smtp.write(`${contentOf(load, n)}.\r\n`);
    const { code, text } = await smtp.reply();
    return code === 250 ? (/taken as (\S+)/.exec(text)?.[1] ?? null) : null;
  } catch {
    // Whether it was taken nobody knows: it is sent again.
    if (isDotted) load.doubted.add(n);
    return null;
  }
}

function subjectOf(load: Load, n: number): string {
  return `${load.name}-${n}`;
}

function contentOf(load: Load, n: number): string {
  const lines = n % LARGE_EVERY === 0 ? LARGE_LINES : 5 + (n % 60);
  const body = `This is line of mail ${n}, which is as good as any other.\r\n`.repeat(lines);
  return `From: a@client.example\r\nTo: ${RECIPIENT}\r\nSubject: ${subjectOf(load, n)}\r\n\r\n${body}`;
}

// --- the kills -------------------------------------------------------------------------------------------------------------

async function killWhile(stage: Stage, { chance, kills }: { chance: Chance; kills: Kills }, load: Load): Promise<void> {
  const first: Target[] = chance.between(0, 1) === 0 ? ["mx", "postgres"] : ["postgres", "mx"];
  while (load.next < load.count) {
    await sleep(chance.between(300, 2_000));
    const target = first.pop() ?? chance.pick(TARGETS);
    kills[target] += 1;
    if (target === "mx") {
      await stage.kill("mx");
      await stage.start("mx");
    } else {
      process.kill(stage.postgres.pid, "SIGKILL");
      await stage.postgres.restart();
    }
  }
}

// --- draining and the verdict ----------------------------------------------------------------------------------------------

type Left = { mails: number; hooks: number; wait_s: number | null };

async function drain(stage: Stage): Promise<void> {
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
  for (const table of ["inbound_queue", "webhook_queue"]) {
    await stage.rows(`update ${table} set lease_until = lease_until - interval '1 minute' where claim_id is not null`);
  }
}

type Row = { id: string; subject: string | null; status: string };

async function judge(stage: Stage, load: Load): Promise<ReceiveVerdict> {
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
  stage.recorder.forget();
  stage.receiver.requests.length = 0;
  stage.died.length = 0;
  const { lost, duplicates, flagged, not_processed, webhooks_missing } = found;
  const isWhole = lost + damaged + not_processed + webhooks_missing + events_twice + died === 0;
  const acknowledged = load.answered.length;
  const ok = isWhole && duplicates === flagged && acknowledged === load.count;
  return { acknowledged, ...found, damaged, events_twice, died, ok };
}

/** The ids of the events of each mail that the receiver has heard of. */
function eventsByMail(stage: Stage): Map<string, Set<string>> {
  const heard = new Map<string, Set<string>>();
  for (const { body, headers } of stage.receiver.requests) {
    const { event, email_id } = JSON.parse(body.toString()) as Record<string, string>;
    if (event !== "email.received" || !email_id) continue;
    heard.set(email_id, (heard.get(email_id) ?? new Set()).add(String(headers["x-service-event-id"])));
  }
  return heard;
}

async function countDamaged(stage: Stage, load: Load): Promise<number> {
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

function sumUp(rounds: ReceiveVerdict[]): ReceiveVerdict {
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
    died: sum("died"),
    ok: rounds.length > 0 && rounds.every(({ ok }) => ok),
  };
}
