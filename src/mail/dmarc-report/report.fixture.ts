// Reports for tests, made of the few values that a test is about.

export type GivenRecord = {
  ip?: string;
  count?: number | string;
  dkim?: string;
  spf?: string;
  disposition?: string;
  reason?: string;
  dkim_results?: { domain: string; selector?: string; result: string }[];
  spf_domain?: string;
  spf_result?: string;
};

export type GivenReport = {
  org?: string;
  id?: string;
  domain?: string;
  begin_s?: number | string;
  end_s?: number | string;
  p?: string;
  extra_policy?: string;
  records?: GivenRecord[];
};

/** The XML of a report; everything has a value that makes sense. */
export function reportXml(given: GivenReport = {}): string {
  const begin = given.begin_s ?? 1_700_000_000;
  const end = given.end_s ?? (typeof begin === "number" ? begin + 86_399 : begin);
  const records = (given.records ?? [{}]).map((record) => recordXml(record, given.domain ?? "example.com"));
  return `<?xml version="1.0" encoding="UTF-8"?>
<feedback><report_metadata><org_name>${given.org ?? "reporter.example"}</org_name><email>dmarc@reporter.example</email>
<report_id>${given.id ?? "r-1"}</report_id><date_range><begin>${begin}</begin><end>${end}</end></date_range></report_metadata>
<policy_published><domain>${given.domain ?? "example.com"}</domain><adkim>r</adkim><aspf>r</aspf><p>${given.p ?? "none"}</p>
<pct>100</pct>${given.extra_policy ?? ""}</policy_published>
${records.join("\n")}</feedback>`;
}

function recordXml(record: GivenRecord, domain: string): string {
  const dkim = record.dkim_results ?? [];
  const signatures = dkim.map(
    (signature) =>
      `<dkim><domain>${signature.domain}</domain><selector>${signature.selector ?? "s1"}</selector><result>${signature.result}</result></dkim>`,
  );
  const reason = record.reason ? `<reason><type>${record.reason}</type><comment>as asked</comment></reason>` : "";
  return `<record><row><source_ip>${record.ip ?? "192.0.2.1"}</source_ip><count>${record.count ?? 1}</count>
<policy_evaluated><disposition>${record.disposition ?? "none"}</disposition><dkim>${record.dkim ?? "pass"}</dkim>
<spf>${record.spf ?? "pass"}</spf>${reason}</policy_evaluated></row>
<identifiers><header_from>${domain}</header_from><envelope_from>${record.spf_domain ?? domain}</envelope_from></identifiers>
<auth_results>${signatures.join("")}<spf><domain>${record.spf_domain ?? domain}</domain><scope>mfrom</scope>
<result>${record.spf_result ?? "pass"}</result></spf></auth_results></record>`;
}
