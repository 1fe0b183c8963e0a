// What an operator meets at the first starts: a start that fails makes nothing, the keys are in a file, another master
// key is refused before anything is taken, a command's standard output is its answer alone, and metrics are where they are said
// to be.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeSelfSigned } from "../../src/platform/net/self-signed.ts";
import { plainDatabase, type TestDatabase } from "../support/database.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { posternSettings, startPostern } from "../support/postern-process.ts";
import { until } from "../support/until.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");

let folder: string;
let database: TestDatabase;
/** Embedded database, keys of its own making, a log that is not silent. */
let env: Record<string, string>;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "postern-first-"));
  chmodSync(folder, 0o711); // run by root, the embedded database runs as an ordinary user
  database = await plainDatabase();
  const settings = await posternSettings(join(folder, "data"), { POSTERN_LOG_LEVEL: "info" });
  const { POSTERN_BOOTSTRAP_LIVE_KEY: _live, POSTERN_BOOTSTRAP_TEST_KEY: _test, ...rest } = settings.env;
  env = rest;
});

after(async () => {
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

type Ended = { code: number; stdout: string; stderr: string };

function postern(args: string[], change: Record<string, string> = {}): Promise<Ended> {
  const options = { env: { ...inheritedEnv(), ...env, ...change }, timeout: 240_000 };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

/** Somebody listens where Postern would, while `work` goes on. */
async function whileTaken<T>(place: string, work: () => Promise<T>): Promise<T> {
  const [host, port] = place.split(":");
  const stranger = createServer();
  await new Promise<void>((done) => stranger.listen(Number(port), host, done));
  try {
    return await work();
  } finally {
    await new Promise((done) => stranger.close(done));
  }
}

const pidFile = () => join(folder, "data/postgres/cluster/postmaster.pid");

test("the command line says which version it is", async () => {
  const { code, stdout } = await postern(["--version"]);
  assert.deepEqual([code, /^\d+\.\d+\.\d+\n$/.test(stdout)], [0, true], stdout);
});

test("a start that finds ports taken names them all before anything is made", async () => {
  const failed = await whileTaken(env.POSTERN_HTTP as string, () =>
    whileTaken(env.POSTERN_MX as string, () => postern(["start"])),
  );
  assert.equal(failed.code, 1);
  for (const variable of ["POSTERN_HTTP", "POSTERN_MX"]) {
    assert.match(failed.stderr, new RegExp(`:\\d+ \\(${variable}\\) is in use by another program\\. Stop `));
  }
  assert.equal(existsSync(join(folder, "data/postgres")), false, "no database, and no organization in it");
});

test("a start whose certificate and key do not belong together is refused before anything is made, where they are shown", async () => {
  const [one, other] = [
    makeSelfSigned(["mx.postern.test"], Date.now()),
    makeSelfSigned(["mx.postern.test"], Date.now()),
  ];
  const files = { POSTERN_TLS_CERT: join(folder, "pair.pem"), POSTERN_TLS_KEY: join(folder, "pair-key.pem") };
  writeFileSync(files.POSTERN_TLS_CERT, one.cert);
  writeFileSync(files.POSTERN_TLS_KEY, other.key);
  const failed = await postern(["start"], files);
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^postern: the certificate .*pair\.pem \(POSTERN_TLS_CERT\) with the key .* does not belong/m,
  );
  assert.equal(existsSync(join(folder, "data/postgres")), false, "no database, and no organization in it");
  const elsewhere = {
    ...files,
    DATABASE_URL: "postgresql://127.0.0.1:9/postern",
    POSTERN_DATA: join(folder, "pair"),
  };
  assert.match((await postern(["start"], elsewhere)).stderr, /POSTERN_TLS_CERT/, "the database was not asked");
  assert.match((await postern(["start", "--roles", "clock"], elsewhere)).stderr, /DATABASE_URL.*ECONNREFUSED/);
});

test("a first start leaves the keys in a file where there is no terminal, and says when it stops", async () => {
  const running = await startPostern({ base_url: "", live_key: "", test_key: "", env });
  assert.match(running.output(), new RegExp(`\\(metrics on http://${env.POSTERN_INTERNAL}\\)`));
  const file = join(folder, "data/first-keys.env");
  assert.ok(running.output().includes(`live key  in ${file}\n`), running.output());
  assert.doesNotMatch(running.output(), /svc_(live|test)_\w/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const key = /^POSTERN_LIVE_KEY=(svc_live_\w+)$/m.exec(readFileSync(file, "utf8"))?.[1];
  const answer = await fetch(`http://${env.POSTERN_HTTP}/v1/api-keys`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal(answer.status, 200);
  const beside = await postern(["keys", "create", "--name", "n", "--env", "test"]);
  assert.match(beside.stdout, /^svc_test_\w+\n$/, "nothing but the key");
  assert.equal(await running.stop(), 0);
  assert.match(running.output(), /"msg":"stopping"}\n(.*\n)*.*"msg":"stopped"}\n$/);
  assert.equal(existsSync(pidFile()), false, "the embedded database has ended in good order");
  const alone = await postern(["keys", "create", "--name", "n", "--env", "live"]);
  assert.match(alone.stdout, /^svc_live_\w+\n$/, "nor when the command starts the database");
});

test("a start that is stopped before it is ready ends in good order, with its database", async () => {
  const data = join(folder, "cut-short");
  const pid = join(data, "postgres/cluster/postmaster.pid");
  const options = { env: { ...inheritedEnv(), ...env, POSTERN_DATA: data } };
  const child = spawn(process.execPath, [MAIN, "start"], options);
  const ended = once(child, "exit");
  let output = "";
  child.stdout.on("data", (text) => {
    output += text;
  });
  await until("the database is being started", () => existsSync(pid));
  child.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  assert.doesNotMatch(output, /Postern is ready/);
  assert.equal(existsSync(pid), false);
});

test("another master key ends the start before anything is taken, until the operator accepts it", async () => {
  const key = () => randomBytes(32).toString("hex");
  // A folder of its own: that of the tests before belongs to their database.
  const place = { DATABASE_URL: database.url, POSTERN_DATA: join(folder, "beside") };
  const right = { ...place, POSTERN_MASTER_KEY: key() };
  const settings = { base_url: "", live_key: "", test_key: "", env: { ...env, ...right } };
  const first = await startPostern(settings);
  assert.equal(await first.stop(), 0);

  const wrong = { ...right, POSTERN_MASTER_KEY: key() };
  for (const args of [["start"], ["keys", "create", "--name", "n", "--env", "live"]]) {
    const refused = await postern(args, wrong);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /postern: this is not the master key that the database was sealed with: set POSTERN_MAS/,
    );
    assert.doesNotMatch(refused.stdout, /ready|svc_/);
  }
  assert.equal((await postern(["accept-master-key"], wrong)).code, 0);
  const ours: Record<string, string> = { ...env, ...wrong };
  delete ours.POSTERN_INTERNAL;
  const start = () => startPostern({ ...settings, env: ours }, ["clock"]);
  // The default place of the metrics: when another process of this machine has it now, that is as good.
  const later = await whileTaken("127.0.0.1:9180", start).catch((error) => {
    if (error.code !== "EADDRINUSE") throw error;
    return start();
  });
  try {
    const place = /metrics on (http:\/\/\S+)\)/.exec(later.output())?.[1] ?? "";
    assert.notEqual(place, "http://127.0.0.1:9180");
    assert.match(later.output(), new RegExp(`"taken":9180,"instead":${new URL(place).port}\\b`));
    assert.match(await (await fetch(`${place}/metrics`)).text(), /^postern_database_up 1$/m);
  } finally {
    assert.equal(await later.stop(), 0);
  }
});
