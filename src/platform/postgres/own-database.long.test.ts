import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { until } from "../../../test/support/until.ts";
import type { Log } from "../process/log.ts";
import { runningEmbeddedPostgres } from "./embedded-postgres.ts";
import { openOwnDatabase } from "./own-database.ts";

const script = new URL("./own-database.ts", import.meta.url).href;
const children: ChildProcess[] = [];
let home = "";

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

function logTo(info: (fields: object, message: string) => void): Log {
  const ignore = (): void => undefined;
  return { info, debug: ignore, warn: ignore, error: ignore } as unknown as Log;
}

/** Our own process that opens the database of `dataDir` and keeps it until `end`; `said` is what it has to say. */
function openedBy(dataDir: string): { said: Promise<string>; end(): Promise<void> } {
  const code = `const { openOwnDatabase } = await import(${JSON.stringify(script)});
    const ignore = () => undefined;
    const log = { info: ignore, debug: ignore, warn: ignore, error: ignore };
    try {
      const database = await openOwnDatabase(${JSON.stringify(dataDir)}, log);
      const { default: pg } = await import("pg");
      const client = new pg.Client(database.url);
      client.on("error", ignore);
      await client.connect();
      process.stdin.resume().once("end", () => client.end().then(database.stop).then(() => process.exit(0)));
      console.log("ready");
    } catch (error) {
      console.log(error.message);
      process.exit(1);
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    cwd: import.meta.dirname,
    stdio: ["pipe", "pipe", "ignore"],
  });
  children.push(child);
  const ended = once(child, "exit");
  return {
    said: once(child.stdout, "data").then(([text]) => String(text).trim()),
    async end() {
      child.stdin.end();
      await ended;
    },
  };
}

before(async () => {
  home = await mkdtemp(join(tmpdir(), "postern-own-"));
  await chmod(home, 0o711); // as root the server is another user and must be able to pass
});

after(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rm(home, { recursive: true, force: true });
});

describe("the processes of one data folder", () => {
  it("all have its database when they begin at the same moment, the first time and later", async () => {
    for (const times of ["the first time", "later"]) {
      const all = [1, 2, 3].map(() => openedBy(join(home, "moment")));
      assert.deepEqual(await Promise.all(all.map(({ said }) => said)), ["ready", "ready", "ready"], times);
      await Promise.all(all.map(({ end }) => end()));
    }
  });

  it("wait until the one that came first has made it", async () => {
    const dataDir = join(home, "unmade");
    const first = openedBy(dataDir);
    assert.equal(await first.said, "ready");
    const { admin_url } = (await runningEmbeddedPostgres(join(dataDir, "postgres")))!;
    await ask(admin_url, "drop database postern with (force)");
    const made: Promise<unknown>[] = [];
    const waits = logTo((_fields, message) => {
      assert.match(message, /waiting for it/);
      made.push(ask(admin_url, "create database postern owner postern"));
    });
    const database = await openOwnDatabase(dataDir, waits);
    assert.deepEqual(await ask(database.url, "select 1 as one"), [{ one: 1 }]);
    assert.equal((await Promise.all(made)).length, 1, "it waited");
    await database.stop();
    await first.end();
  });

  it("go on when the one that supervises it ends, and the last one stops it", async () => {
    const dataDir = join(home, "leaving");
    const first = openedBy(dataDir);
    assert.equal(await first.said, "ready");
    const database = await openOwnDatabase(
      dataDir,
      logTo(() => undefined),
    );
    const client = new pg.Client(database.url);
    await client.connect();
    await first.end();
    assert.deepEqual((await client.query("select 1 as one")).rows, [{ one: 1 }], "the session was not cut");
    await client.end();
    await database.stop();
    assert.equal(await runningEmbeddedPostgres(join(dataDir, "postgres")), null);
  });

  it("look for the one that supervises it over one session that stays open", async () => {
    const dataDir = join(home, "watching");
    const first = openedBy(dataDir);
    assert.equal(await first.said, "ready");
    const { admin_url } = (await runningEmbeddedPostgres(join(dataDir, "postgres")))!;
    const database = await openOwnDatabase(
      dataDir,
      logTo(() => undefined),
    );
    const asked = new Set<string>();
    const sessions = new Set<number>();
    await until("five looks", async () => {
      const looks = await ask(
        admin_url,
        `select pid, query_start::text from pg_stat_activity
          where application_name like 'postern waits%' and query like '%pg_locks%'`,
      );
      for (const { pid, query_start } of looks) {
        sessions.add(pid as number);
        asked.add(query_start as string);
      }
      return asked.size >= 5;
    });
    assert.equal(sessions.size, 1);
    await database.stop();
    await first.end();
  });

  it("say what PostgreSQL says of trouble, and of statements that were refused only to who asks for it", async () => {
    const dataDir = join(home, "trouble");
    const said: string[] = [];
    const level = (name: string) => (fields: { line?: string }) =>
      void (fields.line && said.push(`${name} ${fields.line.replace(/^\[\d+\] /, "")}`));
    const [debug, info, warn, error] = ["debug", "info", "warn", "error"].map(level);
    const database = await openOwnDatabase(dataDir, { debug, info, warn, error } as unknown as Log);
    try {
      for (const [how, text] of [
        ["warning", "an old index"],
        ["log", "could not write to a file"],
        ["log", "all is well"],
        ["exception", "a wrong statement"],
      ] as const) {
        await ask(database.url, `do $$ begin raise ${how} '${text}'; end $$`).catch(() => undefined);
      }
      await until("the last of it", () => said.some((line) => line.includes("a wrong statement")));
    } finally {
      await database.stop();
    }
    const reported = said.filter((line) => !line.startsWith("debug"));
    assert.deepEqual(reported, ["warn WARNING:  an old index", "warn LOG:  could not write to a file"]);
  });

  it("stop it when they all end at the same moment", async () => {
    const dataDir = join(home, "leaving");
    const all = [1, 2, 3].map(() => openedBy(dataDir));
    await Promise.all(all.map(({ said }) => said));
    await Promise.all(all.map(({ end }) => end()));
    assert.equal(await runningEmbeddedPostgres(join(dataDir, "postgres")), null);
  });
});
