// What came of TLS, counted by recipient domain and policy, for reports to those domains (RFC 8460). Counts gather in
// memory and are added every few seconds in one statement. Not here: making and sending the reports
// (tls-reports/).
import { createHash } from "node:crypto";
import type { World } from "../../platform/world.ts";
import * as queries from "./policy-queries.ts";

/** `success`, or why not, in the words of RFC 8460 §4.3. */
export type TlsResult =
  | "success"
  | "starttls-not-supported"
  | "certificate-host-mismatch"
  | "certificate-expired"
  | "certificate-not-trusted"
  | "validation-failure"
  | "tlsa-invalid"
  | "dnssec-invalid"
  | "dane-required"
  | "sts-policy-fetch-error"
  | "sts-policy-invalid"
  | "sts-webpki-invalid";

/** The policy a session was held against. `domain`: the recipient domain, or the TLSA base domain. */
export type PolicySeen = { type: "tlsa" | "sts" | "no-policy-found"; domain: string; strings: string[] };

export type TlsNote = {
  domain: string;
  policy: PolicySeen;
  result: TlsResult;
  mx_host: string;
  mx_ip: string;
  source_ip: string | null;
  detail: string | null;
};

export type TlsResults = {
  /** Counts one session (or one that was not made). */
  note(note: TlsNote): void;
  /** Writes what is gathered. */
  flush(): Promise<void>;
  stop(): Promise<void>;
};

const FLUSH_EVERY_MS = 2_000;
/** Beyond this many different counts before a flush, further new ones are dropped: it is statistics. */
const COUNTS_MAX = 20_000;
const DETAIL_LENGTH_MAX = 300;
const KEPT_MS = 35 * 86_400_000;
const SWEEP_ROWS_MAX = 5_000;

type Count = queries.ResultCount & { policy: PolicySeen };

/** An empty gatherer with its timer. */
export function gatherTlsResults(world: Pick<World, "db" | "clock" | "log">): TlsResults {
  let counts = new Map<string, Count>();
  const hashes = new WeakMap<PolicySeen, Buffer>();

  function note(seen: TlsNote): void {
    const hash = hashes.get(seen.policy) ?? hashOf(seen.policy);
    hashes.set(seen.policy, hash);
    const count = toCount(seen, hash, world.clock.now());
    const key = [count.day, count.domain, hash.toString("base64"), count.result, count.mx_host, count.mx_ip].join(" ");
    const known = counts.get(`${key} ${count.source_ip}`);
    if (known) {
      known.sessions += 1;
      known.detail = count.detail ?? known.detail;
    } else if (counts.size < COUNTS_MAX) counts.set(`${key} ${count.source_ip}`, count);
  }

  async function flush(): Promise<void> {
    const gathered = [...counts.values()];
    counts = new Map();
    if (gathered.length === 0) return;
    const texts = new Map(gathered.map((count) => [count.policy_hash.toString("base64"), toText(count)]));
    await queries.storePolicyTexts(world.db, [...texts.values()]);
    await queries.addTlsResults(world.db, gathered);
  }

  // Deliberate: counts of a failed flush are not kept. They are statistics, and memory is for mail.
  const flushOrSay = () => flush().catch((err) => world.log.warn({ err }, "TLS results could not be recorded"));
  const timer = setInterval(flushOrSay, FLUSH_EVERY_MS);
  timer.unref();
  return {
    note,
    flush,
    async stop() {
      clearInterval(timer);
      await flushOrSay();
    },
  };
}

function hashOf(policy: PolicySeen): Buffer {
  return createHash("sha256")
    .update(JSON.stringify([policy.type, policy.domain, policy.strings]))
    .digest();
}

function toCount(seen: TlsNote, policy_hash: Buffer, nowMs: number): Count {
  const isSuccess = seen.result === "success";
  return {
    day: dayOf(nowMs),
    domain: seen.domain,
    policy: seen.policy,
    policy_hash,
    result: seen.result,
    mx_host: isSuccess ? "" : seen.mx_host,
    mx_ip: isSuccess ? "" : seen.mx_ip,
    source_ip: isSuccess ? "" : (seen.source_ip ?? ""),
    sessions: 1,
    detail: seen.detail?.slice(0, DETAIL_LENGTH_MAX) ?? null,
  };
}

function toText({ policy, policy_hash, day }: Count): queries.PolicyText {
  return {
    policy_hash,
    policy_type: policy.type,
    policy_domain: policy.domain,
    policy_strings: policy.strings,
    day,
  };
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Drops results that no report can be about any more; bounded, the rest next time. */
export async function sweepTlsResults(world: Pick<World, "db" | "clock">): Promise<void> {
  const before = dayOf(world.clock.now() - KEPT_MS);
  await queries.dropOldTlsResults(world.db, before, SWEEP_ROWS_MAX);
  await queries.dropOldPolicyTexts(world.db, before, SWEEP_ROWS_MAX);
}
