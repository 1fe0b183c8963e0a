// DMARC reports as rows, the figures made of them, and what the feature borrows of others.
import type { AggregateReport, Disposition, PublishedPolicy, ReportRecord } from "../mail/dmarc-report/types.ts";
import type { TlsReport } from "../mail/tls-report/read-report.ts";

export const STATUSES = ["counted", "unauthenticated", "unreadable"] as const;
export const VIAS = ["mail", "upload"] as const;
export const CLASSIFICATIONS = ["ours", "authorised", "forwarder", "unknown"] as const;

export type Status = (typeof STATUSES)[number];
export type Via = (typeof VIAS)[number];
export type Classification = (typeof CLASSIFICATIONS)[number];

export type Dispositions = Record<Disposition, number>;

/** Messages; `aligned` are those with DKIM or SPF aligned. */
export type Counts = { total: number; pass_dkim: number; pass_spf: number; aligned: number; both_aligned: number };

export type ReportRow = {
  id: string;
  status: Status;
  reason: string | null;
  via: Via;
  sender_domain: string | null;
  received_at: Date;
  org_name: string | null;
  email: string | null;
  extra_contact_info: string | null;
  report_id: string | null;
  generator: string | null;
  schema: AggregateReport["schema"] | null;
  policy_domain: string | null;
  published_policy: PublishedPolicy | null;
  begin_at: Date | null;
  end_at: Date | null;
  first_day: string | null;
  last_day: string | null;
  total_messages: number;
  pass_dkim: number;
  pass_spf: number;
  aligned: number;
  both_aligned: number;
  disposition: Dispositions;
  record_count: number;
  rejected_records: number;
  defects: string[];
  errors: string[];
};

/** How a report came here, and whether we know who sent it. */
export type Arrival = {
  via: Via;
  authenticated: boolean;
  sender_domain: string | null;
  /** Names the mail or upload, for a report that cannot be distinguished by what it says. */
  origin_id: string;
};

export type RecordRow = Omit<ReportRecord, "count"> & { position: number; count: number };

export type DayRow = {
  day: string;
  reports: number;
  total: number;
  pass_dkim: number;
  pass_spf: number;
  aligned: number;
  both_aligned: number;
  disposition_none: number;
  disposition_pass: number;
  disposition_quarantine: number;
  disposition_reject: number;
};

export type DaySourceRow = {
  day: string;
  source_ip: string;
  total: number;
  pass_dkim: number;
  pass_spf: number;
  aligned: number;
  forwarded: number;
  dkim_domains: string[];
  dkim_passed: string[];
  spf_domains: string[];
  spf_passed: string[];
  reporters: string[];
};

/** A source over the days asked for. */
export type SourceRow = Omit<DaySourceRow, "day"> & { first_seen: string; last_seen: string };

export type DomainOfReport = { org_id: string; id: string; domain: string };

export type TlsReportRow = TlsReport & { id: string; arrival: Arrival; received_at: Date };

/** Functions of other features, handed in by app.ts. */
export type DmarcPorts = {
  /** The addresses this installation sends from, as far as they are configured. */
  ourAddresses(): Promise<string[]>;
};
