// Which MTA-STS policy holds for a recipient domain now (RFC 8461 §3, §5.1): DNS says whether there is a newer one, HTTPS
// has it, the database remembers it until it expires. Whoever can block DNS or HTTPS for a while cannot make us forget.
// Not here: reading the texts (mail/mta-sts.ts), what follows from a policy (tls-policy.ts).

import { readStsPolicy, readStsRecord, STS_POLICY_BYTES_MAX, type StsMode } from "../../mail/mta-sts.ts";
import { coalesce } from "../../platform/fair/coalesce.ts";
import { createLru } from "../../platform/fair/lru.ts";
import { type FetchResult, failureText } from "../../platform/net/safe-fetch.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./policy-queries.ts";

export type StsWorld = Pick<World, "db" | "clock" | "resolver" | "fetch" | "log">;

export type KnownSts = { id: string; mode: StsMode; mx: string[]; max_age_s: number; expires_at: Date };

/** Why a domain's announced policy could not be had, in the words of RFC 8460 §4.3.2. */
export type StsTrouble = {
  result: "sts-policy-fetch-error" | "sts-policy-invalid" | "sts-webpki-invalid";
  detail: string;
};

/** `policy` null: none in force. `trouble` may stand beside an older policy that is still in force. */
export type StsAnswer = { policy: KnownSts | null; trouble: StsTrouble | null };

export type StsFinder = (domain: string) => Promise<StsAnswer>;

const DAY_MS = 86_400_000;
const FETCH_TIMEOUT_MS = 60_000; // RFC 8461 §3.3
/** A policy that could not be had is not asked for again this soon, so that a broken web server delays one message. */
const FAILED_FOR_MS = 3_600_000;
const FAILURES_REMEMBERED_MAX = 10_000;
/** How many policies are refreshed in a round, all at once. */
const REFRESHES_A_ROUND = 64;
const REFRESH_AGAIN_MS = 3_600_000;
const UNUSED_FOR_MS = 30 * DAY_MS;
const EXPIRED_KEPT_MS = 7 * DAY_MS;
const SWEEP_ROWS_MAX = 5_000;

/** A look-up of policies; how many at once, and to join those for one domain, is the caller's (routes.ts does both). */
export function stsFinder(world: StsWorld): StsFinder {
  const failures = createLru<{ id: string; trouble: StsTrouble; untilMs: number }>(FAILURES_REMEMBERED_MAX);
  const stored = coalesce<string, queries.StsRow>({
    keys_max: 500,
    lanes: 1,
    load: async (domains) => {
      const rows = await queries.findStsPolicies(world.db, domains);
      return new Map(rows.map((row) => [row.domain, row]));
    },
  });

  async function renew(domain: string, id: string): Promise<StsAnswer> {
    const known = failures.get(domain);
    if (known?.id === id && known.untilMs > world.clock.monotonic()) return { policy: null, trouble: known.trouble };
    const fetched = await fetchPolicy(world, domain, id);
    if ("policy" in fetched) {
      failures.delete(domain);
      return { policy: fetched.policy, trouble: null };
    }
    failures.set(domain, { id, trouble: fetched.trouble, untilMs: world.clock.monotonic() + FAILED_FOR_MS });
    return { policy: null, trouble: fetched.trouble };
  }

  return async (domain) => {
    const [texts, row] = await Promise.all([world.resolver.txt(`_mta-sts.${domain}`), stored(domain)]);
    const inForce = row && row.expires_at.getTime() > world.clock.now() ? toKnown(row) : null;
    if (inForce) noteUse(world, row as queries.StsRow);
    const record = texts.kind === "found" ? readStsRecord(texts.records) : null;
    // No record, a bad one or no answer: the known policy holds until it expires (RFC 8461 §5.1).
    if (record?.kind !== "found" || record.id === inForce?.id) return { policy: inForce, trouble: null };
    const renewed = await renew(domain, record.id);
    return { policy: renewed.policy ?? inForce, trouble: renewed.trouble };
  };
}

function toKnown(row: queries.StsRow): KnownSts {
  return { id: row.policy_id, mode: row.mode, mx: row.mx, max_age_s: row.max_age_s, expires_at: row.expires_at };
}

/** Once a day at most; that a policy is in use decides whether it is kept fresh. */
function noteUse(world: StsWorld, row: queries.StsRow): void {
  const nowMs = world.clock.now();
  if (nowMs - row.used_at.getTime() < DAY_MS) return;
  queries
    .noteStsUse(world.db, row.domain, new Date(nowMs))
    .catch((err) => world.log.warn({ err, domain: row.domain }, "the use of a TLS policy could not be noted"));
}

// --- fetching ---------------------------------------------------------------------------------------------------------

async function fetchPolicy(
  world: StsWorld,
  domain: string,
  id: string,
): Promise<{ policy: KnownSts } | { trouble: StsTrouble }> {
  const result = await world.fetch({
    method: "GET",
    url: `https://mta-sts.${domain}/.well-known/mta-sts.txt`,
    headers: { accept: "text/plain", "user-agent": "Postern" },
    timeout_ms: FETCH_TIMEOUT_MS,
    response_bytes_max: STS_POLICY_BYTES_MAX,
  });
  const text = policyText(result);
  if (typeof text !== "string") return text;
  const read = readStsPolicy(text);
  if ("defect" in read) return { trouble: { result: "sts-policy-invalid", detail: read.defect } };
  const nowMs = world.clock.now();
  const { mode, mx, max_age_s } = read.policy;
  const expires_at = new Date(nowMs + max_age_s * 1000);
  await queries.storeStsPolicy(world.db, {
    domain,
    policy_id: id,
    mode,
    mx,
    max_age_s,
    fetched_at: new Date(nowMs),
    expires_at,
    refresh_at: new Date(nowMs + Math.min(DAY_MS, (max_age_s * 1000) / 2)),
    used_at: new Date(nowMs),
  });
  return { policy: { id, mode, mx, max_age_s, expires_at } };
}

/** RFC 8461 §3.3: status 200 and no other, no redirect, and text/plain, as anybody might have put a picture there. */
function policyText(result: FetchResult): string | { trouble: StsTrouble } {
  if (result.kind === "failed") {
    const kind = result.code === "tls" ? "sts-webpki-invalid" : "sts-policy-fetch-error";
    return { trouble: { result: kind, detail: failureText(result) } };
  }
  if (result.status !== 200) {
    return { trouble: { result: "sts-policy-fetch-error", detail: `the server answered ${result.status}` } };
  }
  const type = result.headers.get("content-type") ?? "";
  if (!/^text\/plain\s*(;|$)/i.test(type)) {
    const detail = `the policy is not text/plain but ${type.slice(0, 80) || "of no type"}`;
    return { trouble: { result: "sts-policy-invalid", detail } };
  }
  return result.body.toString("utf8");
}

// --- keeping policies fresh -------------------------------------------------------------------------------------------

/** One round of the clock role: due policies are fetched long before they expire, and those long expired are forgotten. Answers how many were fetched. */
export async function refreshPolicies(world: StsWorld, signal?: AbortSignal): Promise<number> {
  const nowMs = world.clock.now();
  const due = await queries.claimStsRefresh(world.db, {
    at: new Date(nowMs),
    lease_until: new Date(nowMs + REFRESH_AGAIN_MS),
    used_since: new Date(nowMs - UNUSED_FOR_MS),
    limit: REFRESHES_A_ROUND,
  });
  const fetched = await Promise.all(due.map((row) => !signal?.aborted && refresh(world, row)));
  await queries.dropExpiredSts(world.db, new Date(nowMs - EXPIRED_KEPT_MS), SWEEP_ROWS_MAX);
  return fetched.filter(Boolean).length;
}

/** The id is asked for first: a policy stored under an older id would be fetched again at the next message. */
async function refresh(world: StsWorld, row: queries.StsRow): Promise<boolean> {
  const texts = await world.resolver.txt(`_mta-sts.${row.domain}`);
  const record = texts.kind === "found" ? readStsRecord(texts.records) : null;
  const fetched = await fetchPolicy(world, row.domain, record?.kind === "found" ? record.id : row.policy_id);
  if ("policy" in fetched) return true;
  world.log.info({ domain: row.domain, ...fetched.trouble }, "a TLS policy could not be refreshed");
  return false;
}
