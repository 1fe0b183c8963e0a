// Which windows an e-mail counts in, and what is left of them: the month's quota of the organization, and the windows
// that warming sets for the domain. Read here for an early refusal and for the figures in the answer; raised and
// enforced by the accepting statement.

import type { Account } from "../../http/http.ts";
import { isRefusedBy, type Query } from "../../platform/database/db.ts";
import { coalesce } from "../../platform/fair/coalesce.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { Allowance, UsedReader } from "../types.ts";

type Window = Pick<Allowance, "scope_id" | "kind" | "starts_at">;

/** Reads how much of a window is used; many questions share a statement. */
export function usedReader(world: Pick<World, "db">): UsedReader {
  const read = coalesce<string, number>({
    keys_max: 500,
    lanes: 1,
    load: async (names) => {
      const rows = await queries.readAllowances(world.db, names.map(parseName));
      return new Map(rows.map((row) => [nameOf(row.org_id, row), row.used]));
    },
  });
  return async (orgId, allowance) => (await read(nameOf(orgId, allowance))) ?? 0;
}

function nameOf(orgId: string, row: { scope_id: string; kind: string; starts_at: Date }): string {
  return `${orgId}|${row.scope_id}|${row.kind}|${row.starts_at.getTime()}`;
}

function parseName(name: string) {
  const [org_id = "", scope_id = "", kind = "", at = "0"] = name.split("|");
  return { org_id, scope_id, kind, starts_at: new Date(Number(at)) };
}

function endOfMonth(start: Date): Date {
  return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1));
}

/** The organization's month (UTC). */
export function monthlyQuota(account: Account, nowMs: number): Allowance {
  const now = new Date(nowMs);
  const starts_at = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
  return {
    scope_id: account.org_id,
    kind: "monthly_quota",
    starts_at,
    ceiling: account.monthly_quota,
    warming_phase: "",
    retry_after_seconds: Math.ceil((endOfMonth(starts_at).getTime() - nowMs) / 1000),
  };
}

/**
 * The window as a message of `count` recipients meets it: one that is alone in its window passes whatever their number, or a
 * young domain could never write to three people at once. The month's quota is what was paid for, and a pause is a pause.
 */
export function forMessage(window: Allowance, count: number): Allowance {
  if (window.kind === "monthly_quota" || window.ceiling === 0) return window;
  return { ...window, ceiling: Math.max(window.ceiling, count), limit: window.ceiling };
}

/** True if the database refused to count an e-mail, because a window would have passed its ceiling. */
export function isOverAllowance(error: unknown): boolean {
  return isRefusedBy(error, "allowance_not_exceeded");
}

const WINDOW_WORDS: Record<Allowance["kind"], string> = {
  monthly_quota: "the monthly quota of this organization",
  daily: "the daily limit of this domain's warming phase",
  hourly: "the hourly limit of this domain's warming phase",
  per_minute: "the limit per minute of this domain's warming phase",
};

/** The contract's 429 body for an e-mail to `count` recipients. */
export function overAllowance(allowance: Allowance, used: number, count: number): Refusal {
  return new Refusal("rate_limit_exceeded", explainFull(allowance, count), {
    retry_after_seconds: allowance.retry_after_seconds,
    body: {
      limit_type: allowance.kind,
      limit: allowance.limit ?? allowance.ceiling,
      used,
      retry_after_seconds: allowance.retry_after_seconds,
      warming_phase: allowance.warming_phase,
    },
  });
}

/** Why a message of so many recipients does not pass, and what helps. */
export function explainFull({ kind, ceiling, limit = ceiling, explanation }: Allowance, count: number): string {
  if (explanation) return explanation;
  const full = `${WINDOW_WORDS[kind]} (${limit}) is exceeded`;
  if (kind === "monthly_quota") return full;
  const alone =
    count > limit ? `; with ${count} recipients this e-mail leaves when nothing else has left in that time` : "";
  return `${full}${alone}. ${REMEDY}`;
}

const REMEDY =
  'A domain that has sent mail before needs no warming: POST /v1/domains/{id}/warming/start {"phase":"warmed"} lifts its limits';

/** How much of some windows of one organization is used; a window nobody used yet is 0. */
export async function usedOf(tx: Query, orgId: string, windows: Window[]): Promise<number[]> {
  const rows = await queries.readAllowances(
    tx,
    windows.map((window) => ({ org_id: orgId, ...window })),
  );
  const used = new Map(rows.map((row) => [nameOf(orgId, row), row.used]));
  return windows.map((window) => used.get(nameOf(orgId, window)) ?? 0);
}

/** What an organization has used of its month, which ends at `ends_at`. */
export function monthReader(world: Pick<World, "db" | "clock">) {
  return async (account: Account): Promise<{ used: number; ends_at: Date }> => {
    const quota = monthlyQuota(account, world.clock.now());
    const [used = 0] = await world.db.asOrg(account.org_id, (tx) => usedOf(tx, account.org_id, [quota]));
    return { used, ends_at: endOfMonth(quota.starts_at) };
  };
}

/** Forgets windows of domains that began before `before`. */
export async function forgetWindows(world: Pick<World, "db">, before: Date): Promise<void> {
  await queries.purgeDomainWindows(world.db, before);
}
