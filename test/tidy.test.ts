// The house style as a test: first that the rules see what they should, then that src/ keeps them. What is put up with
// stands in tidy-exemptions.json with its reason; who owns a table that several features fill, in tidy-tables.json.
import assert from "node:assert/strict";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { checkCycles, checkFolders } from "./support/tidy-graph.ts";
import {
  applyExemptions,
  checkArchitecture,
  checkDocuments,
  checkExports,
  checkSource,
  checkTables,
  type Exemption,
  FEATURES,
  type GivenOwners,
  tablesOf,
  type Violation,
} from "./support/tidy-rules.ts";
import { closeParser, readSources } from "./support/tidy-source.ts";
import { checkMigration, checkStatements } from "./support/tidy-statements.ts";
import { checkDocstrings, checkWords } from "./support/tidy-words.ts";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/** Where words are looked for, beside the documents; what others wrote, and the words' own list, are not looked at. */
const SPOKEN = ["{src,bench,clients,dashboard,deploy,release,test}/**/*.{ts,tsx,md,css,yaml,sh}"];
const UNSPOKEN = ["**/node_modules/**", "**/dist/**", "test/tidy.test.ts", "test/support/tidy-words*.ts"];
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

after(closeParser);

/** The violations in one file as `rule: message`. */
function complaints(path: string, text: string): string[] {
  const [source] = readSources(new Map([[path, text]]));
  return checkSource(source!).map(({ rule, message }) => `${rule}: ${message}`);
}

function complainsOf(path: string, text: string, expected: RegExp): void {
  const all = complaints(path, `// Header.\n${text}\n`);
  assert.equal(all.length, 1, `${path}: ${text}\n${all.join("\n")}`);
  assert.match(all[0]!, expected);
}

function accepts(path: string, text: string): void {
  assert.deepEqual(complaints(path, `// Header.\n${text}\n`), [], `${path}: ${text}`);
}

describe("the import rule", () => {
  it("lets a feature import only features to its left", () => {
    accepts("src/sending/sending.ts", 'import { record } from "../events/events.ts";');
    complainsOf("src/events/events.ts", 'import { send } from "../sending/sending.ts";', /events comes before sending/);
    complainsOf("src/events/events.ts", 'import type { Sent } from "../sending/types.ts";', /comes before/);
    complainsOf("src/events/events.ts", 'export { send } from "../sending/sending.ts";', /comes before/);
    complainsOf("src/events/events.ts", 'const late = await import("../sending/sending.ts");', /comes before/);
  });

  it("shows of a feature only its face and its types", () => {
    accepts("src/sending/sending.ts", 'import type { Event } from "../events/types.ts";');
    complainsOf("src/sending/sending.ts", 'import * as q from "../events/queries.ts";', /are its face/);
    complainsOf("src/api/server.ts", 'import * as q from "../events/queries.ts";', /are its face/);
    accepts("src/events/events.ts", 'import * as q from "./queries.ts";');
    accepts("src/app.ts", 'import { startHooks } from "./webhooks/dispatch.ts";');
  });

  it("goes from main over app, api and features down to mail and platform", () => {
    complainsOf("src/events/events.ts", 'import { serve } from "../api/server.ts";', /feature may not import/);
    complainsOf(
      "src/platform/database/db.ts",
      'import { record } from "../../events/events.ts";',
      /platform may not import/,
    );
    complainsOf("src/mail/dsn/parse.ts", 'import type { Db } from "../../platform/db.ts";', /mail may not import/);
    complainsOf("src/api/server.ts", 'import { readConfig } from "../config.ts";', /api may not import/);
    accepts("src/domains/names.ts", 'import type { Config } from "../config.ts";');
    accepts("src/doctor.ts", 'import { checkNames } from "./doctor/names.ts";');
    complainsOf(
      "src/platform/database/db.ts",
      'import { isLocal } from "../../doctor/names.ts";',
      /platform may not import/,
    );
    accepts("src/mail/dsn/parse.ts", 'import { parseHead } from "../mime/parse-head.ts";');
    complainsOf(
      "src/platform/database/db.ts",
      'import { testApi } from "../../../test/support/api.ts";',
      /outside src/,
    );
    complainsOf("src/mail/a.ts", 'import { x } from "./b.fixture.ts";', /only tests use/);
    accepts("src/main.ts", 'import { addClientCommands } from "../clients/cli/cli.ts";');
    complainsOf("src/app.ts", 'import { addClientCommands } from "../clients/cli/cli.ts";', /outside src/);
    accepts("src/mail/a.test.ts", 'import { testApi } from "../../test/support/api.ts";');
  });

  it("keeps platform/ and mail/ apart, and lets both use text/", () => {
    complainsOf(
      "src/platform/net/a.ts",
      'import { parseHead } from "../../mail/mime/parse-head.ts";',
      /platform may not/,
    );
    accepts("src/platform/net/a.ts", 'import { tlsFailureWords } from "../../text/tls-words.ts";');
    accepts("src/mail/smtp/a.ts", 'import { tlsFailureWords } from "../../text/tls-words.ts";');
    complainsOf("src/text/a.ts", 'import { within } from "../platform/clock.ts";', /text\/ is pure/);
    accepts("src/http/a.ts", 'import { withAsciiDomain } from "../mail/address.ts";');
    complainsOf("src/http/a.ts", 'import { record } from "../events/events.ts";', /http may not import/);
    accepts("src/parsing/a.ts", 'import { writeForwards } from "../masked/rewrite/write-forwards.ts";');
    complainsOf("src/parsing/a.ts", 'import { carry } from "../masked/masked.ts";', /parsing may not import/);
  });

  it("keeps mail/ from the network, the disk and the database", () => {
    complainsOf("src/mail/a.ts", 'import { connect } from "node:net";', /mail\/ is pure/);
    complainsOf("src/mail/a.ts", 'import fs from "node:fs";', /mail\/ is pure/);
    complainsOf("src/mail/a.ts", 'import pg from "pg";', /mail\/ is pure/);
    accepts(
      "src/mail/a.ts",
      'import { isIP, type Socket } from "node:net";\nimport { createHash } from "node:crypto";',
    );
    accepts("src/platform/a.ts", 'import { connect } from "node:net";');
  });

  it("knows pure code by its path, wherever it is at home", () => {
    complainsOf("src/masked/rewrite/a.ts", 'import pg from "pg";', /rewrite\/ is pure/);
    complainsOf("src/masked/rewrite/a.ts", 'import { b } from "../queries.ts";', /rewrite\/ is pure/);
    complainsOf("src/masked/rewrite/a.ts", 'import type { Db } from "../../platform/db.ts";', /rewrite\/ is pure/);
    accepts("src/masked/rewrite/a.ts", 'import { parseHead } from "../../mail/mime/parse-head.ts";');
    accepts("src/masked/carry/a.ts", 'import { b } from "../rewrite/b.ts";');
  });

  it("keeps the leak gate apart from what it checks", () => {
    complainsOf("src/masked/rewrite/gate/a.ts", 'import { b } from "../scrub/b.ts";', /may not share code/);
    complainsOf("src/masked/rewrite/scrub/a.ts", 'import type { B } from "../gate/b.ts";', /may not share code/);
    accepts("src/masked/rewrite/reply.ts", 'import { a } from "./gate/a.ts";\nimport { b } from "./scrub/b.ts";');
  });

  it("knows every folder", () => {
    complainsOf("src/newsletter/newsletter.ts", "", /at home in no layer/);
    complainsOf("src/shared.ts", "", /at home in no layer/);
  });
});

describe("the caps", () => {
  const line = "  a();\n";

  it("are 500 lines a file and 70 a function", () => {
    accepts("src/mail/a.ts", `function f() {\n${line.repeat(68)}}`);
    complainsOf("src/mail/a.ts", `function f() {\n${line.repeat(69)}}`, /f has 71 lines/);
    complainsOf("src/mail/a.ts", `const f = () => {\n${line.repeat(69)}};`, /f has 71 lines/);
    complainsOf("src/mail/a.ts", `class A {\n m() {\n${line.repeat(69)}}\n}`, /m has 71 lines/);
    accepts("src/mail/a.test.ts", `it("x", () => {\n${line.repeat(69)}});`);
    accepts("src/mail/a.ts", "a();\n".repeat(498).trim());
    complainsOf("src/mail/a.test.ts", "a();\n".repeat(500).trim(), /has 501 lines/);
  });

  it("are 200 characters a regular expression", () => {
    accepts("src/mail/a.ts", `const a = /${"a".repeat(198)}/;`);
    complainsOf("src/mail/a.ts", `const a = /${"a".repeat(199)}/;`, /has 201 characters/);
  });

  it("are four parameters", () => {
    accepts("src/mail/a.ts", "function f(this: A, a: 1, b: 1, c: 1, d: 1) {}");
    complainsOf("src/mail/a.ts", "const f = (a: 1, b: 1, c: 1, d: 1, e: 1) => 1;", /f has 5 parameters/);
    complainsOf("src/mail/a.ts", "class A { m(a: 1, b: 1, c: 1, d: 1, e: 1) {} }", /m has 5 parameters/);
    accepts("src/mail/a.ts", "type F = (a: 1, b: 1, c: 1, d: 1, e: 1) => 1;");
  });
});

describe("the language and its names", () => {
  it("are what Node runs with the types erased, without default exports and barrels", () => {
    complainsOf("src/mail/a.ts", "export default function f() {}", /export default/);
    complainsOf("src/mail/a.ts", "const a = 1; export default a;", /export default/);
    complainsOf("src/mail/a.ts", "enum A { B }", /enum/);
    complainsOf("src/mail/a.ts", "namespace A { export const b = 1; }", /namespace/);
    complainsOf("src/mail/a.ts", "class A { constructor(readonly b: string) {} }", /parameter property/);
    complainsOf("src/mail/a.ts", "@sealed class A {}", /decorator/);
    accepts("src/platform/a.ts", 'declare module "fastify" { interface FastifyRequest { a: 1 } }');
    complainsOf("src/mail/index.ts", "", /barrel/);
    complainsOf("src/mail/parseHead.ts", "", /kebab-case/);
  });

  it("say something", () => {
    complainsOf("src/mail/mail-utils.ts", "", /says nothing: utils/);
    complainsOf("src/mail/common.ts", "", /says nothing: common/);
    complainsOf("src/mail/a.ts", "export function dnsHelper() {}", /says nothing: helper/);
    complainsOf("src/mail/a.ts", "export type DomainInfo = {};", /says nothing: info/);
    complainsOf("src/mail/a.ts", "export const data = 1;", /says nothing: data/);
    complainsOf("src/mail/a.ts", "class QueueManager {}\nexport { QueueManager };", /says nothing: manager/);
    accepts("src/mail/a.ts", "export function sendData() {}\nexport type Database = {};\nexport const baseUrl = 1;");
  });

  it("stand below a header", () => {
    assert.deepEqual(complaints("src/mail/a.ts", "export const a = 1;\n"), [
      "header: does not begin by saying what it does",
    ]);
  });
});

describe("the world", () => {
  const cases: [text: string, what: RegExp][] = [
    ["const a = Date.now();", /the clock/],
    ["const a = new Date();", /the clock/],
    ["const a = performance.now();", /the clock/],
    ["const a = Math.random();", /randomness/],
    ["const a = crypto.randomUUID();", /randomness/],
    ['import { createHash, randomBytes } from "node:crypto";', /randomness/],
    ['import { resolveMx } from "node:dns/promises";', /DNS/],
    ['const a = await fetch("https://example.eu");', /fetch/],
    ["await new Promise((resolve) => setTimeout(resolve, 20));", /sleeping/],
    ["await new Promise<void>((done) => { setTimeout(() => done(), 20); });", /sleeping/],
    ['import { setTimeout as sleep } from "node:timers/promises";', /sleeping/],
  ];

  it("comes in through World everywhere but in platform/, main.ts and tests", () => {
    for (const [text, what] of cases) {
      complainsOf("src/events/events.ts", text, what);
      accepts("src/platform/a.ts", text);
      accepts("src/main.ts", text);
      accepts("src/events/events.test.ts", text);
    }
  });

  it("is not meant by dates that are given, time limits, and functions that were passed in", () => {
    accepts("src/events/events.ts", "const a = new Date(0); const b = (at: Date) => at.getTime();");
    accepts("src/events/events.ts", "const a = new Promise((_, reject) => setTimeout(() => reject(new Error()), 20));");
    accepts("src/events/events.ts", "const a = (fetch: () => void) => fetch();");
    accepts("src/mail/a.ts", 'import { setImmediate } from "node:timers/promises";');
  });

  it("has one reader of the environment", () => {
    complainsOf("src/events/events.ts", "const a = process.env.HOME;", /only config\.ts/);
    complainsOf("src/platform/a.ts", "const { HOME } = process.env;", /only config\.ts/);
    complainsOf("src/platform/a.ts", 'import { env } from "node:process";', /only config\.ts/);
    accepts("src/config.ts", "const a = process.env.HOME;");
  });
});

describe("tables", () => {
  function tableComplaints(files: Record<string, string>, given: GivenOwners = {}): string[] {
    const tables = tablesOf(["create table event (id uuid);\nCREATE TABLE IF NOT EXISTS public.event_day ();"]);
    const violations = checkTables(readSources(new Map(Object.entries(files))), tables, given);
    return violations.map(({ path, message }) => `${path}: ${message}`);
  }
  const owner = { "src/events/queries.ts": "const a = `insert into event (id) values ($1)`;" };

  it("are named only in the queries of the feature that fills them", () => {
    assert.deepEqual(
      tableComplaints({ ...owner, "src/events/queries-day.ts": 'const a = "select 1 from event";' }),
      [],
    );
    assert.deepEqual(tableComplaints({ ...owner, "src/events/list.ts": 'const a = "select 1 from event e";' }), [
      "src/events/list.ts: names event in SQL outside a queries file",
    ]);
    assert.deepEqual(
      tableComplaints({ ...owner, "src/stats/queries.ts": "const a = `select 1 from a join event e on $" + "{1}`;" }),
      ["src/stats/queries.ts: event belongs to events"],
    );
  });

  it("have one owner, derived or given", () => {
    const both = { ...owner, "src/stats/queries.ts": 'const a = "insert into event values (1)";' };
    assert.equal(tableComplaints(both).length, 2);
    assert.deepEqual(tableComplaints(both, { event: { owners: ["stats"], reason: "the test says so" } }), [
      "src/events/queries.ts: event belongs to stats",
    ]);
  });

  it("are not meant by a name in a sentence, nor by a query's own name", () => {
    const prose = 'const a = "the address was removed from event lists";';
    const own = 'const a = "with event as (select 1) select * from event";';
    assert.deepEqual(tableComplaints({ ...owner, "src/stats/stats.ts": prose, "src/stats/queries.ts": own }), []);
  });
});

describe("statements", () => {
  function complainsOfStatement(text: string, expected: RegExp): void {
    const sources = readSources(new Map([["src/events/queries.ts", `const a = \`${text}\`;`]]));
    assert.match(sources.flatMap(checkStatements)[0]?.message ?? "", expected, text);
  }

  it("change rows with parameters and the statement's own time alone", () => {
    complainsOfStatement("update event set at = clock_timestamp() where id = $1", /clock_timestamp/);
    complainsOfStatement("delete from event where date_trunc('day', at) = $1", /date_trunc/);
    complainsOfStatement("update event set seen = true where concat_ws(' ', a, b) ~ $1", /concat_ws/);
    complainsOfStatement("update event set at = $1 returning day::text", /returning/);
    complainsOfStatement("update event set seen = true where made_at + interval '1 day' < $1", /stable function/);
    complainsOfStatement("update event e set at = random() from x where e.id = x.id", /random/);
    complainsOfStatement("delete from event where at < clock_timestamp()", /clock_timestamp/);
    complainsOfStatement("update event set n = pg_current_xact_id() where id = $1", /does not keep them/);
    complainsOfStatement("insert into event (n) select txid_current() returning 1", /does not keep them/);
    complainsOfStatement("delete from event where n < pg_snapshot_xmin(pg_current_snapshot())", /does not keep them/);
    complainsOfStatement("select 1 from event where n < pg_snapshot_xmin(pg_current_snapshot())", /^$/);
    const conflict = "insert into event (id) values ($1) on conflict (id) do update set id = gen_random_uuid()";
    complainsOfStatement(conflict, /gen_random_uuid/);
    complainsOfStatement("update event set at = statement_timestamp(); select clock_timestamp()", /^$/);
    complainsOfStatement("insert into event (id) select gen_random_uuid() returning 1", /^$/);
    complainsOfStatement("insert into event (id) select id from other", /without `returning`/);
  });

  it("of a migration make no triggers, and policies by procedures", () => {
    const found = (text: string, number = "0300") =>
      checkMigration(`migrations/${number}_a.sql`, text).map(({ message }) => message.slice(0, 15));
    assert.deepEqual(found("create trigger a before insert on b"), ["makes a trigger"]);
    assert.deepEqual(found("create policy a on b using ((select postern_system()))"), ["makes a policy "]);
    assert.deepEqual(
      found("-- create trigger\ncall protect_tenant_table('b'); create policy a on b using (false);"),
      [],
    );
    assert.deepEqual(found("create trigger a before insert on b", "0100"), []);
  });
});

describe("exports", () => {
  function idle(files: Record<string, string>, beside: Record<string, string> = {}): string[] {
    const [sources, others] = [files, beside].map((texts) => readSources(new Map(Object.entries(texts))));
    return checkExports(sources!, others!).map(({ path, message }) => `${path}: ${message}`);
  }
  const home = { "src/mail/a.ts": "export function f() {}\nexport const LIMIT = 1;" };

  it("are imported by somebody, under whatever name, by the program, its tests or its benches", () => {
    assert.deepEqual(idle(home), ["src/mail/a.ts: nobody imports f", "src/mail/a.ts: nobody imports LIMIT"]);
    const user = (path: string, text: string) => idle({ ...home, [path]: text });
    assert.deepEqual(user("src/events/events.ts", 'import { f as g, LIMIT } from "../mail/a.ts";'), []);
    assert.deepEqual(user("src/mail/a.test.ts", 'import { f } from "./a.ts";'), [
      "src/mail/a.ts: only tests import f",
      "src/mail/a.ts: nobody imports LIMIT",
    ]);
    assert.deepEqual(idle(home, { "bench/a.ts": 'import { f, LIMIT } from "../src/mail/a.ts";' }), []);
    assert.deepEqual(idle(home, { "bench/a.ts": 'const { f } = await import("../src/mail/a.ts");' }), []);
    assert.deepEqual(idle(home, { "bench/a.ts": 'type A = typeof import("../src/mail/a.ts");' }), []);
  });

  it("that only tests import are used where they stand", () => {
    const test = { "test/a.test.ts": 'import { f } from "../src/mail/a.ts";' };
    const user = { "src/mail/b.ts": 'import { g } from "./a.ts";' };
    const used = "export function f() {}\nexport const g = () => f();";
    assert.deepEqual(idle({ ...user, "src/mail/a.ts": used }, test), []);
    assert.deepEqual(idle({ ...user, "src/mail/a.ts": used.replace("=> f()", "=> 1") }, test), [
      "src/mail/a.ts: only tests import f",
    ]);
  });

  it("of a namespace are used by name, unless it is passed on whole", () => {
    const user = (use: string) => idle({ ...home, "src/mail/b.ts": `import * as a from "./a.ts";\n${use}` });
    assert.deepEqual(user("[...a.f(), a.LIMIT];"), []);
    assert.deepEqual(user("a.f(); b.a.LIMIT;"), ["src/mail/a.ts: nobody imports LIMIT"]);
    assert.deepEqual(user("show(a);"), []);
    assert.deepEqual(user("show({ a });"), []);
    assert.deepEqual(user('// It has a name: a.\nshow("/v1/a", { a: 1 }.a, a.f());'), [
      "src/mail/a.ts: nobody imports LIMIT",
    ]);
    assert.deepEqual(
      idle({ "src/mail/a.ts": "export type T = 1;", "src/mail/b.ts": 'import * as a from "./a.ts";\nlet x: a.T;' }),
      [],
    );
  });

  it("that pass on what others export are imported too", () => {
    const face = { "src/events/events.ts": 'export { f, type T } from "./log.ts";' };
    const log = { "src/events/log.ts": "export function f() {}\nexport type T = 1;" };
    assert.deepEqual(idle({ ...face, ...log }), [
      "src/events/events.ts: nobody imports f",
      "src/events/events.ts: nobody imports T",
    ]);
    const user = { "src/sending/sending.ts": 'import { f } from "../events/events.ts";' };
    assert.deepEqual(idle({ ...face, ...log, ...user }), ["src/events/events.ts: nobody imports T"]);
  });

  it("may be types that other exports are made of", () => {
    const used = { "src/mail/b.ts": 'import { f } from "./a.ts";' };
    const made = "export type Shape = 1;\nexport function f(): Shape { return 1; }";
    assert.deepEqual(idle({ ...used, "src/mail/a.ts": made }), []);
    assert.deepEqual(idle({ ...used, "src/mail/a.ts": "export type Shape = 1;\nexport function f() {}" }), [
      "src/mail/a.ts: nobody imports Shape",
    ]);
  });
});

describe("what readers are referred to", () => {
  it("is in this repository", () => {
    complainsOf("src/mail/a.ts", "// As completions §2 has it.", /not in this repository: completions §/);
    complainsOf("src/mail/a.test.ts", 'const why = "design/masked.md";', /not in this repository/);
    accepts("src/mail/a.ts", "// Rule 3 of docs/reliability.md; RFC 5321 §4.1.");
  });

  it("is there under its name", () => {
    const text = "| a | `src/mail/a.ts`, `docs/` |\n| b | `src/mail/gone.ts`, `npm test` |";
    const documents = new Map([["docs/rfcs.md", text]]);
    assert.deepEqual(
      checkDocuments(documents, (path) => ["src/mail/a.ts", "docs/"].includes(path)).map(
        ({ line, message }) => `${line}: ${message}`,
      ),
      ["2: names src/mail/gone.ts, which is not there"],
    );
  });
});

describe("the tree", () => {
  const read = (files: Record<string, string>) => readSources(new Map(Object.entries(files)));

  it("has no imports in a circle, of values or of types", () => {
    const files = {
      "src/a/one.ts": 'import type { Two } from "./two.ts";',
      "src/a/two.ts": 'import { three } from "../b/three.ts";',
      "src/b/three.ts": 'import { one } from "../a/one.ts"; import { four } from "./four.ts";',
      "src/b/four.ts": 'import { five } from "./five.ts";',
      "src/b/three.test.ts": 'import { three } from "./three.ts";',
    };
    assert.deepEqual(
      checkCycles(read(files)).map(({ path, message }) => `${path} ${message}`),
      ["src/a/one.ts imports in a circle with src/a/two.ts, src/b/three.ts"],
    );
  });

  it("has at most twenty files of the product in a folder", () => {
    const folder = (name: string, files: number, tests: number) => [
      ...Array.from({ length: files }, (_, n) => [`src/${name}/f${n}.ts`, "// F.\n"]),
      ...Array.from({ length: tests }, (_, n) => [`src/${name}/f${n}.test.ts`, "// F.\n"]),
    ];
    const files = Object.fromEntries([...folder("full", 20, 20), ...folder("over", 21, 0)]);
    assert.deepEqual(
      checkFolders(read(files)).map(({ path }) => path),
      ["src/over"],
    );
  });
});

describe("exemptions", () => {
  it("cover one rule in one file, and are reported once nothing needs them", () => {
    const violation: Violation = { rule: "size", path: "src/a.ts", line: 1, message: "has 501 lines" };
    const exemption: Exemption = { rule: "size", path: "src/a.ts", reason: "a table" };
    assert.deepEqual(applyExemptions([violation], [exemption]), []);
    assert.equal(applyExemptions([violation], [{ ...exemption, rule: "names" }]).length, 2);
    assert.match(applyExemptions([], [exemption])[0]!.message, /need not be/);
  });
});

describe("this repository", () => {
  const readAll = (...patterns: string[]) =>
    readSources(new Map(globSync(patterns, { cwd: ROOT }).map((path) => [path.replaceAll("\\", "/"), read(path)])));
  const sources = readAll("src/**/*.ts");
  const beside = readAll("test/**/*.ts", "bench/**/*.ts");
  const exemptions: Exemption[] = JSON.parse(read("test/tidy-exemptions.json"));

  it("keeps the house style", () => {
    const files = globSync("migrations/[0-9]*.sql", { cwd: ROOT });
    const migrations = files.map(read);
    const folders = globSync("src/**/", { cwd: ROOT }).filter((folder) => folder !== "src");
    const architecture = existsSync(join(ROOT, "ARCHITECTURE.md")) ? read("ARCHITECTURE.md") : null;
    const pages = globSync(["*.md", "docs/**/*.md"], { cwd: ROOT, exclude: ["CHANGELOG.md"] });
    const spoken = globSync([...SPOKEN, ...pages], { cwd: ROOT, exclude: UNSPOKEN });
    const texts = new Map(spoken.map((path) => [path.replaceAll("\\", "/"), read(path)]));
    const documents = new Map(pages.map((path) => [path.replaceAll("\\", "/"), read(path)]));
    const violations = [
      ...sources.flatMap(checkSource),
      ...sources.flatMap(checkStatements),
      ...files.flatMap((path) => checkMigration(path.replaceAll("\\", "/"), read(path))),
      ...checkCycles(sources),
      ...checkFolders(sources),
      ...checkExports(sources, beside),
      ...checkTables(sources, tablesOf(migrations), JSON.parse(read("test/tidy-tables.json"))),
      ...checkArchitecture(folders, architecture),
      ...checkDocuments(documents, (path) => existsSync(join(ROOT, path))),
      ...checkWords(texts),
      ...checkDocstrings(texts),
    ];
    const open = applyExemptions(violations, exemptions);
    const lines = open.map(({ rule, path, line, message }) => `${path}:${line} ${rule}: ${message}`);
    assert.equal(open.length, 0, `${open.length} departures from the house style\n${lines.join("\n")}`);
  });

  it("gives every exemption a reason", () => {
    assert.deepEqual(
      exemptions.filter(({ reason }) => !reason || reason.length < 20),
      [],
    );
  });

  it("has a face in every feature folder", () => {
    const present = readdirSync(join(ROOT, "src")).filter((name) => FEATURES.includes(name));
    assert.deepEqual(
      present.filter((name) => !existsSync(join(ROOT, "src", name, `${name}.ts`))),
      [],
    );
  });
});
