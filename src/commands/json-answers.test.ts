// The server's commands as programs run them: JSON of each, and a database that is away.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { inheritedEnv } from "../../test/support/inherited-env.ts";
import { browserOf, setUp } from "../../test/support/people.ts";
import { rawSmtp } from "../../test/support/raw-smtp.ts";
import { processedMail, type Receiving, startTestReceiving, takenId } from "../../test/support/receiving.ts";
import { seal } from "../backup/envelope.ts";

const MAIN = resolve(import.meta.dirname, "../main.ts");
let r: Receiving;
before(async () => {
  r = await startTestReceiving();
});
after(() => r.close());

function postern(args: string[], env: Record<string, string> = {}, stdout: "pipe" | number = "pipe") {
  const { config, database_url } = r.api;
  const own = {
    POSTERN_DATA: config.data_dir,
    POSTERN_MASTER_KEY: config.master_key.toString("hex"),
    DATABASE_URL: database_url,
  };
  const options = { env: { ...inheritedEnv(), ...own, ...env }, stdio: ["ignore", stdout, "pipe"], encoding: "utf8" };
  return spawnSync(process.execPath, [MAIN, ...args], options as { encoding: "utf8" });
}

function answerOf(...args: string[]) {
  const { status, stdout, stderr } = postern([...args, "--json"]);
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

test("every command has --json, but for those that run until they are stopped", () => {
  const { stdout, stderr } = postern(["completion", "bash"]);
  const words = new Map(
    [...stdout.matchAll(/^ {4}"(.*)"\) words="(.*)" ;;$/gm)].map(([, path = "", text = ""]) => [path, text.split(" ")]),
  );
  const commands = [...words].filter(([, [first = ""]]) => first.startsWith("--"));
  assert.ok(commands.length > 150, `${commands.length} commands: ${stderr}`);
  const without = commands.filter(([, options]) => !options.includes("--json")).map(([path]) => path);
  assert.deepEqual(without, ["start", "cells door"]);
});

test("what is done once is answered in one object", () => {
  assert.deepEqual(answerOf("migrate"), { applied: [] });
  assert.deepEqual(answerOf("resume"), { resumed: false });
  const setting = { organization_id: r.api.org_id, name: "inbound_retention_days" };
  assert.deepEqual(answerOf("settings", "inbound_retention_days", "30"), { ...setting, value: 30 });
  assert.deepEqual(answerOf("settings", "inbound_retention_days", "default"), { ...setting, value: null });
  const { status, stdout, stderr } = postern(["settings", "nonsense", "1", "--json"]);
  assert.deepEqual([status, stdout, /there is no setting 'nonsense'/.test(stderr)], [2, "", true]);
});

test("a link for a new password is in the audit logs of the person's organizations: who made it, and from where it was used", async () => {
  const { api } = r;
  const there = await api.organization();
  await setUp(api, "ann@example.net");
  await setUp(api, "bea@example.net", there.org_id);
  const browser = browserOf(api, { ip: "198.51.100.7" });
  const use = (link: string, password: string) =>
    browser.ask("POST", "/dashboard/api/links/use", { token: link.split("#")[1], password });
  for (const more of [[], ["--second-factors"]]) {
    const { link } = answerOf("people", "reset", "Bea@example.net", ...more);
    const used = await use(link, `a new password${more}`);
    assert.equal(used.status, 200, JSON.stringify(used.body));
    const { id } = used.body.person;
    const { body } = await api.ask("GET", "/v1/audit-log?limit=2", undefined, { key: there.live_key });
    const [using, making] = body.entries;
    assert.deepEqual([making.operation, making.target], [["people reset", ...more].join(" "), { id }]);
    assert.deepEqual([using.operation, using.name, using.ip], ["resetPassword", "bea@example.net", "198.51.100.7"]);
    assert.ok(!JSON.stringify([making, using.target, using.changes]).includes("bea@"));
  }
  const others = JSON.stringify((await api.ask("GET", "/v1/audit-log?limit=100")).body);
  assert.doesNotMatch(others, /people reset|resetPassword|bea@/);
});

test("mail of the operator is listed, and one of them is given whole", async () => {
  const content = "From: a@b.example\r\nSubject: hello\r\n\r\nhello\r\n";
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const { code, text } = await smtp.deliver({ from: "a@b.example", to: ["postmaster@postern.test"], content });
  smtp.destroy();
  assert.equal(code, 250, text);
  await processedMail(r, takenId(text));
  const { mail } = answerOf("mail");
  const { id, recipient, envelope_from, subject } = mail[0];
  assert.deepEqual([mail.length, recipient, envelope_from], [1, "postmaster@postern.test", "a@b.example"]);
  assert.equal(subject, "hello");
  const one = answerOf("mail", id);
  assert.equal(one.id, id);
  assert.ok(Buffer.from(one.raw_base64, "base64").toString().endsWith(content));
});

test("accept-master-key says when nothing had to be done", () => {
  assert.deepEqual(answerOf("accept-master-key"), { accepted: true });
  assert.deepEqual(answerOf("accept-master-key"), { accepted: false });
  const { stdout } = postern(["accept-master-key"]);
  assert.equal(stdout, "This master key is the right one already: nothing had to be done.\n");
});

test("a database that is away is named with its setting, also by commands that only look", () => {
  for (const args of [
    ["upgrade", "--check"],
    ["cells", "list"],
    ["backup", "/nonexistent-file"],
    ["restore", import.meta.filename],
  ]) {
    const env = { DATABASE_URL: "postgres://127.0.0.1:9/postern", POSTERN_BACKUP_PASSPHRASE: "a passphrase" };
    const { status, stderr } = postern(args, env);
    assert.equal(status, 1);
    assert.match(stderr, /^postern: the database at 127\.0\.0\.1:9 \(DATABASE_URL\) cannot be used: .*ECONNREFUSED/);
  }
});

test("a backup says in words which file it cannot have, and which recipient is wrong", () => {
  const env = { POSTERN_BACKUP_PASSPHRASE: "a passphrase" };
  const ended = (...args: string[]) => {
    const { status, stderr } = postern(args, env);
    return [status, stderr];
  };
  const gone = "/nonexistent-folder";
  assert.deepEqual(ended("backup", `${gone}/b`), [2, `postern: ${gone} does not exist.\n`]);
  assert.deepEqual(ended("backup", "verify", `${gone}/b`), [1, `postern: ${gone}/b does not exist.\n`]);
  const full = ended("backup", "/dev/full/b");
  assert.deepEqual(full, [2, "postern: /dev/full/b does not exist: a part of its path is not a folder.\n"]);
  const recipient = ended("backup", `${r.api.config.data_dir}/b`, "--recipient", "somebody");
  assert.deepEqual(recipient, [2, "postern: --recipient somebody is not an age public key: it begins with age1.\n"]);
});

test("a backup is not made with a short passphrase, and one that was made with it is still opened", async () => {
  const folder = mkdtempSync(join(tmpdir(), "postern-passphrase-"));
  const target = join(folder, "b");
  const file = join(folder, "passphrase");
  writeFileSync(file, "\u{1f512}".repeat(11));
  const given: Record<string, string>[] = [
    { POSTERN_BACKUP_PASSPHRASE: "x" },
    { POSTERN_BACKUP_PASSPHRASE: "elevenchars" },
    { POSTERN_BACKUP_PASSPHRASE_FILE: file },
  ];
  for (const env of given) {
    const { status, stderr } = postern(["backup", target], env);
    assert.equal(status, 2, stderr);
    assert.match(stderr, /^postern: POSTERN_BACKUP_PASSPHRASE has fewer than 12 characters.*: take a longer one/);
    assert.doesNotMatch(stderr, /eleven/);
    assert.equal(existsSync(target), false);
  }
  const older = join(folder, "older");
  const nothing = (async function* () {
    yield Buffer.from("no frame");
  })();
  writeFileSync(older, await buffer(await seal(nothing, { passphrase: "x", recipients: [] })));
  const verified = (word: string) => postern(["backup", "verify", older], { POSTERN_BACKUP_PASSPHRASE: word }).stderr;
  assert.match(verified("y"), /does not open with this passphrase/);
  assert.match(verified("x"), /^postern: .*(damaged|not a backup)/);
  rmSync(folder, { recursive: true });
});

test("output that cannot be written fails, and says so", () => {
  const full = openSync("/dev/full", "w");
  const { status, stderr } = postern(["config"], {}, full);
  closeSync(full);
  assert.equal(status, 1);
  assert.match(stderr, /^postern: the output could not be written: .*no space left/);
});
