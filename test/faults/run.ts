// npm run faults -- <scenario>|all [--rounds n] [--seed s] [--sends n] [--rows n] [--json]: breaks things over real
// processes and a real PostgreSQL, and compares what was acknowledged with what arrived. With --json the last line is one
// JSON object (line.ts). Exit code 0: passed; 1: failed; 2: not known; 3: this machine lacks what it takes (said, never
// passed). Nothing plays with none of something: options are numbers from 1 on. What each does and needs: README.md.
import { readOptions, wholeNumber } from "../support/options.ts";
import { Lacking } from "./lacking.ts";
import { type Line, lineOf, lineWithout } from "./line.ts";
import { SCENARIOS } from "./scenarios.ts";

const USE = "npm run faults -- <scenario>|all [--rounds n] [--seed s] [--sends n] [--rows n] [--json]";

function usage(): never {
  console.error(`${USE}\n`);
  for (const [name, { what }] of SCENARIOS) console.error(`  ${name.padEnd(18)} ${what}`);
  return process.exit(2);
}

function readArguments() {
  const { values, positionals } = readOptions(
    {
      allowPositionals: true,
      options: {
        rounds: { type: "string" },
        seed: { type: "string" },
        sends: { type: "string" },
        rows: { type: "string" },
        json: { type: "boolean", default: false },
      },
    },
    USE,
  );
  const name = positionals[0] ?? "";
  const scenario = SCENARIOS.get(name);
  if (!scenario || positionals.length > 1) return usage();
  const number = (option: "rounds" | "seed" | "sends" | "rows", fallback: number, least = 1): number => {
    const text = values[option];
    return text === undefined ? fallback : wholeNumber(option, text, { least, most: 999_999_999_999 }, USE);
  };
  const rounds = number("rounds", scenario.rounds);
  return {
    name,
    scenario,
    json: values.json,
    rounds: scenario.once ? 1 : rounds,
    seed: number("seed", Date.now() % 1_000_000, 0),
    ...(values.sends === undefined ? {} : { sends: number("sends", 0) }),
    ...(values.rows === undefined ? {} : { rows: number("rows", 0) }),
  };
}

/** Of `all`: nothing failed, and something could not be played. */
function isUnplayed({ results }: Record<string, unknown>): boolean {
  const failed = (results as { ok: boolean; skipped?: string }[] | undefined)?.filter(({ ok }) => !ok) ?? [];
  return failed.length > 0 && failed.every(({ skipped }) => skipped !== undefined);
}

// Whoever is interrupted leaves no servers, processes and mounts behind: their `exit` listeners end them. A second signal
// must not cut that short.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { name, scenario, json, ...options } = readArguments();
const startedAt = performance.now();
const run = () => ({
  scenario: name,
  rounds: options.rounds,
  seed: options.seed,
  seconds: Math.round((performance.now() - startedAt) / 100) / 10,
});
const tell = (line: Line, text: string) => console.log(json ? JSON.stringify(line) : text);
const rounds = options.rounds > 0 ? `${options.rounds} rounds, ` : "";
console.log(`${name}: ${scenario.what} (${rounds}seed ${options.seed})`);
try {
  const result = await scenario.run({ ...options, say: (text) => console.log(`  ${text}`) });
  const line = lineOf(run(), result);
  tell(line, `${line.ok ? "passed" : "FAILED"}: ${JSON.stringify(line)}`);
  process.exitCode = line.ok ? 0 : isUnplayed(result) ? 3 : 1;
} catch (error) {
  const isLacking = error instanceof Lacking;
  const { message } = error as Error;
  if (!isLacking) console.error(error);
  tell(
    lineWithout(run(), isLacking ? { skipped: message } : { error: message }),
    `${isLacking ? "not played" : "FAILED"}: ${message}`,
  );
  // At once: whatever a stage that could not be set has left open would keep this process.
  process.exit(isLacking ? 3 : 1);
}
