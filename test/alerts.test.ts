// docs/alerts.yml against the program: every metric that a rule names is in /metrics of a process with all roles, with the
// labels it is asked for, and every runbook is a heading of docs/operations.md.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Running, startRoles } from "../src/app.ts";
import { ROLES } from "../src/config.ts";
import { type TestApi, testApi } from "./support/api.ts";

const DOCS = join(import.meta.dirname, "../docs");
const rules = readFileSync(join(DOCS, "alerts.yml"), "utf8");

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

test("every metric that an alert names is in /metrics", () => {
  const there = new Set(
    [...metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) => namesOf(name!, type!)),
  );
  for (const { name, expr } of readRules()) {
    const asked = [...expr.matchAll(/\b(?:postern|nodejs|process)_[a-z0-9_]+/g)].map(([metric]) => metric);
    assert.ok(asked.length > 0 || expr.startsWith("up{"), `${name} asks for no metric of ours`);
    for (const metric of asked) assert.ok(there.has(metric), `${name}: there is no metric ${metric}`);
  }
});

function namesOf(name: string, type: string): string[] {
  return type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
}

test("a label that an alert asks for is on the metric, where it has been counted already", () => {
  const shown = new Map([...metrics.matchAll(/^(\w+)\{([^}]*)\}/gm)].map(([, name, labels]) => [name!, labels!]));
  for (const { name, expr } of readRules()) {
    for (const [, metric, label] of expr.matchAll(/\b(postern_[a-z0-9_]+)\{([a-z_]+)(?:=|!)/g)) {
      const labels = shown.get(metric!);
      if (labels !== undefined)
        assert.match(labels, new RegExp(`\\b${label}=`), `${name}: ${metric} has no label ${label}`);
    }
  }
});
