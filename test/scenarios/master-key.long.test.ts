// `postern master-key rotate` while two processes send mail and post webhooks: first both have the old key, then one has the
// new one, then both. Every mail arrives once and is signed, every webhook is signed with its secret, and what was sealed
// before opens. The rotation is killed in the middle and run again. Backups of before, of between and of after are restored.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { readConfig } from "../../src/config.ts";
import { createResolver } from "../../src/platform/dns/resolver.ts";
import { createLog } from "../../src/platform/process/log.ts";
import { SEALED_COLUMNS } from "../../src/setup/sealed-columns.ts";
import { openWorld } from "../../src/world.ts";
import { plainDatabase, type TestDatabase } from "../support/database.ts";
import { freePort } from "../support/free-port.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { apiOf, ask } from "../support/postern-process.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const OLD = "0a".repeat(32);
/** Enough that the rotation is killed in the middle of them. */
const CONTACTS = 1_000;

let s: Scene;
let target: TestDatabase;
/** The second process's own places. */
let beside: Record<string, string>;
let newKeyFile: string;

before(async () => {
  s = await setScene({ env: { POSTERN_MASTER_KEY: OLD, POSTERN_BACKUP_PASSPHRASE: "four words of mine" } });
  target = await plainDatabase();
  receiveAt(s.dns, "recipient.example");
  const names = ["POSTERN_HTTP", "POSTERN_INTERNAL", "POSTERN_MX", "POSTERN_SUBMISSION"];
  const places = await Promise.all(names.map(async (name) => [name, `127.0.0.1:${await freePort()}`]));
  beside = Object.fromEntries(places);
  newKeyFile = join(s.dir, "data", "master.key.new");
});
after(async () => {
  await target?.drop();
  await s?.close();
});

type Ended = { code: number; stdout: string; stderr: string };

function postern(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const options = { env: { ...inheritedEnv(), ...s.env, ...env } };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

async function succeeds(args: string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await postern(args, env);
  assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** Sends to these places in turn until it is stopped; what is not accepted fails the test. */
function startTraffic(first: string[]) {
  const places = [...first];
  const accepted: string[] = [];
  const refused: unknown[] = [];
  let isOver = false;
  const run = async (): Promise<void> => {
    for (let index = 0; !isOver; index += 1) {
      const mail = {
        from: "a@sender.example",
        to: [`r${index}@recipient.example`],
        subject: `${index}`,
        text_body: "x",
      };
      const base_url = places[index % places.length] as string;
      const { status, body } = await ask({ ...s, base_url }, "POST", "/v1/send", mail);
      if (status === 202) accepted.push(String(body.id));
      else refused.push(body);
    }
  };
  const running = run();
  return {
    places,
    accepted,
    refused,
    more: (count: number) => {
      const from = accepted.length;
      return until("mail goes on", () => accepted.length >= from + count);
    },
    stop: async () => {
      isOver = true;
      await running;
    },
  };
}

/** Every sealed value of a database opens with this key, and how many there are. */
async function openAll(database_url: string, key: string): Promise<number> {
  const env = { ...s.env, DATABASE_URL: database_url, POSTERN_MASTER_KEY: key, POSTERN_DATA: join(s.dir, "reading") };
  const opened = await openWorld(readConfig(env), createLog({ level: "silent", role: "test" }));
  try {
    const { db, seal } = opened.world;
    let count = 0;
    for (const { table, column, key: names, context } of SEALED_COLUMNS) {
      const rows = await db.query<Record<string, string> & { sealed: Buffer }>(
        `select ${names.join(", ")}, ${column} as sealed from ${table} where ${column} is not null`,
      );
      for (const row of rows) seal.open(row.sealed, context(row));
      count += rows.length;
    }
    return count;
  } finally {
    await opened.close();
  }
}

function backup(name: string, env: Record<string, string> = {}): Promise<string> {
  return succeeds(["backup", join(s.dir, name), "--json"], env);
}

/** Kills the rotation as soon as it has said that it seals values again. */
async function rotateAndKill(): Promise<void> {
  const options = { env: { ...inheritedEnv(), ...s.env } };
  const child = spawn(process.execPath, [MAIN, "master-key", "rotate"], options);
  const ended = once(child, "exit");
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
    if (/sealed again: \d+; left: [1-9]/.test(said)) child.kill("SIGKILL");
  });
  assert.deepEqual(await ended, [null, "SIGKILL"], said);
}

test("the master key is changed under two processes at work, and nothing is lost, unsigned or unreadable", async () => {
  let first = await s.start();
  await addVerifiedDomain(s, s.dns, "sender.example");
  const hook = { url: `${s.receiver.url}/hook`, events: ["email.delivered"] };
  const { body: made } = await s.ask("POST", "/v1/webhooks", hook);
  const secret = (made.webhook as unknown as { secret?: string }).secret ?? String(made.secret);
  const { body: masked } = await s.ask("POST", "/v1/masked/aliases", { forward_to: ["a@real.example"] });
  const aliasId = (masked.alias as unknown as { id: string }).id;
  await s.ask("POST", `/v1/masked/aliases/${aliasId}/contacts`, { email: "b@shop.example", name: "Shop" });
  // A heavy request: its process has the key too, and goes with the one that it belongs to.
  const template = { name: "Receipt", slug: "receipt", subject: "Receipt", text_body: "Thank you" };
  assert.equal((await s.ask("POST", "/v1/templates", template)).status, 201);
  const admin = await s.admin();
  await admin.query(
    `insert into masked_contact select (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(),
       'digest', '\\x' || md5(n::text)))).* from masked_contact c, generate_series(1, $1) n`,
    [CONTACTS],
  );
  let second = await s.start(undefined, beside);
  const [here, there] = [s.base_url, `http://${beside.POSTERN_HTTP}`];
  const traffic = startTraffic([here, there]);
  await traffic.more(10);
  await backup("before");

  const sealed = await openAll(s.env.DATABASE_URL as string, OLD);
  await rotateAndKill();
  const between = JSON.parse(await succeeds(["master-key", "status", "--json"]));
  assert.deepEqual([between.rotating, between.master_keys.length], [true, 2]);
  assert.ok(between.left > 0 && between.left < sealed, JSON.stringify(between));
  await traffic.more(10);
  await backup("between");
  const again = await succeeds(["master-key", "rotate"]);
  assert.match(again, /A rotation has begun already; it goes on\.\n\d+ values were sealed .* none are left/);
  assert.ok(again.includes(`mv ${newKeyFile} `), again);
  assert.match(again, new RegExp(`The old one is in use by:\\n.*process ${first.pid}\\b[^]*process ${second.pid}\\b`));
  assert.equal(statSync(newKeyFile).mode & 0o077, 0);
  const fresh = readFileSync(newKeyFile, "utf8").trim();

  // One after the other gets the new key.
  traffic.places.splice(0, 2, here);
  await second.stop();
  second = await s.start(undefined, { ...beside, POSTERN_MASTER_KEY: fresh });
  traffic.places.splice(0, 1, here, there);
  await traffic.more(10);
  const early = JSON.parse(await succeeds(["master-key", "rotate", "--json"], { POSTERN_MASTER_KEY: fresh }));
  assert.equal(early.finished, false);
  assert.deepEqual([...new Set(early.old_key_used_by.map(({ pid }: { pid: number }) => pid))], [first.pid]);
  traffic.places.splice(0, 2, there);
  await first.stop();
  first = await s.start(undefined, { POSTERN_MASTER_KEY: fresh });
  traffic.places.splice(0, 1, here, there);
  await traffic.more(10);
  assert.match(await succeeds(["master-key", "rotate"], { POSTERN_MASTER_KEY: fresh }), /The rotation has ended/);
  await traffic.more(10);
  await traffic.stop();

  assert.deepEqual(traffic.refused, []);
  for (const id of traffic.accepted) await emailWithStatus(apiOf(s), id, ["delivered"]);
  await mailIsSigned(traffic.accepted.length);
  await webhooksAreSigned(secret, traffic.accepted.length);
  const { body: shown } = await s.ask("GET", `/v1/masked/aliases/${aliasId}`);
  assert.deepEqual((shown.alias as unknown as { forward_to: string[] }).forward_to, ["a@real.example"]);
  await backup("after", { POSTERN_MASTER_KEY: fresh });
  for (const running of [first, second]) assert.equal(await running.stop(), 0);
  assert.ok((await openAll(s.env.DATABASE_URL as string, fresh)) > CONTACTS);
});

/** By mailauth, each mail once. */
async function mailIsSigned(count: number): Promise<void> {
  const ids = new Set(s.sink.messages.map(({ message_id }) => message_id));
  assert.deepEqual([s.sink.messages.length, ids.size], [count, count]);
  const options = { servers: [s.dns.address], timeout_ms: 2_000, attempts: 2, cache_max: 10, validating: false };
  const resolver = nodeStyleResolver(createResolver({ ...options, now: Date.now })) as never;
  for (const { bytes } of s.sink.messages) {
    const { results } = await dkimVerify(bytes, { resolver });
    assert.equal(results[0]?.status.result, "pass");
  }
}

async function webhooksAreSigned(secret: string, count: number): Promise<void> {
  const requests = await until("all webhooks came", () => s.receiver.requests.length >= count && s.receiver.requests);
  for (const { headers, body } of requests) {
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(String(headers["x-service-signature"])) ?? [];
    assert.equal(v1, createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex"));
  }
}

test("the old key opens the database no more: start, commands and doctor say so in one sentence", async () => {
  for (const args of [["start"], ["master-key", "status"]]) {
    const refused = await postern(args);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /^postern: this is not the master key that the database was sealed with: set POSTERN_MASTER_KEY to that key \(after a rotation, to the new one\)[^\n]*\n$/m,
    );
  }
  const { checks } = JSON.parse((await postern(["doctor", "--json"])).stdout);
  const found = checks.filter(
    ({ name, status }: Record<string, string>) => name === "master key" && status === "problem",
  );
  assert.match(found[0]?.says, /was sealed with another master key/);
});

test("a backup is restored with a master key of its time, and everything in it opens", async () => {
  const fresh = readFileSync(newKeyFile, "utf8").trim();
  const stranger = randomBytes(32).toString("hex");
  const own = (key: string) => ({
    POSTERN_MASTER_KEY: key,
    DATABASE_URL: target.url,
    POSTERN_DATA: join(s.dir, "restored"),
  });
  for (const [name, right, wrong] of [
    ["before", [OLD], [fresh, stranger]],
    ["between", [OLD, fresh], [stranger]],
    ["after", [fresh], [OLD, stranger]],
  ] as const) {
    for (const key of wrong) {
      const refused = await postern(["restore", join(s.dir, name), "--replace"], own(key));
      assert.match(refused.stderr, /the backup was made under another master key/, name);
    }
    for (const key of right) {
      await succeeds(["restore", join(s.dir, name), "--replace"], own(key));
      assert.ok((await openAll(target.url, key)) > CONTACTS, name);
    }
  }
});

test("wrong options are refused before anything is changed", async () => {
  const key = { POSTERN_MASTER_KEY: readFileSync(newKeyFile, "utf8").trim() };
  const [bad, same] = [join(s.dir, "bad.key"), join(s.dir, "same.key")];
  writeFileSync(bad, "no key\n");
  writeFileSync(same, key.POSTERN_MASTER_KEY);
  for (const [args, says] of [
    [["--new-key-file", join(s.dir, "absent")], /absent does not exist\.$/m],
    [["--new-key-file", bad], /bad\.key holds no master key: 32 bytes/],
    [["--new-key-file", same], /same\.key holds the master key that the database has already/],
    [["--abandon"], /no rotation that could be undone/],
  ] as const) {
    const refused = await postern(["master-key", "rotate", ...args], key);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, says);
  }
  assert.equal(JSON.parse(await succeeds(["master-key", "status", "--json"], key)).rotating, false);
});
