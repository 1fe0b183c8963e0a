// Which of several e-mails still fit into their windows, in order: each takes what the ones before it left. Only a
// forecast; the accepting statement decides, and when others were quicker the e-mails are fitted again.
import type { Refusal } from "../../platform/refusal.ts";
import { overAllowance } from "../prepare/allowances.ts";
import type { Allowance, Prepared, UsedReader } from "../types.ts";

export type Fit = {
  /** For each e-mail, in order: null, or why it must wait. */
  refusals: (Refusal | null)[];
  /** The month's quota with the fitting e-mails in it; zeros where nothing is counted (test keys). */
  quota: { quota_limit: number; quota_used: number; quota_remaining: number };
};

/** Fits the e-mails of one organization into what is left of their windows now. */
export async function fit(used: UsedReader, items: readonly Prepared[]): Promise<Fit> {
  const windows = new Map(items.flatMap(({ allowances }) => allowances).map((window) => [nameOf(window), window]));
  const orgId = items[0]?.org_id ?? "";
  const taken = new Map<string, number>();
  await Promise.all([...windows].map(async ([name, window]) => taken.set(name, await used(orgId, window))));
  const refusals = items.map((item) => take(taken, item));
  const month = [...windows.values()].find(({ kind }) => kind === "monthly_quota");
  return { refusals, quota: quotaOf(month, month ? (taken.get(nameOf(month)) ?? 0) : 0) };
}

function nameOf({ scope_id, kind, starts_at }: Allowance): string {
  return `${scope_id}|${kind}|${starts_at.getTime()}`;
}

function take(taken: Map<string, number>, { allowances, counted: count }: Prepared): Refusal | null {
  if (count === 0) return null;
  for (const window of allowances) {
    const already = taken.get(nameOf(window)) ?? 0;
    if (already + count > window.ceiling) return overAllowance(window, already, count);
  }
  for (const window of allowances) taken.set(nameOf(window), (taken.get(nameOf(window)) ?? 0) + count);
  return null;
}

function quotaOf(month: Allowance | undefined, used: number): Fit["quota"] {
  if (!month) return { quota_limit: 0, quota_used: 0, quota_remaining: 0 };
  return { quota_limit: month.ceiling, quota_used: used, quota_remaining: Math.max(0, month.ceiling - used) };
}
