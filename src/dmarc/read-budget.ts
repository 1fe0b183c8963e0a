// How much is unpacked and read of what comes by mail for a domain, in one process: its report address stands in DNS, and
// reading 100 MiB takes ten seconds of processor time whether the report is new, there already, or cut off at its end.
import { createBuckets } from "../platform/fair/buckets.ts";

const MIB = 1024 * 1024;
/**
 * How much is read for a domain in a day. As many records as it may get in a day have 150 MiB, with long results 1 GiB.
 */
const MIB_PER_DAY = 2_048;
const DAY_S = 86_400;
const DOMAINS_MAX = 10_000;

const budgets = createBuckets({ per_s: MIB_PER_DAY / DAY_S, burst: MIB_PER_DAY, names_max: DOMAINS_MAX });

/** True if so much has been read for the domain today that nothing more is. */
export function isReadEnough(domainId: string, nowMs: number): boolean {
  return budgets.isEmpty(domainId, nowMs);
}

/** Counts what was unpacked; a mail counts as one MiB at least. */
export function countRead(domainId: string, bytes: number, nowMs: number): void {
  for (let left = Math.max(1, Math.ceil(bytes / MIB)); left > 0; left -= 1) budgets.take(domainId, nowMs);
}
