// From an empty folder to a mail that was delivered and signed: `postern setup --yes --json` against a name server, an ACME
// server and a mail server on loopback. Run again it changes nothing; what is broken gets a sentence and its remedy.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import type { Check } from "../../src/doctor/check.ts";
import { createResolver } from "../../src/platform/dns/resolver.ts";
import type { Step } from "../../src/setup/types.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { freePort } from "../support/free-port.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { noPebble, type Pebble, startPebble } from "../support/pebble.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { until } from "../support/until.ts";
import { publishZone } from "../support/zone-file.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const HOST = "mail.example.eu";
const OPERATOR = "you@operator.example";

const skip = noPebble();
let folder: string;
let dns: DnsServer;
let sink: SmtpSink;
let pebble: Pebble;
let env: Record<string, string>;

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "postern-setup-"));
  chmodSync(folder, 0o711); // run by root, the embedded database runs as an ordinary user
  dns = await startDnsServer();
  sink = await startSmtpSink();
  dns.set("operator.example", "MX", [{ exchange: "mx.operator.example", preference: 10 }]);
  dns.set("mx.operator.example", "A", ["127.0.0.1"]);
  const port = async () => `127.0.0.1:${await freePort()}`;
  const challenges = await port();
  pebble = await startPebble(dns, { http_port: Number(challenges.split(":")[1]) });
  env = {
    POSTERN_HTTP: await port(),
    POSTERN_INTERNAL: await port(),
    POSTERN_MX: `0.0.0.0:${await freePort()}`,
    POSTERN_SUBMISSION: await port(),
    POSTERN_SUBMISSIONS: await port(),
    POSTERN_HTTPS: await port(),
    POSTERN_ACME_HTTP: challenges,
    POSTERN_ACME_CA: pebble.ca_file,
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_TESTING_ALLOW_LOOPBACK: "1",
    POSTERN_LOG_LEVEL: "warn",
    POSTERN_ENV_FILE: join(folder, "postern.env"),
  };
});

after(async () => {
  await pebble?.stop();
  await sink?.stop();
  await dns?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

type Zone = { name: string; type: string; value: string; priority: number | null }[];
type Result = { ok: boolean; env_file: string; steps: Step[]; records: Zone; missing: Zone; checks: Check[] };
type Ended = { code: number; stdout: string; stderr: string };

function run(args: string[], change: Record<string, string> = {}): Promise<Ended> {
  const options = { cwd: folder, env: { ...inheritedEnv(), ...env, ...change }, timeout: 270_000 };
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

async function setup(...args: string[]): Promise<Result & { code: number }> {
  const { code, stdout, stderr } = await run(["setup", "--yes", "--json", ...args]);
  assert.match(stdout, /^\{.*\}\n$/, `setup ended with ${code} without an answer:\n${stdout}${stderr}`);
  return { code, ...(JSON.parse(stdout) as Result) };
}

const ANSWERS = ["--host", HOST, "--addresses", "127.0.0.1", "--notices", OPERATOR];

function statuses({ steps }: Result): Record<string, string> {
  return Object.fromEntries(steps.map(({ name, status }) => [name, status]));
}

function resolver() {
  const options = { servers: [dns.address], timeout_ms: 2_000, attempts: 2, cache_max: 10, validating: false };
  return createResolver({ ...options, now: () => performance.now() });
}

describe("postern setup", { skip }, () => {
  it("refuses to begin without a host name, or with a database that cannot be used, and says what to do", async () => {
    const without = await run(["setup", "--yes", "--json"]);
    assert.deepEqual([without.code, without.stdout], [2, ""]);
    assert.match(without.stderr, /--host is needed: the name of this machine in DNS/);
    for (const [wrong, says] of [
      [["--host", "not_a_host"], /POSTERN_HOSTNAME is "not_a_host", which is not a host name/],
      [["--host", HOST, "--addresses", "10.0.0.300"], /POSTERN_PUBLIC_ADDRESSES holds "10\.0\.0\.300"/],
    ] as const) {
      const refused = await run(["setup", "--yes", ...wrong]);
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, says);
      assert.equal(existsSync(join(folder, "postern.env")), false, "what is wrong is not written");
    }
    const bad = await setup(
      ...ANSWERS,
      "--database",
      "postgresql://nobody@127.0.0.1:1/none",
      "--data",
      join(folder, "bad"),
    );
    assert.deepEqual([bad.code, bad.ok, statuses(bad)], [1, false, { settings: "done", machine: "problem" }]);
    assert.match(bad.steps[1]?.says ?? "", /^The database does not answer: .*ECONNREFUSED/);
    assert.match(bad.steps[1]?.remedy ?? "", / in DATABASE_URL/);
    assert.equal(existsSync(join(folder, "bad")), false);
    rmSync(join(folder, "postern.env"));
  });

  it("leads from an empty folder to a certificate and to a mail that was delivered and signed", async () => {
    const data = join(folder, "data");
    const first = setup(...ANSWERS, "--acme", pebble.directory, "--data", data, "--wait-minutes", "5");
    const zone = await until("the zone file is there", () => existsSync(join(data, "zone.txt")), 240_000).then(() =>
      readFileSync(join(data, "zone.txt"), "utf8"),
    );
    publishZone(dns, zone);
    dns.set("127.0.0.1", "PTR", [HOST]);
    const result = await first;
    const { machine: _machine, doctor: _doctor, ...made } = statuses(result);
    assert.deepEqual(
      made,
      { settings: "done", organization: "done", records: "done", certificate: "done", mail: "done" },
      JSON.stringify(result.steps, null, 1),
    );
    assert.deepEqual(result.missing, []);
    assert.ok(result.records.length > 15);
    const [mail] = sink.messages;
    assert.deepEqual([mail?.to, mail?.ehlo], [[OPERATOR], HOST]);
    const { results } = await dkimVerify(mail!.bytes, { resolver: nodeStyleResolver(resolver()) } as never);
    assert.deepEqual([results[0]?.status.result, results[0]?.signingDomain], ["pass", `masked.${HOST}`]);
    for (const name of ["data/first-keys.env", "data/set-up-link", "postern.env"]) {
      assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
    }
    assert.match(readFileSync(join(folder, "data/first-keys.env"), "utf8"), /^POSTERN_LIVE_KEY=svc_live_/m);
    assert.match(readFileSync(join(folder, "postern.env"), "utf8"), /^POSTERN_HOSTNAME=mail\.example\.eu$/m);
  });

  it("changes nothing that is right when it is run again, and keeps what somebody wrote into the file", async () => {
    const file = join(folder, "postern.env");
    writeFileSync(file, `${readFileSync(file, "utf8")}# mine\nPOSTERN_GREYLISTING=1\n`);
    const before = readFileSync(file, "utf8");
    const result = await setup();
    const { machine: _machine, doctor: _doctor, ...made } = statuses(result);
    assert.deepEqual(
      made,
      {
        ...{ settings: "unchanged", organization: "unchanged", records: "unchanged" },
        ...{ certificate: "unchanged", mail: "unchanged" },
      },
      JSON.stringify(result.steps, null, 1),
    );
    assert.equal(readFileSync(file, "utf8"), before);
    assert.equal(sink.messages.length, 1);
  });

  it("names what is broken: a record that is missing, a mail that is refused", async () => {
    dns.remove(`bounces.${HOST}`, "MX");
    const broken = await setup("--no-wait");
    assert.equal(broken.code, 1);
    assert.deepEqual(broken.missing, [{ name: `bounces.${HOST}`, type: "MX", value: `mx.${HOST}`, priority: 10 }]);
    const records = broken.steps.find(({ name }) => name === "records");
    assert.match(records?.says ?? "", /^1 of \d+ records are not in DNS: bounces\.mail\.example\.eu MX\.$/);
    dns.set(`bounces.${HOST}`, "MX", [{ exchange: `mx.${HOST}`, preference: 10 }]);
    sink.onRcpt(() => ({ code: 550, text: "5.7.1 we do not know you" }));
    const refused = await setup("--no-wait", "--notices", "other@operator.example");
    const mail = refused.steps.find(({ name }) => name === "mail");
    assert.equal(mail?.status, "problem");
    assert.match(mail?.says ?? "", /was refused\. Its server said: .*we do not know you/);
  });
});
