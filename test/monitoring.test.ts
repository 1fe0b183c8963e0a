// deploy/monitoring against the program: every metric that an alert or the board names is in /metrics of a process with all
// roles, with the labels it is asked for, and every runbook is a heading of docs/operations.md.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Running, startRoles } from "../src/app.ts";
import { ROLES } from "../src/config.ts";
import { type TestApi, testApi } from "./support/api.ts";

const DOCS = join(import.meta.dirname, "../docs");
const SOURCE = join(import.meta.dirname, "../src");
const MONITORING = join(import.meta.dirname, "../deploy/monitoring");
const rules = readFileSync(join(MONITORING, "alerts.yml"), "utf8");

let api: TestApi;
let running: Running;
let metrics: string;

before(async () => {
  const free = Object.fromEntries(
    ["HTTP", "INTERNAL", "MX", "SUBMISSION"].map((name) => [`POSTERN_${name}`, "127.0.0.1:0"]),
  );
  api = await testApi(free);
  running = await startRoles(api.world, [...ROLES]);
  metrics = await (await fetch(`${running.internal}/metrics`)).text();
});

after(async () => {
  await running?.stop();
  await api?.close();
});

type Rule = { name: string; expr: string; runbook: string };

/** What Prometheus itself adds to each series. */
const SCRAPED = ["job", "instance"];

type Panel = { type: string; title: string; targets?: { expr: string; legendFormat: string }[] };

function readBoard(): { name: string; expr: string; legend: string }[] {
  const { panels } = JSON.parse(readFileSync(join(MONITORING, "board.json"), "utf8")) as { panels: Panel[] };
  return panels
    .filter(({ type }) => type !== "row")
    .flatMap(({ title, targets = [] }) =>
      targets.map(({ expr, legendFormat }) => ({ name: `board: ${title}`, expr, legend: legendFormat })),
    );
}

function readRules(): Rule[] {
  const blocks = rules.split(/^ {6}- alert: /m).slice(1);
  return blocks.map((block) => ({
    name: /^\w+/.exec(block)?.[0] ?? "",
    expr: /^ {8}expr: (.+)$/m.exec(block)?.[1] ?? "",
    runbook: /runbook: "operations\.md#([a-z0-9-]+)"/.exec(block)?.[1] ?? "",
  }));
}

test("every alert has a name of its own, an expression, and a runbook that is there", () => {
  const headings = [...readFileSync(join(DOCS, "operations.md"), "utf8").matchAll(/^### (.+)$/gm)];
  const anchors = new Set(headings.map(([, heading]) => heading!.toLowerCase().replaceAll(" ", "-")));
  const found = readRules();
  assert.ok(found.length >= 20, `${found.length} rules`);
  assert.equal(new Set(found.map(({ name }) => name)).size, found.length);
  for (const { name, expr, runbook } of found) {
    assert.ok(expr.length > 0, `${name} has no expression`);
    assert.ok(anchors.has(runbook), `${name}: there is no runbook ${runbook}`);
  }
  const named = new Set(found.map(({ runbook }) => runbook));
  assert.deepEqual(
    [...anchors].filter((anchor) => !named.has(anchor)),
    [],
    "runbooks that no alert leads to",
  );
});

test("every metric that an alert or the board names is in /metrics", () => {
  const there = new Set(
    [...metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) => namesOf(name!, type!)),
  );
  for (const { name, expr } of [...readRules(), ...readBoard()]) {
    const asked = [...expr.matchAll(/\b(?:postern|nodejs|process)_[a-z0-9_]+/g)].map(([metric]) => metric);
    assert.ok(asked.length > 0 || /\bup\{/.test(expr), `${name} asks for none of our metrics`);
    for (const metric of asked) assert.ok(there.has(metric), `${name}: there is no metric ${metric}`);
  }
});

function namesOf(name: string, type: string): string[] {
  return type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

test("every label that an alert or the board asks for is one of the metric's, and every value is one the program knows", () => {
  const kinds = new Map([...metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, kind]) => [name!, kind!]));
  const sources = program();
  let asked = 0;
  for (const { name, expr } of [...readRules(), ...readBoard()]) {
    for (const [, metric, matchers] of expr.matchAll(/\b(postern_[a-z0-9_]+)\{([^}]*)\}/g)) {
      const labels = [...labelsOf(metric!, kinds), ...SCRAPED];
      for (const [, label, operator, value] of matchers!.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
        asked += 1;
        assert.ok(labels.includes(label!), `${name}: ${metric} has no label ${label}, it has ${labels.join(", ")}`);
        if (!operator!.includes("~") && !value!.startsWith("$"))
          assert.ok(sources.includes(`"${value}"`), `${name}: nothing says ${value}`);
      }
    }
  }
  assert.ok(asked >= 10, `${asked} labels were looked at`);
});

/** As it was registered: what has not been counted yet shows none. */
function labelsOf(metric: string, kinds: Map<string, string>): string[] {
  const registered = kinds.has(metric) ? metric : metric.replace(/_(bucket|sum|count)$/, "");
  const kind = kinds.get(registered) as "counter" | "gauge" | "histogram";
  const found = api.world.metrics[kind](registered, "") as unknown as { labelNames: string[] };
  return kind === "histogram" ? [...found.labelNames, "le"] : [...found.labelNames];
}

function program(): string {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" });
  const own = files.filter((path) => path.endsWith(".ts") && !/\.(test|fixture)\.ts$/.test(path));
  return own.map((path) => readFileSync(join(SOURCE, path), "utf8")).join("\n");
}

test("a legend of the board names labels that its expression keeps", () => {
  for (const { name, expr, legend } of readBoard()) {
    const kept = /by \(([^)]*)\)/.exec(expr)?.[1]?.split(", ") ?? (/\b(sum|max|min|count)\(/.test(expr) ? [] : SCRAPED);
    for (const [, label] of legend.matchAll(/\{\{(\w+)\}\}/g)) assert.ok(kept.includes(label!), `${name}: ${label}`);
  }
});

/** Those of the program, also such that a process has only once something happened. */
function countersAndGauges(): string[] {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((file) =>
    /(?<!\.test)\.ts$/.test(file),
  );
  const names = files.flatMap((file) => {
    const text = readFileSync(join(SOURCE, file), "utf8");
    return [...text.matchAll(/\.(?:counter|gauge)\(\s*"(postern_\w+)"/g)].map(([, name]) => name!);
  });
  return [...new Set(names)];
}

test("every counter and gauge is on the board, in an alert, or in docs/operations.md", () => {
  const documented = [
    rules,
    readFileSync(join(MONITORING, "board.json")),
    readFileSync(join(DOCS, "operations.md")),
  ].join();
  const shown = [...metrics.matchAll(/^# TYPE (postern_\w+) (?:counter|gauge)$/gm)].map(([, name]) => name!);
  assert.ok(shown.length > 30);
  const own = new Set([...shown, ...countersAndGauges()]);
  assert.deepEqual(
    [...own].filter((name) => !documented.includes(name)),
    [],
  );
});

test("promtool reads every expression of the board", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "postern-board-"));
  const file = join(folder, "board.yml");
  const written = readBoard().map(({ expr }, index) => ({
    record: `board:${index}`,
    expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$job", "postern"),
  }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: "board", rules: written }] }));
  const { error, status, stdout, stderr } = spawnSync("promtool", ["check", "rules", file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  if (error) return t.skip("promtool is not installed (Debian: prometheus)");
  assert.equal(status, 0, stdout + stderr);
});

test("a metric is compared with another as sums of both, since labels of one would have to be those of the other", () => {
  const shares = readRules().filter(({ expr }) => /[<>]=? *[\d.e]+ *\*/.test(expr));
  assert.ok(shares.length >= 8, `${shares.length} alerts compare two metrics`);
  for (const { name, expr } of shares) {
    const bare = [...expr.matchAll(/(.{0,4})\b(rate|increase)\(/g)].filter(([, before]) => !before!.endsWith("sum("));
    assert.deepEqual(
      bare.map(([text]) => text),
      [],
      `${name}: ${expr}`,
    );
  }
});

test("what is missing when its last process is gone is missed", () => {
  const gone = ["postern_slots_held", 'postern_oldest_due_seconds{queue="mail"}', 'up{job="postern"}'];
  gone.push('postern_oldest_due_seconds{queue="webhooks"}', 'postern_oldest_due_seconds{queue="inbound"}');
  const expressions = readRules().map(({ expr }) => expr);
  for (const series of gone)
    assert.ok(
      expressions.some((expr) => expr.includes(`or absent(${series})`)),
      series,
    );
  for (const { name, expr } of readRules()) {
    const [, metric] = /\bsum\((postern_\w+)\) </.exec(expr) ?? [];
    if (metric !== undefined)
      assert.ok(expr.includes(`or absent(${metric})`), `${name}: without a process it is silent`);
  }
});

test("promtool reads the rules, and they fire in the situations of deploy/monitoring/alerts.test.yml, and only then", (t) => {
  const cases = join(MONITORING, "alerts.test.yml");
  const { error, status, stdout, stderr } = spawnSync("promtool", ["test", "rules", cases], { encoding: "utf8" });
  if (error) return t.skip("promtool is not installed (Debian: prometheus)");
  assert.equal(status, 0, stdout + stderr);
});
