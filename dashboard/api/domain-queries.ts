// What the pages of one domain read.
import { queryOptions } from "@tanstack/react-query";
import { type Schemas, take, v1 } from "./client.ts";
import { LIVE_MS, PAGE_ROWS } from "./queries.ts";

const HISTORY_DAYS = 90;

export function dkimKeys(id: string) {
  return queryOptions({
    queryKey: ["domain", id, "dkim"],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}/dkim", { params: { path: { id } }, signal })),
    refetchInterval: LIVE_MS * 2,
  });
}

export function warming(id: string) {
  return queryOptions({
    queryKey: ["domain", id, "warming"],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}/warming", { params: { path: { id } }, signal })),
    refetchInterval: LIVE_MS * 2,
  });
}

export function warmingHistory(id: string) {
  const query = { limit: HISTORY_DAYS };
  return queryOptions({
    queryKey: ["domain", id, "warming", "history"],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/domains/{id}/warming/history", { params: { path: { id }, query }, signal })),
  });
}

export type Figures = Schemas["MailFigures"];
/** `at` is milliseconds since 1970; without it the name is a provider's. */
export type FiguresRow = Figures & { name: string; at: number | null };

/** The figures by day, by hour of the last days, or by provider. */
export function figures(id: string, by: "day" | "hour" | "provider", days: number) {
  const path = { id };
  return queryOptions({
    queryKey: ["domain", id, "figures", by, days],
    queryFn: async ({ signal }): Promise<FiguresRow[]> => {
      if (by === "day") {
        const { stats } = await take(
          v1.GET("/v1/domains/{id}/stats/daily", { params: { path, query: { days } }, signal }),
        );
        return stats.map((row) => ({ ...row, name: row.date, at: Date.parse(row.date) }));
      }
      if (by === "hour") {
        const query = { hours: Math.min(days * 24, 336) };
        const { stats } = await take(v1.GET("/v1/domains/{id}/stats/hourly", { params: { path, query }, signal }));
        return stats.map((row) => ({ ...row, name: row.hour, at: Date.parse(row.hour) }));
      }
      const { isps } = await take(v1.GET("/v1/domains/{id}/stats/isp", { params: { path, query: { days } }, signal }));
      return isps.map((row) => ({ ...row, name: row.isp, at: null }));
    },
    placeholderData: (before) => before,
  });
}

export function dmarcSummary(id: string, days: number) {
  return queryOptions({
    queryKey: ["domain", id, "dmarc", "summary", days],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/domains/{id}/dmarc/summary", { params: { path: { id }, query: { days } }, signal })),
    placeholderData: (before) => before,
  });
}

export function dmarcDaily(id: string, days: number) {
  return queryOptions({
    queryKey: ["domain", id, "dmarc", "daily", days],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/domains/{id}/dmarc/daily", { params: { path: { id }, query: { days } }, signal })),
    placeholderData: (before) => before,
  });
}

export function dmarcSources(id: string, days: number) {
  const query = { days, limit: 100 };
  return queryOptions({
    queryKey: ["domain", id, "dmarc", "sources", days],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/domains/{id}/dmarc/sources", { params: { path: { id }, query }, signal })),
    placeholderData: (before) => before,
  });
}

export function dmarcReports(id: string, after: string | undefined) {
  const query = { after, limit: PAGE_ROWS };
  return queryOptions({
    queryKey: ["domain", id, "dmarc", "reports", after],
    queryFn: ({ signal }) =>
      take(v1.GET("/v1/domains/{id}/dmarc/reports", { params: { path: { id }, query }, signal })),
    placeholderData: (before) => before,
  });
}

export function dmarcAddress(id: string) {
  return queryOptions({
    queryKey: ["domain", id, "dmarc", "address"],
    queryFn: ({ signal }) => take(v1.GET("/v1/domains/{id}/dmarc/address", { params: { path: { id } }, signal })),
    staleTime: 60_000,
  });
}
