// A report on TLS that we write is one that we read, and its sums hold what its list of failures has no room for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { parseTlsReport } from "./read-report.ts";
import { type ReportAbout, type SessionCount, writeReport } from "./write-report.ts";

const about: ReportAbout = {
  ...{ domain: "example.com", submitter: "mail.example.eu", organization_name: "mail.example.eu" },
  ...{ contact: "postmaster@mail.example.eu", begin_ms: Date.parse("2026-03-10T00:00:00Z") },
  end_ms: Date.parse("2026-03-11T00:00:00Z"),
};
const sts = ["version: STSv1", "mode: testing", "mx: *.example.com", "max_age: 86400"];

function counted(change: Partial<SessionCount>): SessionCount {
  return {
    ...{ policy_type: "sts", policy_domain: "example.com", policy_strings: sts, result: "success", mx_host: "" },
    ...{ mx_ip: "", source_ip: "", sessions: 1, detail: null, ...change },
  };
}

function written(counts: SessionCount[]) {
  const report = parseTlsReport(gunzipSync(writeReport(about, counts)).toString("utf8"));
  assert.ok(typeof report === "object", String(report));
  return report.policies;
}

test("each policy has its sums and its failures", () => {
  const tlsa = { policy_type: "tlsa", policy_domain: "mx.example.com", policy_strings: ["3 1 1 00ff"] };
  const detail = "the certificate is not valid";
  const failure = { mx_host: "mx.example.com", mx_ip: "192.0.2.7", source_ip: "198.51.100.1", detail };
  const policies = written([
    counted({ sessions: 40 }),
    counted({ result: "certificate-expired", sessions: 3, ...failure }),
    counted({ ...tlsa, sessions: 5 }),
    counted({ result: "sts-policy-fetch-error", policy_strings: [] }),
  ]);
  assert.deepEqual(
    policies.map((policy) => [
      ...[policy.policy_type, policy.policy_domain, policy.policy_string, policy.mx_host],
      ...[policy.total_successful_session_count, policy.total_failure_session_count],
    ]),
    [
      ["sts", "example.com", sts, ["*.example.com"], 40, 3],
      ["tlsa", "mx.example.com", ["3 1 1 00ff"], [], 5, 0],
      ["sts", "example.com", [], [], 0, 1],
    ],
  );
  const [first] = policies[0]?.failure_details ?? [];
  assert.deepEqual(
    [first?.result_type, first?.sending_mta_ip, first?.receiving_ip, first?.receiving_mx_hostname],
    ["certificate-expired", "198.51.100.1", "192.0.2.7", "mx.example.com"],
  );
  assert.deepEqual([first?.failed_session_count, first?.failure_reason_code], [3, detail]);
});

test("of many failures the first are listed and all are in the sum", () => {
  const counts = Array.from({ length: 700 }, (_none, n) =>
    counted({ result: "starttls-not-supported", mx_host: `mx${n}.example.com`, sessions: 2 }),
  );
  const [policy] = written(counts);
  assert.deepEqual([policy?.failure_details.length, policy?.total_failure_session_count], [500, 1_400]);
  assert.equal(policy?.failure_details[0]?.receiving_mx_hostname, "mx0.example.com");
});
