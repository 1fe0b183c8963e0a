// The shapes of the DMARC endpoints, for validation, answers and the description.
import { Type } from "typebox";
import { Closed, Day, Extended, Id, Named, Nullable, OneOf, Rate, Time } from "../http/http.ts";
import { DISPOSITIONS, POLICIES, SCHEMAS } from "../mail/dmarc-report/types.ts";
import { AUTHORIZATION_STATUSES } from "./address.ts";
import { CLASSIFICATIONS, STATUSES, VIAS } from "./types.ts";

const DAYS_MAX = 400;
const Count = Type.Integer({ minimum: 0 });
const Text = Nullable(Type.String());
const Policy = Nullable(OneOf(POLICIES));
const Dispositions = Named(
  "DmarcDispositions",
  Type.Object(
    { none: Count, pass: Count, quarantine: Count, reject: Count },
    { description: "Messages by what the receivers did; pass is a word of RFC 9990 for what older reports call none" },
  ),
);
const PublishedPolicy = Named(
  "DmarcPublishedPolicy",
  Type.Object(
    {
      domain: Type.String(),
      p: Policy,
      sp: Policy,
      np: Policy,
      adkim: Nullable(OneOf(["r", "s"])),
      aspf: Nullable(OneOf(["r", "s"])),
      pct: Nullable(Type.Integer()),
      fo: Text,
      testing: Nullable(Type.Boolean()),
      discovery_method: Text,
    },
    { description: "As the reporter saw it; null is what the report does not say" },
  ),
);

export const DaysQuery = {
  days: Type.Optional(
    Type.Integer({ minimum: 1, maximum: DAYS_MAX, default: 30, description: "Today (UTC) and the days before it" }),
  ),
};

const Shares = Named(
  "DmarcShares",
  Type.Object({
    pass_dkim: Type.Integer({ minimum: 0, description: "Messages with an aligned DKIM signature" }),
    pass_spf: Type.Integer({ minimum: 0, description: "Messages with SPF passed and aligned" }),
    aligned: Type.Integer({ minimum: 0, description: "Messages with DKIM or SPF aligned: those that pass DMARC" }),
  }),
);

export const Summary = Extended("DmarcSummary", Shares, {
  domain: Type.String(),
  days: Count,
  from: Day,
  to: Day,
  total_messages: Count,
  both_aligned: Count,
  dkim_rate: Rate,
  spf_rate: Rate,
  alignment_rate: Rate,
  report_count: Type.Integer({ minimum: 0, description: "Counted reports about any of the days" }),
  reporters: Type.Array(
    Named(
      "DmarcReporter",
      Type.Object({
        org_name: Type.String(),
        reports: Count,
        messages: Type.Integer({ description: "Of their reports as a whole" }),
      }),
    ),
    { description: "Most messages first, at most 50" },
  ),
  disposition: Dispositions,
  published_policy: Nullable(PublishedPolicy),
  recommendation: Named(
    "DmarcRecommendation",
    Type.Object({
      next_policy: Nullable(
        OneOf(POLICIES, { description: "The policy to publish next; the present one while nothing should change" }),
      ),
      reason: Type.String({ description: "Of the mail of the days asked for, 30 at least" }),
      blocking_sources: Type.Array(Type.String(), {
        description: "Addresses that send more than 0.5 % of the mail without passing; forwarders are left out",
      }),
    }),
  ),
});

export const Source = Extended("DmarcSource", Shares, {
  source_ip: Type.String(),
  total: Count,
  dkim_rate: Rate,
  spf_rate: Rate,
  classification: OneOf(CLASSIFICATIONS, {
    description:
      "ours: sent from here. authorised: in the domain's SPF record, or passing for the domain. forwarder: passes mail on. unknown: not set up, or forged",
  }),
  dkim_domains: Type.Array(Type.String(), { description: "Domains that signed, whether it passed or not" }),
  spf_domains: Type.Array(Type.String()),
  reporters: Type.Array(Type.String()),
  first_seen: Day,
  last_seen: Day,
});

export const Daily = Extended("DmarcDay", Shares, {
  date: Day,
  total: Count,
  alignment_rate: Rate,
  disposition: Dispositions,
  reports: Type.Integer({ minimum: 0, description: "Reports with a part on this day" }),
});

export const Report = Extended("DmarcReport", Shares, {
  id: Id,
  status: OneOf(STATUSES, {
    description:
      "counted: in all figures. unauthenticated: anybody could have sent it, so it is kept and left out. unreadable: something came that is no report on this domain",
  }),
  reason: Nullable(Type.String({ description: "Why it is not counted" })),
  via: OneOf(VIAS),
  sender_domain: Nullable(Type.String({ description: "The author of the mail it came in" })),
  received_at: Time,
  org_name: Text,
  email: Text,
  extra_contact_info: Text,
  report_id: Nullable(Type.String({ description: "The reporter's own id" })),
  generator: Text,
  schema: Nullable(OneOf(SCHEMAS)),
  policy_domain: Nullable(Type.String({ description: "The domain, or one below it" })),
  published_policy: Nullable(PublishedPolicy),
  begin_at: Nullable(Time),
  end_at: Nullable(Time),
  total_messages: Count,
  both_aligned: Count,
  disposition: Dispositions,
  record_count: Count,
  rejected_records: Type.Integer({ minimum: 0, description: "Records left out because their values make no sense" }),
  defects: Type.Array(Type.String(), { description: "What was wrong with the file" }),
  errors: Type.Array(Type.String(), { description: "What the reporter itself had trouble with" }),
});

const Reported = OneOf(["pass", "fail"]);
const ReportRecord = Named(
  "DmarcRecord",
  Type.Object({
    source_ip: Type.String(),
    count: Count,
    disposition: OneOf(DISPOSITIONS),
    dkim: Reported,
    spf: Reported,
    reasons: Type.Array(Named("DmarcRecordReason", Type.Object({ type: Type.String(), comment: Text }))),
    header_from: Text,
    envelope_from: Text,
    envelope_to: Text,
    dkim_results: Type.Array(
      Named(
        "DmarcDkimResult",
        Type.Object({ domain: Type.String(), selector: Text, result: Type.String(), human_result: Text }),
      ),
    ),
    spf_results: Type.Array(
      Named(
        "DmarcSpfResult",
        Type.Object({ domain: Type.String(), scope: Text, result: Type.String(), human_result: Text }),
      ),
    ),
  }),
);
export const WholeReport = Extended("DmarcReportWithRecords", Report, { records: Type.Array(ReportRecord) });

const RECORDS_MAX = 10_000;
export const RecordsQuery = Closed({
  records_limit: Type.Optional(Type.Integer({ minimum: 1, maximum: RECORDS_MAX, default: RECORDS_MAX })),
  records_offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, default: 0 })),
});

export const Address = Named(
  "DmarcAddress",
  Type.Object({
    address: Type.String(),
    rua: Type.String({ description: "For the rua= of the domain's DMARC record" }),
    suggested_record: Named(
      "DmarcSuggestedRecord",
      Type.Object({
        type: OneOf(["TXT"]),
        name: Type.String(),
        value: Type.String({ description: "The record last seen with our address added, or a first one" }),
      }),
    ),
    external_authorization: Named(
      "DmarcExternalAuthorization",
      Type.Object(
        {
          required: Type.Boolean({ description: "The address is of another organizational domain" }),
          name: Type.String(),
          type: OneOf(["TXT"]),
          value: Type.String(),
          status: OneOf(AUTHORIZATION_STATUSES, { description: "What DNS shows now; error: it could not be asked" }),
        },
        {
          description: "To be published by the operator of this service (a wildcard serves all domains); RFC 7489 §7.1",
        },
      ),
    ),
  }),
);
