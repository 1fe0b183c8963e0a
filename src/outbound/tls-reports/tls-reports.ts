// Reports on TLS to the domains that ask for them (RFC 8460): once a UTC day is over, each domain that mail went to is asked in DNS
// whether it wants one, and gets it by mail or HTTPS. A report by mail leaves through the queue, under no TLS policy and
// uncounted (path/links.ts). Not here: counting (route/tls-results.ts), the texts (mail/tls-report/).
import { readReportRecord } from "../../mail/tls-report/record.ts";
import { type ReportAbout, writeReport, writeReportMail } from "../../mail/tls-report/write-report.ts";
import type { Tx } from "../../platform/database/db.ts";
import { startRounds, sweep } from "../../platform/process/rounds.ts";
import type { World } from "../../platform/world.ts";
import { findPause } from "../guard/guard.ts";
import * as queries from "./report-queries.ts";

type ReportWorld = Pick<World, "db" | "clock" | "random" | "resolver" | "fetch" | "config" | "log" | "metrics">;

export type OwnMail = { id: string; from_address: string; to: string; subject: string; bytes: Buffer };

/** What reports need of features to the right. */
export type ReportPorts = {
  /** True if the service's own domain is ready to send. */
  isReady(): Promise<boolean>;
  /** Queues mail of the service's own domain, signed by it; what `within` writes is committed with it. */
  queue(mails: OwnMail[], within: (tx: Tx) => Promise<unknown>): Promise<void>;
};

const EVERY_MS = 60_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** The last counts of a day are in the database a few seconds after its end, clocks of other machines allowed for. */
const SETTLED_AFTER_MS = 10 * MINUTE_MS;
/** RFC 8460 §4.1: not all at midnight. */
const SPREAD_S = 4 * 3_600;
/** RFC 8460 §5.5: tried for a day after the first time. */
const GIVEN_UP_AFTER_MS = 29 * HOUR_MS;
const LEASE_MS = 10 * MINUTE_MS;
const RETRY_MS = 15 * MINUTE_MS;
const RETRY_MS_MAX = 4 * HOUR_MS;
const BATCH = 20;
const COUNTS_MAX = 10_000;
const KEPT_MS = 3 * DAY_MS;
const SWEEP_ROWS_MAX = 5_000;
const POST_TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 16 * 1024;

/** Starts the work; `stop` ends it after the step at hand. */
export function startTlsReports(world: ReportWorld, ports: ReportPorts): { stop(): Promise<void> } {
  return startRounds(world, {
    name: "TLS reports",
    every_ms: EVERY_MS,
    round: (signal) => sendReports(world, ports, signal),
  });
}

/** One round: makes yesterday's reports due, and sends those whose time has come. */
export async function sendReports(world: ReportWorld, ports: ReportPorts, signal?: AbortSignal): Promise<void> {
  if (!world.config.tls_reports) return;
  const nowMs = world.clock.now();
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  await queries.dropOldReports(world.db, dayOf(today - KEPT_MS), SWEEP_ROWS_MAX);
  if (nowMs < today + SETTLED_AFTER_MS) return;
  await queries.planReports(world.db, { day: dayOf(today - DAY_MS), at: new Date(nowMs), spread_s: SPREAD_S });
  // A copy of a database sends nothing in the other one's name.
  if ((await findPause(world.db)) !== null || !(await ports.isReady())) return;
  await sweep(signal, () => sendBatch(world, ports));
}

async function sendBatch(world: ReportWorld, ports: ReportPorts): Promise<number> {
  const nowMs = world.clock.now();
  const at = new Date(nowMs);
  const due = await queries.claimReports(world.db, { at, lease_until: new Date(nowMs + LEASE_MS), limit: BATCH });
  await Promise.all(
    due.map((report) =>
      sendOne(world, ports, report).catch((err) =>
        world.log.warn({ err, domain: report.domain }, "a TLS report could not be sent; it is tried again"),
      ),
    ),
  );
  return due.length;
}

async function sendOne(world: ReportWorld, ports: ReportPorts, report: queries.DueReport): Promise<void> {
  const about = describe(world, report);
  if (world.clock.now() > about.end_ms + GIVEN_UP_AFTER_MS) return end(world, report);
  if (report.urls !== null) return post(world, report, { about, urls: report.urls });
  const answer = await world.resolver.txt(`_smtp._tls.${report.domain}`, { who: "TLS reports" });
  if (answer.kind === "found" || answer.kind === "absent") {
    const wanted = answer.kind === "found" ? readReportRecord(answer.records) : null;
    if (wanted === null) return end(world, report);
    await mail(world, ports, report, { about, ...wanted });
    return post(world, report, { about, urls: wanted.urls });
  }
  await later(world, report, null);
}

function describe({ config }: Pick<World, "config">, { day, domain }: queries.DueReport): ReportAbout {
  const begin_ms = Date.parse(`${day}T00:00:00Z`);
  return {
    domain,
    submitter: config.masked_domain,
    organization_name: config.hostname,
    contact: `postmaster@${config.hostname}`,
    begin_ms,
    end_ms: begin_ms + DAY_MS,
  };
}

async function packed(world: ReportWorld, report: queries.DueReport, about: ReportAbout): Promise<Buffer> {
  return writeReport(about, await queries.countsOf(world.db, report, COUNTS_MAX));
}

type Wanted = { about: ReportAbout; addresses: string[]; urls: string[] };

/** Queues it to each address; that this was done stands in the row from the same moment on. */
async function mail(
  world: ReportWorld,
  ports: ReportPorts,
  report: queries.DueReport,
  { about, addresses, urls }: Wanted,
): Promise<void> {
  const bytes = await packed(world, report, about);
  const mails = addresses.map((to) => compose(world, { about, to, packed: bytes }));
  const lease = new Date(world.clock.now() + LEASE_MS);
  await ports.queue(mails, (tx) => queries.setReport(tx, report, { next_at: urls.length > 0 ? lease : null, urls }));
  count(world, "mail", "queued", mails.length);
}

function compose(world: ReportWorld, made: { about: ReportAbout; to: string; packed: Buffer }): OwnMail {
  const { about, to } = made;
  const id = world.random.uuid();
  const from = `no-reply@${about.submitter}`;
  const { subject, bytes } = writeReportMail(about, made.packed, {
    ...{ from, to, message_id: `${id}@${about.submitter}`, date: world.clock.now() },
    boundary_seed: world.random.token(24),
  });
  return { id, from_address: from, to, subject, bytes };
}

/** RFC 8460 §5.4; those that did not take it are tried again. */
async function post(
  world: ReportWorld,
  report: queries.DueReport,
  { about, urls }: Pick<Wanted, "about" | "urls">,
): Promise<void> {
  if (urls.length === 0) return;
  const body = await packed(world, report, about);
  const taken = await Promise.all(urls.map((url) => isTaken(world, url, body)));
  const left = urls.filter((_url, at) => !taken[at]);
  count(world, "https", "sent", urls.length - left.length);
  count(world, "https", "failed", left.length);
  await (left.length === 0 ? end(world, report) : later(world, report, left));
}

async function isTaken(world: ReportWorld, url: string, body: Buffer): Promise<boolean> {
  const answer = await world.fetch({
    ...{ method: "POST", url, body, timeout_ms: POST_TIMEOUT_MS },
    headers: { "content-type": "application/tlsrpt+gzip", "user-agent": "Postern" },
    ...{ response_bytes_max: ANSWER_BYTES_MAX, when_cut_short: "keep" },
  });
  if (answer.kind === "answered" && answer.status >= 200 && answer.status < 300) return true;
  const why = answer.kind === "answered" ? `the server answered ${answer.status}` : answer.reason;
  world.log.info({ host: new URL(url).host, why }, "a TLS report was not taken");
  return false;
}

function count({ metrics }: Pick<World, "metrics">, way: "mail" | "https", result: string, reports: number): void {
  const counter = metrics.counter("postern_tls_reports_total", "Reports on TLS to other domains", ["way", "result"]);
  counter.inc({ way, result }, reports);
}

async function end(world: ReportWorld, report: queries.DueReport): Promise<void> {
  await queries.setReport(world.db, report, { next_at: null, urls: [] });
}

async function later(world: ReportWorld, report: queries.DueReport, urls: string[] | null): Promise<void> {
  const waitMs = Math.min(RETRY_MS * 2 ** (report.attempts - 1), RETRY_MS_MAX);
  await queries.setReport(world.db, report, { next_at: new Date(world.clock.now() + waitMs), urls });
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
