// npm run contract [-- --seed N] [--examples N] [--phases LIST] [--only REGEX] [--keep DIR] [--json]: the tester schemathesis
// (PyPI) reads /openapi.yaml of a live server and asks every operation with right and wrong data; an answer that the
// description does not have, or a 500, is a failure, and so is a run in which fewer than 60 % of the operations succeeded.
// --only takes operationIds, --keep keeps the tester's reports. Everything on loopback. Exit code 3: no tester is here.
// Not here: whether the answers are right (the request tests), the tester itself.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { readOptions, wholeNumber } from "../support/options.ts";
import type { PosternProcess, Posterns } from "../support/postern-process.ts";
import { setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { testerExamples } from "./contract-examples.ts";
import { readReport, type Verdict } from "./contract-report.ts";
import { FULL_MAILBOXES, makeSubjects, testerConfiguration } from "./contract-subjects.ts";

const MISSING = "The contract tester is not installed (schemathesis is not on the PATH): pipx install schemathesis";
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "success_is_described",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
];
/** The test key answers the same operations; a smaller part of the examples shows what it answers differently. */
const TEST_KEY_PART = 4;
/** Who sees refusals only has not seen what the operations answer. */
const SUCCEEDED_MIN = 0.6;
/** As other commands end where the machine lacks something. */
const LACKING = 3;

const EXAMPLES = "examples.json";

type Run = Verdict & { code: number | null };
type Pass = { name: string; key: string; examples: number; phases: string };

const USE =
  "npm run contract -- [--seed n] [--examples n] [--phases list] [--only expression] [--tester path] [--keep folder] [--json]";
const { values } = readOptions(
  {
    options: {
      seed: { type: "string", default: "1" },
      examples: { type: "string", default: "30" },
      phases: { type: "string", default: "examples,coverage,fuzzing,stateful" },
      only: { type: "string" },
      tester: { type: "string" },
      keep: { type: "string" },
      json: { type: "boolean", default: false },
    },
  },
  USE,
);
const examples = wholeNumber("examples", values.examples, { least: 1 }, USE);
const seed = wholeNumber("seed", values.seed, { least: 0 }, USE);
const tester = values.tester ?? onPath("schemathesis");
if (!tester) {
  console.error(MISSING);
  process.exit(LACKING);
}
const started = performance.now();
const verdicts = await judge(tester);
const operations = Math.max(...verdicts.map((verdict) => verdict.operations));
const sum = (name: "cases" | "undocumented" | "server_errors") =>
  verdicts.reduce((total, verdict) => total + verdict[name], 0);
for (const error of verdicts.flatMap(({ errors }) => errors)) console.error(error);
const refusedOnly = neverSuccessful(verdicts);
const succeeded = operations - refusedOnly.length;
const result = {
  operations,
  succeeded,
  cases: sum("cases"),
  undocumented: sum("undocumented"),
  server_errors: sum("server_errors"),
  seconds: Math.round((performance.now() - started) / 1000),
  ok:
    verdicts.every(({ code, errors }) => code === 0 && errors.length === 0) && succeeded >= SUCCEEDED_MIN * operations,
};
if (values.json) console.log(JSON.stringify(result));
else console.log(`Never seen to succeed: ${refusedOnly.join(", ") || "none"}`);
if (!values.json) console.log(`${result.ok ? "The answers are those described" : "FAILED"}: ${JSON.stringify(result)}`);
process.exit(result.ok ? 0 : 1);

/** How far the tester came: the operations of which it saw refusals only. */
function neverSuccessful(runs: Run[]): string[] {
  const seen = runs.flatMap((run) => [...run.seen]);
  const successful = new Set(seen.filter(([, statuses]) => Math.min(...statuses) < 300).map(([name]) => name));
  return [...new Set(seen.map(([name]) => name))].filter((name) => !successful.has(name));
}

function onPath(program: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
}

/** Sets the scene, runs the tester with the live and then with the test key, takes everything away again. */
async function judge(program: string): Promise<Run[]> {
  const scene = await setScene({ embedded: true, env: { POSTERN_LOG_LEVEL: "error" } });
  const { dir, dns, sink } = scene;
  try {
    const postern = await scene.start();
    receiveAt(dns, "recipient.example");
    receiveAt(dns, FULL_MAILBOXES, "mx.recipient.example");
    sink.onRcpt((address) =>
      address.endsWith(`@${FULL_MAILBOXES}`) ? { code: 552, text: "5.2.2 Mailbox full" } : null,
    );
    const config = join(dir, "schemathesis.toml");
    const described = await describedOperations(scene);
    const subjects = await makeSubjects(scene, dns);
    writeFileSync(config, testerConfiguration(subjects, described));
    writeFileSync(join(dir, EXAMPLES), testerExamples(subjects, described));
    const live = { name: "live", key: scene.live_key, examples, phases: values.phases };
    const test = {
      name: "test",
      key: scene.test_key,
      examples: Math.ceil(examples / TEST_KEY_PART),
      phases: "fuzzing",
    };
    const verdicts: Run[] = [];
    for (const pass of [live, test]) verdicts.push(await run({ program, config, dir }, scene, pass));
    showServerErrors(postern, verdicts);
    return verdicts;
  } finally {
    await scene.close();
  }
}

async function describedOperations(settings: Posterns): Promise<{ path: string; method: string }[]> {
  const { paths } = (await (await fetch(`${settings.base_url}/openapi.json`)).json()) as {
    paths: Record<string, object>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
  );
}

type Tester = { program: string; config: string; dir: string };

async function run({ program, config, dir }: Tester, settings: Posterns, pass: Pass): Promise<Run> {
  const report = join(resolve(values.keep ?? dir), `${pass.name}.ndjson`);
  const only = values.only ? [`--include-operation-id-regex=${values.only}`] : [];
  const args = [
    `--config-file=${config}`,
    "run",
    `${settings.base_url}/openapi.yaml`,
    `--url=${settings.base_url}`,
    `--header=Authorization: Bearer ${pass.key}`,
    `--checks=${CHECKS.join(",")}`,
    `--phases=${pass.phases}`,
    `--max-examples=${pass.examples}`,
    `--seed=${seed}`,
    "--generation-database=none",
    "--generation-allow-x00=true",
    "--continue-on-failure",
    "--workers=2",
    "--request-timeout=30",
    "--warnings=off",
    "--no-color",
    `--report-ndjson-path=${report}`,
    ...only,
  ];
  // The answer to --json is the last line of the output; what the tester says goes to the other stream then.
  const env = { ...process.env, POSTERN_CONTRACT_EXAMPLES: join(dir, EXAMPLES) };
  const child = spawn(program, args, { cwd: dir, env, stdio: ["ignore", values.json ? 2 : 1, 2] });
  const code = await new Promise<number | null>((done, fail) => child.once("exit", done).once("error", fail));
  return { ...(await readReport(report)), code };
}

/** What the server logged tells more than the 500 does. */
function showServerErrors(postern: PosternProcess, verdicts: Verdict[]): void {
  if (verdicts.some(({ server_errors }) => server_errors > 0)) console.error(postern.output());
}
