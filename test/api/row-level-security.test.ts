// The second wall of tenancy: statements that forget the organization see nothing. Every statement that the API runs for
// one organization is recorded, then run as another one: as it is, with the other's parameter, and with its conditions
// on the organization taken out. Not here: the first wall (isolation.test.ts).
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import type { Tx } from "../../src/platform/database/db.ts";
import type { World } from "../../src/platform/world.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { operationsOf, readDescription } from "./operations.ts";
import { BODIES, makeNamed, type Owner, ownerOf, paramsOf, QUERIES } from "./resources.ts";

/** Tables with an organization's rows that no policy guards, each with its reason. */
const UNGUARDED: Record<string, string> = {};

type Statement = { text: string; values: readonly unknown[] };

let dns: DnsServer;
let api: TestApi;
let victim: Owner;
let victim_id: string;
let stranger_id: string;
const statements = new Map<string, Statement>();

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => recording(world));
  const made = await api.organization();
  victim_id = made.org_id;
  stranger_id = api.org_id;
  victim = ownerOf(api, dns, made.live_key, "victimcanary");
  const stranger = ownerOf(api, dns, api.live_key, "strangers");
  await makeNamed(stranger, "/v1/domains/{id}");
  await useEverything();
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

/** Records what runs inside `asOrg` for the victim, the last values of each text. */
function recording(world: World): World {
  const asOrg: World["db"]["asOrg"] = (orgId, work) =>
    world.db.asOrg(orgId, (tx) => {
      const note = (text: string, values: readonly unknown[] = []) => {
        if (orgId === victim_id) statements.set(text, { text, values });
      };
      const noted = {
        query(text: string, values?: readonly unknown[]) {
          note(text, values);
          return tx.query(text, values);
        },
        execute(text: string, values?: readonly unknown[]) {
          note(text, values);
          return tx.execute(text, values);
        },
      } as Tx;
      return work(noted);
    });
  return { ...world, db: { ...world.db, asOrg } };
}

/** Every operation once, deletions last of all, so that there is something to see for each statement. */
async function useEverything(): Promise<void> {
  const all = operationsOf(await readDescription(api));
  const byDeletion = [
    ...all.filter(({ method }) => method !== "DELETE"),
    ...all.filter(({ method }) => method === "DELETE"),
  ];
  for (const { method, name, path } of byDeletion) {
    if (name === "DELETE /v1/domains/{id}") continue;
    const [names = {}] = path.includes("{") ? await makeNamed(victim, path) : [];
    const url = paramsOf(path).reduce(
      (text, param) => text.replace(`{${param}}`, encodeURIComponent(names[param] ?? "")),
      path,
    );
    const query = QUERIES[name] ? `?${QUERIES[name]}` : "";
    await api.ask(method, url + query, await BODIES[name]?.(victim), { key: victim.key });
  }
  // What was deleted is there again, so that every table holds rows of the victim.
  const deletions = all.filter(({ method, path }) => method === "DELETE" && path.includes("{"));
  for (const { path } of deletions) await makeNamed(victim, path);
}

/** Runs a statement as an organization on a connection like a request's; what it changes is rolled back. */
async function runAs(client: pg.Client, orgId: string | null, { text, values }: Statement) {
  await client.query(orgId === null ? "begin" : `begin; set local postern.org_id = '${orgId}'`);
  try {
    const { rows, rowCount, command } = await client.query(text, values as unknown[]);
    return { rows, touched: command === "SELECT" ? 0 : (rowCount ?? 0), refused: false };
  } catch (error) {
    const code = (error as { code?: string }).code;
    // Row-level security refuses a new row (42501); a constraint or a type may refuse a statement that was cut about.
    return { rows: [], touched: 0, refused: code === "42501", error: code };
  } finally {
    await client.query("rollback");
  }
}

/** Takes the statement's conditions on the organization out; its other conditions stay. */
function forgetOrganization({ text, values }: Statement): Statement | null {
  const condition = /(?:\b\w+\.)?\borg_id\s*=\s*(\$\d+|\w+\.org_id)/g;
  const cut = text.replace(condition, (_all, right: string) =>
    right.startsWith("$") ? `${right}::uuid is not null` : "true",
  );
  return cut === text ? null : { text: cut, values };
}

/** Makes every id that is asked for the victim's organization the stranger's. */
function asStranger({ text, values }: Statement): Statement {
  const swap = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(swap) : value === victim_id ? stranger_id : value;
  return { text, values: values.map(swap) };
}

function shows(rows: unknown[]): boolean {
  const seen = JSON.stringify(rows, (_key, value) =>
    value?.type === "Buffer" ? Buffer.from(value.data).toString("latin1") : value,
  );
  return seen.includes(victim.mark) || seen.includes(victim_id);
}

describe("row-level security", () => {
  let client: pg.Client;

  before(async () => {
    client = new pg.Client({ connectionString: api.database_url });
    await client.connect();
  });

  after(async () => {
    await client?.end();
  });

  it("binds the role that owns the tables", async () => {
    const { rows } = await client.query("select rolsuper, rolbypassrls from pg_roles where rolname = current_user");
    assert.deepEqual(rows, [{ rolsuper: false, rolbypassrls: false }]);
  });

  it("is forced on every table with an organization, with a policy", async () => {
    const { rows } = await client.query(
      `select c.relname as name, c.relrowsecurity and c.relforcerowsecurity as forced,
              exists (select 1 from pg_policy p where p.polrelid = c.oid) as has_policy
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped
        where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace order by 1`,
    );
    const open = rows.filter(({ name, forced, has_policy }) => !(forced && has_policy) && !UNGUARDED[name]);
    assert.deepEqual(
      open.map(({ name }) => name),
      [],
      "call protect_tenant_table('…') in the migration that makes them",
    );
    const needless = Object.keys(UNGUARDED).filter((name) => !rows.some((row) => row.name === name && !row.forced));
    assert.deepEqual(needless, [], "UNGUARDED holds what is guarded or gone");
    assert.ok(rows.length >= 15, `only ${rows.length} tables were found`);
  });

  it("shows no row to a connection that says for whom it asks", async () => {
    const { rows } = await client.query(
      `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
        where c.relkind in ('r', 'p') and not c.relispartition and c.relforcerowsecurity`,
    );
    let filled = 0;
    for (const { name } of rows) {
      const nobody = await runAs(client, null, { text: `select * from "${name}"`, values: [] });
      assert.equal(nobody.rows.length, 0, `${name} shows rows without an organization`);
      const stranger = await runAs(client, stranger_id, { text: `select * from "${name}"`, values: [] });
      assert.ok(!shows(stranger.rows), `${name} shows another organization's rows`);
      const own = await runAs(client, victim_id, { text: `select * from "${name}"`, values: [] });
      if (own.rows.length > 0) filled += 1;
    }
    assert.ok(filled >= 12, `only ${filled} tables hold rows of the organization: the check would see nothing`);
  });

  it("hides everything from statements run for the wrong organization", async () => {
    assert.ok(statements.size >= 60, `only ${statements.size} statements were recorded`);
    let withRows = 0;
    for (const statement of statements.values()) {
      const own = await runAs(client, victim_id, statement);
      if (own.rows.length > 0 || own.touched > 0) withRows += 1;
      const found = await runAs(client, stranger_id, statement);
      assert.ok(!shows(found.rows), `as another organization:\n${statement.text}`);
      assert.equal(
        isChange(statement) ? found.touched : 0,
        0,
        `touches rows as another organization:\n${statement.text}`,
      );
    }
    assert.ok(withRows >= 30, `only ${withRows} statements found anything for their own organization`);
  });

  it("hides everything from statements that forgot the organization", async () => {
    let mutants = 0;
    for (const statement of statements.values()) {
      const mutant = forgetOrganization(asStranger(statement));
      if (!mutant) continue;
      mutants += 1;
      const { rows } = await runAs(client, stranger_id, mutant);
      assert.ok(!shows(rows), `with the organization taken out:\n${mutant.text}`);
      const nobody = await runAs(client, null, mutant);
      assert.ok(!shows(nobody.rows) && !nobody.touched, `with the organization taken out, as nobody:\n${mutant.text}`);
    }
    assert.ok(mutants >= 40, `only ${mutants} statements could be mutated`);
  });

  it("would show the rows without its policies: the mutants are real ones", async () => {
    // The same mutants in system scope, which sees every row: if none found a thing, the test above would prove nothing.
    const system = new pg.Client({ connectionString: api.database_url, options: "-c postern.scope=system" });
    await system.connect();
    try {
      let leaking = 0;
      for (const statement of statements.values()) {
        const mutant = forgetOrganization(asStranger(statement));
        if (mutant && shows((await runAs(system, null, mutant)).rows)) leaking += 1;
      }
      assert.ok(leaking >= 15, `only ${leaking} mutants would leak without row-level security`);
    } finally {
      await system.end();
    }
  });
});

function isChange({ text }: Statement): boolean {
  return /\b(update|delete from)\b/i.test(text) && !/\binsert into\b/i.test(text);
}
