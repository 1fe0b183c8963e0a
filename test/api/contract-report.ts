// Reads what the contract tester wrote down (NDJSON, one event a line): how many cases there were, which answers were
// not described, which were server errors, and what each operation was seen to answer.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

export type Verdict = {
  operations: number;
  cases: number;
  undocumented: number;
  server_errors: number;
  /** The tester itself failed: an error that is no answer. */
  errors: string[];
  /** Statuses by operation. */
  seen: Map<string, Set<number>>;
};

type Check = { name: string; status: string };
type Interaction = { response?: { status_code: number } | null };
type Recorder = {
  label: string;
  cases?: Record<string, { value: { method: string; path: string } }>;
  checks?: Record<string, Check[]>;
  interactions?: Record<string, Interaction>;
};
type Line = {
  LoadingFinished?: { statistic: { operations: { selected: number } } };
  ScenarioFinished?: { recorder: Recorder };
  NonFatalError?: { label?: string; value?: unknown };
  FatalError?: { exception?: unknown };
};

/** Counts a report. A case whose answer fails several checks counts once as undocumented; a 5xx counts as server error. */
export async function readReport(file: string): Promise<Verdict> {
  const verdict: Verdict = {
    operations: 0,
    cases: 0,
    undocumented: 0,
    server_errors: 0,
    errors: [],
    seen: new Map(),
  };
  for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const line = JSON.parse(text) as Line;
    if (line.LoadingFinished) verdict.operations = line.LoadingFinished.statistic.operations.selected;
    if (line.ScenarioFinished) countScenario(verdict, line.ScenarioFinished.recorder);
    if (line.NonFatalError) verdict.errors.push(JSON.stringify(line.NonFatalError).slice(0, 1_000));
    if (line.FatalError) verdict.errors.push(JSON.stringify(line.FatalError).slice(0, 1_000));
  }
  return verdict;
}

function countScenario(verdict: Verdict, { label, cases = {}, checks = {}, interactions = {} }: Recorder): void {
  for (const [id, { response }] of Object.entries(interactions)) {
    verdict.cases += 1;
    const asked = cases[id]?.value;
    const operation = `${asked?.method} ${asked?.path}`;
    // A scenario of one operation also tries methods that its path does not have.
    const isDescribed = operation === label || !label.includes(" /");
    if (isDescribed && response) see(verdict.seen, operation, response.status_code);
    const failed = (checks[id] ?? []).filter(({ status }) => status === "failure").map(({ name }) => name);
    if (failed.includes("not_a_server_error")) verdict.server_errors += 1;
    else if (failed.length > 0) verdict.undocumented += 1;
  }
}

function see(seen: Verdict["seen"], operation: string, status: number): void {
  const statuses = seen.get(operation) ?? new Set();
  statuses.add(status);
  seen.set(operation, statuses);
}
