// What the addresses of a domain's pages hold. Pure.
import { dense, oneOf, type Search, text } from "./list-filters.ts";

export const GROUPINGS = ["day", "hour", "provider"] as const;
export const SPANS = [7, 30, 90] as const;
export type StatsView = { by?: (typeof GROUPINGS)[number]; days?: (typeof SPANS)[number] };

export function readStatsView(search: Search): StatsView {
  return dense({ by: oneOf(search, "by", GROUPINGS), days: SPANS.find((days) => days === search.days) });
}

export const DMARC_SPANS = [7, 30, 90, 365] as const;
export const DMARC_LISTS = ["sources", "reports"] as const;
export type DmarcView = {
  days?: (typeof DMARC_SPANS)[number];
  list?: (typeof DMARC_LISTS)[number] | "upload";
  after?: string;
};

export function readDmarcView(search: Search): DmarcView {
  return dense({
    days: DMARC_SPANS.find((days) => days === search.days),
    list: oneOf(search, "list", [...DMARC_LISTS, "upload"]),
    after: text(search, "after"),
  });
}

export const PHASE_WORDS = {
  not_started: "Not started",
  phase_1: "Phase 1",
  phase_2: "Phase 2",
  phase_3: "Phase 3",
  phase_4: "Phase 4",
  warmed: "Warmed",
} as const;

/** `98.5 %`; null: nothing to count. */
export function sayShare(share: number | null): string {
  return share === null ? "–" : `${(share * 100).toFixed(1)} %`;
}

export function sayNumber(count: number | null): string {
  return count === null ? "no limit" : count.toLocaleString("en");
}
