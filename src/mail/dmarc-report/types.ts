// What a DMARC aggregate report says, in one form for both generations of the schema: RFC 7489 Appendix C and RFC 9990.

export const SCHEMAS = ["rfc7489", "rfc9990"] as const;
export const POLICIES = ["none", "quarantine", "reject"] as const;
/** RFC 9990 adds `pass`; the older schema says `none` there. */
export const DISPOSITIONS = ["none", "pass", "quarantine", "reject"] as const;

export type Policy = (typeof POLICIES)[number];
export type Disposition = (typeof DISPOSITIONS)[number];

/** The policy as the reporter saw it. Null: the report does not say. */
export type PublishedPolicy = {
  domain: string;
  p: Policy | null;
  sp: Policy | null;
  np: Policy | null;
  adkim: "r" | "s" | null;
  aspf: "r" | "s" | null;
  pct: number | null;
  fo: string | null;
  testing: boolean | null;
  discovery_method: string | null;
};

export type DkimAuth = { domain: string; selector: string | null; result: string; human_result: string | null };
export type SpfAuth = { domain: string; scope: string | null; result: string; human_result: string | null };

/** `dkim` and `spf` tell whether an aligned identifier passed; the lists are the raw results. */
export type ReportRecord = {
  source_ip: string;
  count: number;
  disposition: Disposition;
  dkim: "pass" | "fail";
  spf: "pass" | "fail";
  reasons: { type: string; comment: string | null }[];
  header_from: string | null;
  envelope_from: string | null;
  envelope_to: string | null;
  dkim_results: DkimAuth[];
  spf_results: SpfAuth[];
};

/** `rejected_records` were left out because their numbers or addresses make no sense; `defects` say what was odd. */
export type AggregateReport = {
  schema: (typeof SCHEMAS)[number];
  org_name: string;
  email: string | null;
  extra_contact_info: string | null;
  report_id: string;
  generator: string | null;
  errors: string[];
  begin_s: number;
  end_s: number;
  policy: PublishedPolicy;
  records: ReportRecord[];
  rejected_records: number;
  defects: string[];
};
