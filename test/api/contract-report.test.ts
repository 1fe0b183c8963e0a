// The counting of the contract tester's report: lines as schemathesis 4.32 writes them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readReport } from "./contract-report.ts";

const LABEL = "GET /v1/domains";

function scenario(status: number, failures: string[], method = "GET", label = LABEL): object {
  const checks = ["not_a_server_error", "status_code_conformance"].map((name) => ({
    name,
    status: failures.includes(name) ? "failure" : "success",
  }));
  const recorder = {
    label,
    cases: { a: { value: { method, path: "/v1/domains" } } },
    checks: { a: checks },
    interactions: { a: { response: { status_code: status } } },
  };
  return { ScenarioFinished: { recorder } };
}

async function read(lines: object[]) {
  const dir = mkdtempSync(join(tmpdir(), "postern-report-"));
  const file = join(dir, "report.ndjson");
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
  try {
    return await readReport(file);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

test("a 5xx is a server error, an answer that is not described is undocumented, each counted once", async () => {
  const verdict = await read([
    { LoadingFinished: { statistic: { operations: { total: 9, selected: 3 } } } },
    scenario(200, []),
    scenario(500, ["not_a_server_error", "status_code_conformance"]),
    scenario(414, ["status_code_conformance"]),
    { EngineFinished: { stop_reason: "completed" } },
  ]);
  const { operations, cases, undocumented, server_errors } = verdict;
  assert.deepEqual(
    { operations, cases, undocumented, server_errors },
    {
      operations: 3,
      cases: 3,
      undocumented: 1,
      server_errors: 1,
    },
  );
  assert.deepEqual([...(verdict.seen.get(LABEL) ?? [])], [200, 500, 414]);
});

test("a method that the path does not have is a case, but no operation", async () => {
  const { cases, seen } = await read([scenario(404, [], "TRACE"), scenario(200, [], "GET", "Stateful tests")]);
  assert.equal(cases, 2);
  assert.deepEqual([...seen.keys()], [LABEL]);
});

test("an error of the tester itself is reported", async () => {
  const { errors } = await read([{ NonFatalError: { label: LABEL, value: { type: "Timeout" } } }]);
  assert.equal(errors.length, 1);
});
