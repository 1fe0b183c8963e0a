// How long the first page of every list takes, and each filter of it: of 1,000 rows, of 1,000 rows beside the million of another
// organization, and of 1,000,000 e-mails, 200,000 suppressions, 10,000 deliveries and as much of the rest as belongs to them. The
// lists and their filters are those of the served description, and those of operators. Requests in process, through authentication to the answer's text.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bootstrap } from "../src/accounts/accounts.ts";
import { newSecret, secretDigest } from "../src/accounts/keys.ts";
import { insertKey, insertOrganization } from "../src/accounts/queries.ts";
import { createHttpServer, type HttpServer } from "../src/api/server.ts";
import { createEngine, mountFeatures } from "../src/app.ts";
import { readConfig } from "../src/config.ts";
import { packReceived } from "../src/inbound/search/pack.ts";
import { indexPastDays } from "../src/platform/database/day-indexes.ts";
import { createLog } from "../src/platform/process/log.ts";
import type { World } from "../src/platform/world.ts";
import { packPastDays } from "../src/sending/search/pack.ts";
import { openWorld } from "../src/world.ts";
import { startDnsServer } from "../test/support/dns-server.ts";
import { DAYS, fillOrganization, oneOf, type Sizes, sizesFor } from "./lists/fill.ts";
import { fillOperators, operatorQuestions } from "./lists/operators.ts";
import { type Description, type List, listsOf } from "./lists/questions.ts";
import { type BenchResult, conditions, fillIn, makeFolder, postmasterOf, round } from "./support/bench.ts";
import { percentile } from "./support/load.ts";
import { processorSeconds } from "./support/processor.ts";

const FEW = 1_000;
const OTHERS = 8;
/** What the first page of a list, and each filter of it, may take. */
const P95_MS_MAX = 300;
const ASKED = 20;
/** A question that takes seconds is asked less often: at least three times. */
const LONG_MS = 5_000;
const DAY_MS = 86_400_000;
const PAGE = 50;
const NOT_ASKED = { p50: 0, p95: 0, processor_ms: 0, total: "not asked" };

type Organization = { org_id: string; key: string };
type Question = { operation: string; asks: string; url: string };
/** `processor_ms`: of this process and the database, a question. */
type Taken = { p50: number; p95: number; processor_ms: number; total: string };
type Row = { operation: string; asks: string; taken: Taken[] };

/** `keep`: a folder whose database stays, and is not filled again by the next run. `only`: the operations that are asked. */
export type ListsOptions = { rows?: number; keep?: string; only?: string };

/** Fills some 60 µs an e-mail, and asks. */
export async function benchLists({ rows = 1_000_000, keep, only }: ListsOptions = {}): Promise<BenchResult> {
  const { dir, remove } = keep === undefined ? makeFolder() : keptFolder(keep);
  const log = createLog({ level: "silent", role: "bench" });
  const dns = await startDnsServer();
  const opened = await openWorld(readConfig({ POSTERN_DATA: dir, POSTERN_DNS: dns.address }), log);
  const { world } = opened;
  const server = await createHttpServer(world, (api) => mountFeatures(api, world, createEngine(world)));
  try {
    const startedAt = performance.now();
    const kept = join(dir, "filled.json");
    const isFilled = existsSync(kept);
    const processor = () => processorSeconds([process.pid, postmasterOf(dir) ?? process.pid]);
    const stage = { world, server, database_url: opened.database_url, only, processor };
    const { few, many, alone } = isFilled
      ? { ...(JSON.parse(readFileSync(kept, "utf8")) as { few: Organization; many: Organization }), alone: [] }
      : await fillAll(stage, rows);
    if (keep !== undefined && !isFilled) writeFileSync(kept, JSON.stringify({ few, many }));
    await workOnPastDays(stage);
    const fill_seconds = isFilled ? 0 : round((performance.now() - startedAt) / 1000);
    const beside = await askAll(stage, few);
    const large = [...(await askAll(stage, many)), ...(await askOperators(stage))];
    const table = large.map(({ operation, asks, taken }) => {
      const same = (rows: Row[]) =>
        rows.find((row) => row.operation === operation && row.asks === asks)?.taken ?? [NOT_ASKED];
      return { operation, asks, taken: [...same(alone), ...same(beside), ...taken] };
    });
    console.log(toText(table, rows));
    return {
      name: "lists",
      conditions: conditions({ rows }),
      ours: { fill_seconds, ...summary(table) },
      peers: {},
      ratio: {},
    };
  } finally {
    await server.stop();
    await opened.close();
    await dns.stop();
    remove();
  }
}

type Stage = {
  world: World;
  server: HttpServer;
  database_url: string;
  only: string | undefined;
  processor(): number;
};

function keptFolder(dir: string): { dir: string; remove(): void } {
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  const end = (): void => {
    const postmaster = postmasterOf(dir);
    if (postmaster !== null) process.kill(postmaster, "SIGQUIT");
  };
  process.once("exit", end);
  return { dir, remove: () => void process.off("exit", end) };
}

/** Two organizations that are asked, the first also before there is anything else, and others beside them. */
async function fillAll(stage: Stage, rows: number) {
  const { world, database_url } = stage;
  await bootstrap(world, { live_key: null, test_key: null });
  const fill = (organization: Organization, sizes: Sizes) =>
    fillIn(database_url, async (db) => {
      const now = world.clock.now();
      const days = [now - (DAYS + 1) * DAY_MS, now + DAY_MS].map(
        (ms) => `'${new Date(ms).toISOString().slice(0, 10)}'`,
      );
      await db.execute(`call make_day_partitions(${days})`);
      const sealed = sealedFor(world, organization);
      await fillOrganization(db, { org_id: organization.org_id, sealed, now_ms: now }, sizes);
    });
  const [few, many] = [await addOrganization(world), await addOrganization(world)];
  const thousand = Object.fromEntries(Object.keys(sizesFor(FEW)).map((name) => [name, FEW])) as Sizes;
  await fill(few, thousand);
  await workOnPastDays(stage);
  const alone = await askAll(stage, few);
  console.log(`  filling in ${rows} e-mails and what belongs to them`);
  await fill(many, sizesFor(rows));
  for (let n = 0; n < OTHERS; n += 1) await fill(await addOrganization(world), sizesFor(Math.ceil(rows / 100)));
  await fillIn(database_url, (db) => fillOperators(db, many.org_id, sizesFor(rows).others));
  return { few, many, alone };
}

/** What the role `clock` does within hours. Elsewhere no mail is added to a day that is over: here to days that were packed. */
async function workOnPastDays({ world, database_url }: Stage): Promise<void> {
  await fillIn(database_url, (db) => db.execute("delete from message_texts_day"));
  await indexPastDays(world);
  await packPastDays(world);
  await packReceived(world);
  await fillIn(database_url, (db) => db.execute("vacuum analyze"));
}

async function addOrganization(world: World): Promise<Organization> {
  const org_id = world.random.uuid();
  await insertOrganization(world.db, { id: org_id, name: `org ${org_id}`, plan: "enterprise", state: "active" });
  const key = newSecret(world.random, "live");
  await insertKey(world.db, org_id, {
    ...{ id: world.random.uuid(), name: "live", environment: "live", digest: secretDigest(key) },
    ...{ key_prefix: key.slice(0, 12), last_four: key.slice(-4), created_at: new Date(world.clock.now()) },
  });
  return { org_id, key };
}

/** An address of a masked destination or contact, as the product stores it. */
function sealedFor(world: World, { org_id }: Organization): Buffer {
  const address = { email: "r@lists.example", name: null, reply_local: "r" };
  return world.seal.seal(Buffer.from(JSON.stringify(address)), `masked:${org_id}`);
}

async function askAll(stage: Stage, organization: Organization): Promise<Row[]> {
  const { world, server, only } = stage;
  const described = (await server.app.inject({ url: "/openapi.json" })).json() as Description;
  const rows: Row[] = [];
  const lists = listsOf(described, oneOf(organization.org_id), world.clock.now());
  for (const list of lists.filter(({ operation }) => only === undefined || operation === only))
    for (const question of await questionsOf(server, organization, list))
      rows.push({
        operation: question.operation,
        asks: question.asks,
        taken: [await measure(stage, () => read(server, organization, question))],
      });
  return rows;
}

/** The page behind the middle of the list is looked for by its place first, as no reader does. */
async function questionsOf(server: HttpServer, organization: Organization, list: List): Promise<Question[]> {
  const { operation, pages } = list;
  const path = list.path.replace("{id}", oneOf(organization.org_id));
  const begin = list.begins ? `after=${list.begins}&` : "";
  if (path.includes("{")) throw new Error(`what ${list.path} stands for is not known here (bench/lists.ts)`);
  const ask = (asks: string, query: string): Question => ({
    operation,
    asks,
    url: `${path}?${query.startsWith("after=") ? "" : begin}${query}`,
  });
  // Ids are each organization's own.
  const one = oneOf(organization.org_id);
  const known = new Map([
    [one, "(used)"],
    [`${one.slice(0, -2)}00`, "(unused)"],
  ]);
  const shown = (value: string) =>
    known.get(value) ?? (value.length > 60 ? `(${value.split(",").length} of them)` : value);
  const filters = list.filters.flatMap(({ name, values }) =>
    values.map((value) => ask(`${name}=${shown(value)}`, `${name}=${encodeURIComponent(value)}`)),
  );
  const first = await read(server, organization, ask("", "limit=1"));
  const middle = Math.floor(Number(first.total ?? 0) / 2);
  if (pages === "offset") return [ask("(first page)", ""), ask("(second page)", `offset=${PAGE}`), ...filters];
  const [before] = rowsOf(
    await read(server, organization, ask("", middle === 0 ? "limit=1" : `limit=1&offset=${middle}`)),
  );
  const deep = before?.id ? [ask("(page in the middle)", `after=${before.id}`)] : [];
  return [ask("(first page)", ""), ...deep, ...filters];
}

type Page = { total?: number; total_is_at_least?: boolean };

function rowsOf(page: Page): { id?: string }[] {
  return (Object.values(page).find(Array.isArray) ?? []) as { id?: string }[];
}

async function read(server: HttpServer, { key }: Organization, { url }: Question): Promise<Page> {
  const answer = await server.app.inject({ url, headers: { authorization: `Bearer ${key}` } });
  // A statement that ran out of time: it counts as long as it took.
  if (answer.statusCode === 503) return {};
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}: ${answer.body}`);
  return answer.json();
}

async function askOperators(stage: Stage): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { operation, asks, ask } of operatorQuestions(stage.world))
    if (stage.only === undefined || operation.startsWith(stage.only))
      rows.push({ operation, asks, taken: [await measure(stage, ask)] });
  return rows;
}

async function measure({ processor }: Stage, ask: () => Promise<Page>): Promise<Taken> {
  const page = await ask();
  const times: number[] = [];
  const [startedAt, used] = [performance.now(), processor()];
  while (times.length < ASKED && (times.length < 3 || performance.now() - startedAt < LONG_MS)) {
    const at = performance.now();
    await ask();
    times.push(performance.now() - at);
  }
  const processor_ms = ((processor() - used) * 1000) / times.length;
  return { p50: percentile(times, 50), p95: percentile(times, 95), processor_ms, total: totalOf(page) };
}

function totalOf(page: Page): string {
  if (Object.keys(page).length === 0) return "no answer";
  return page.total === undefined ? `${rowsOf(page).length}+` : `${page.total}${page.total_is_at_least ? "+" : ""}`;
}

function summary(table: Row[]): Record<string, number> {
  const last = table.map(({ taken }) => taken.at(-1)?.p95 ?? 0);
  const slow = last.filter((ms) => ms > P95_MS_MAX).length;
  const questions = { lists: new Set(table.map(({ operation }) => operation)).size, questions: table.length };
  const processor = table.map(({ taken }) => taken.at(-1)?.processor_ms ?? 0);
  const most_processor_ms = round(Math.max(...processor), 1);
  return {
    ...questions,
    over_300_ms: slow,
    most_processor_ms,
    slowest_p95_ms: round(Math.max(...last), 1),
    ok: slow === 0 ? 1 : 0,
  };
}

function toText(table: Row[], rows: number): string {
  const cells = table.map(({ operation, asks, taken }) => [
    operation,
    asks,
    ...taken.flatMap(({ p50, p95, processor_ms, total }) => [
      total,
      ...[p50, p95, processor_ms].map((ms) => ms.toFixed(1)),
    ]),
    (taken.at(-1)?.p95 ?? 0) > P95_MS_MAX ? "OVER" : "",
  ]);
  const head = [
    "operation",
    "asked",
    ...[FEW, `${FEW} beside`, rows].flatMap((name) => [`${name}:`, "p50", "p95", "processor"]),
    "",
  ];
  const all = [head, ...cells];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all
    .map((row) =>
      `  ${row.map((text, at) => (at < 2 ? text.padEnd(widths[at]!) : text.padStart(widths[at]!))).join("  ")}`.trimEnd(),
    )
    .join("\n");
}
