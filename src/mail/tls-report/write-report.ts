// A report on TLS that we send (RFC 8460): its JSON (§4.4), its name (§5.1) and the mail that carries it (§5.3). Not here: reading
// those of others (read-report.ts), and sending.
import { gzipSync } from "node:zlib";
import { buildMessage } from "../mime/write/build-message.ts";

/** Sessions of one day that ended alike, under one policy. `result` is `success` or a result type of RFC 8460 §4.3. */
export type SessionCount = {
  policy_type: string;
  policy_domain: string;
  policy_strings: string[];
  result: string;
  mx_host: string;
  mx_ip: string;
  source_ip: string;
  sessions: number;
  detail: string | null;
};

export type ReportAbout = {
  /** The domain whose mail servers it is about. */
  domain: string;
  /** The domain that it is sent and signed from. */
  submitter: string;
  organization_name: string;
  contact: string;
  begin_ms: number;
  /** The first moment that it is not about. */
  end_ms: number;
};

/** Further ones are in the sums. */
const FAILURES_MAX = 500;

/** Unique, and the same whenever the report of this day is made. */
function reportId({ domain, submitter, begin_ms }: ReportAbout): string {
  return `${new Date(begin_ms).toISOString().slice(0, 10)}.${domain}@${submitter}`;
}

/** The JSON, packed (RFC 8460 §5.2). The first counts of a policy are those that are shown one by one. */
export function writeReport(about: ReportAbout, counts: readonly SessionCount[]): Buffer {
  const byPolicy = Map.groupBy(counts, ({ policy_type, policy_domain, policy_strings }) =>
    JSON.stringify([policy_type, policy_domain, policy_strings]),
  );
  const report = {
    "organization-name": about.organization_name,
    "date-range": { "start-datetime": moment(about.begin_ms), "end-datetime": moment(about.end_ms - 1_000) },
    "contact-info": about.contact,
    "report-id": reportId(about),
    policies: [...byPolicy.values()].map(policyEntry),
  };
  return gzipSync(JSON.stringify(report));
}

function moment(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

function policyEntry(counts: readonly SessionCount[]) {
  const { policy_type, policy_domain, policy_strings } = counts[0] as SessionCount;
  const failures = counts.filter(({ result }) => result !== "success");
  const sum = (list: readonly SessionCount[]) => list.reduce((total, { sessions }) => total + sessions, 0);
  const hosts = policy_strings.flatMap((line) => /^mx: (.+)$/.exec(line)?.[1] ?? []);
  return {
    policy: {
      "policy-type": policy_type,
      ...(policy_strings.length > 0 && { "policy-string": policy_strings }),
      "policy-domain": policy_domain,
      ...(policy_type === "sts" && hosts.length > 0 && { "mx-host": hosts }),
    },
    summary: {
      "total-successful-session-count": sum(counts) - sum(failures),
      "total-failure-session-count": sum(failures),
    },
    ...(failures.length > 0 && { "failure-details": failures.slice(0, FAILURES_MAX).map(failureEntry) }),
  };
}

function failureEntry({ result, source_ip, mx_host, mx_ip, sessions, detail }: SessionCount) {
  return {
    "result-type": result,
    ...(source_ip && { "sending-mta-ip": source_ip }),
    ...(mx_host && { "receiving-mx-hostname": mx_host }),
    ...(mx_ip && { "receiving-ip": mx_ip }),
    "failed-session-count": sessions,
    ...(detail && { "failure-reason-code": detail }),
  };
}

export type ReportMail = { from: string; to: string; message_id: string; date: number; boundary_seed: string };

/** The mail with a packed report. It is to be signed by the submitter's domain, without `l=` (RFC 8460 §3). */
export function writeReportMail(
  about: ReportAbout,
  packed: Buffer,
  mail: ReportMail,
): { subject: string; bytes: Buffer } {
  const subject = `Report Domain: ${about.domain} Submitter: ${about.submitter} Report-ID: <${reportId(about)}>`;
  const { bytes } = buildMessage({
    ...{ subject, date: mail.date, message_id: mail.message_id, boundary_seed: mail.boundary_seed, html: null },
    from: { name: about.organization_name, email: mail.from },
    ...{ to: [{ name: null, email: mail.to }], cc: [], reply_to: [] },
    headers: [
      { name: "TLS-Report-Domain", value: about.domain },
      { name: "TLS-Report-Submitter", value: about.submitter },
      { name: "Auto-Submitted", value: "auto-generated" },
    ],
    text: reportText(about),
    attachments: [
      {
        filename: `${about.submitter}!${about.domain}!${seconds(about.begin_ms)}!${seconds(about.end_ms) - 1}.json.gz`,
        ...{ content: packed, content_type: "application/tlsrpt+gzip", content_id: null, disposition: "attachment" },
      },
    ],
    report_type: "tlsrpt",
  });
  return { subject, bytes };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000);
}

function reportText(about: ReportAbout): string {
  return [
    `This is a report on TLS (RFC 8460): how sessions with the mail servers of ${about.domain} were secured on`,
    `${moment(about.begin_ms).slice(0, 10)} (UTC). It comes because _smtp._tls.${about.domain} asks for it.`,
    "",
    `Questions: ${about.contact}`,
    "",
  ].join("\n");
}
