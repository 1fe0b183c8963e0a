// On Citus, a coordinator and two workers: the schema is given to it and moved, and stories of sending, receiving and
// masked addresses are the same as on one PostgreSQL.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { distribute, isDistributed, listCells, moveCell } from "../../src/platform/database/cells.ts";
import { openDb } from "../../src/platform/database/db.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { type Citus, lacksCitus, startCitus } from "../support/citus.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const STORIES = ["send", "outcomes", "masked", "bounces"];
const STORY_MS = 600_000;

describe("a schema that Citus keeps", { skip: lacksCitus }, () => {
  const dir = lacksCitus ? "" : mkdtempSync(join(tmpdir(), "postern-cells-"));
  const org = "01000000-0000-7000-8000-000000000001";
  let citus: Citus;
  let url: string;

  before(async () => {
    chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
    citus = await startCitus(dir, 2, { fsync: "off" });
    url = citus.urlOf();
  });
  after(async () => {
    await citus?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The organizations that each side sees, in a world that was opened for the database as it is. */
  async function organizations(): Promise<{ system: number; own: number; other: number }> {
    const db = openDb(url, { onError: () => undefined, distributed: await isDistributed(url) });
    const count = "select count(*)::int as n from organization";
    try {
      const other = "01000000-0000-7000-8000-000000000009";
      return {
        system: (await db.query<{ n: number }>(count))[0]?.n ?? -1,
        own: await db.asOrg(org, async (tx) => (await tx.query<{ n: number }>(count))[0]?.n ?? -1),
        other: await db.asOrg(other, async (tx) => (await tx.query<{ n: number }>(count))[0]?.n ?? -1),
      };
    } finally {
      await db.close();
    }
  }

  it("is given to it with its rows, and both walls stand", async () => {
    await assert.rejects(distribute(url), /run postern migrate first/);
    await migrate(url);
    const db = openDb(url, { onError: () => undefined });
    for (const id of [org, org.replace(/1$/, "2")])
      await db.execute("insert into organization (id, name, plan, state) values ($1, 'a', 'free', 'active')", [id]);
    await assert.rejects(distribute(url), /stop every process of Postern first/);
    await db.close();
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
    assert.equal(await distribute(url), "postern");
    assert.equal(await isDistributed(url), true);
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
    await assert.rejects(distribute(url), /keeps this database's schema already/);
    assert.deepEqual(await migrate(url), []);
  });

  it("moves to the other worker", async () => {
    const { cells, servers } = await listCells(url);
    assert.equal(cells.length, 1);
    const [cell] = cells;
    const to = servers.find(({ port }) => port !== cell?.port && port !== citus.coordinator.port);
    assert.ok(cell && to);
    await assert.rejects(moveCell(url, { name: cell.name, to }), /name a superuser/);
    await moveCell(citus.adminUrlOf(), { name: cell.name, to });
    assert.deepEqual(
      (await listCells(url)).cells.map(({ name, port }) => [name, port]),
      [["postern", to.port]],
    );
    assert.deepEqual(await organizations(), { system: 2, own: 1, other: 0 });
  });

  for (const story of STORIES)
    it(`plays the story of ${story}`, { timeout: STORY_MS }, async () => {
      const file = `test/scenarios/${story}.test.ts`;
      const { NODE_TEST_CONTEXT: _of_this, ...env } = process.env;
      const ended = await new Promise<string>((done) =>
        execFile(
          process.execPath,
          ["--test", file],
          { cwd: ROOT, env: { ...env, POSTERN_TEST_CITUS: "1" }, timeout: STORY_MS, maxBuffer: 2 ** 26 },
          (error, stdout) => done(error ? stdout : "passed"),
        ),
      );
      assert.equal(ended, "passed");
    });
});
