// Certificates from a real ACME server (Pebble): issued, renewed, by one process of many, and what is said when it refuses.
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { testConfig } from "../../test/support/api.ts";
import { type TestDatabase, testDatabase } from "../../test/support/database.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { freePort } from "../../test/support/free-port.ts";
import { noPebble, type Pebble, startPebble } from "../../test/support/pebble.ts";
import { makeCertificateAuthority } from "../../test/support/tls.ts";
import { createLog } from "../platform/process/log.ts";
import type { World } from "../platform/world.ts";
import type { AcmeConfig } from "../settings/certificates.ts";
import { buildWorld } from "../world.ts";
import { openAcme } from "./acme.ts";
import { startChallengeServer } from "./challenges.ts";
import { findCertificate, type Stored } from "./queries.ts";
import { keyContext, renewalAt, renewIfDue } from "./renew.ts";

const NAMES = ["mail.example", "mx.mail.example", "dashboard.example"];
const DAY_MS = 86_400_000;

let dns: DnsServer;
let pebble: Pebble;
let database: TestDatabase;
let world: World;
let acme: AcmeConfig;
let challenges: { stop(): Promise<void> };

const skip = noPebble();

before(async () => {
  if (skip) return;
  dns = await startDnsServer();
  for (const name of NAMES) dns.set(name, "A", ["127.0.0.1"]);
  const port = await freePort();
  pebble = await startPebble(dns, { http_port: port });
  database = await testDatabase();
  const config = testConfig({
    POSTERN_HOSTNAME: "mail.example",
    POSTERN_BASE_URL: "https://dashboard.example",
    POSTERN_DNS: dns.address,
    POSTERN_ACME: pebble.directory,
    POSTERN_ACME_PROFILE: "default",
    POSTERN_ACME_CA: pebble.ca_file,
    POSTERN_ACME_HTTP: `127.0.0.1:${port}`,
  });
  acme = config.acme as AcmeConfig;
  world = buildWorld(config, createLog({ level: "silent", role: "test" }), database.url);
  challenges = await startChallengeServer(world, acme);
});

after(async () => {
  await challenges?.stop();
  await world?.db.close();
  await database?.drop();
  await pebble?.stop();
  await dns?.stop();
});

async function stored(settings: AcmeConfig = acme): Promise<Stored> {
  const [row] = await findCertificate(world.db, settings.directory);
  return row as Stored;
}

/** Makes it due, as the passing of time would. */
async function due(settings: AcmeConfig = acme): Promise<void> {
  await world.db.execute("update acme_certificate set renew_at = $2, failures = 0 where directory = $1", [
    settings.directory,
    new Date(world.clock.now() - 1),
  ]);
}

async function failureOf(settings: AcmeConfig = acme): Promise<string> {
  assert.equal(await renewIfDue(world, settings), "failed");
  return (await stored(settings)).failure ?? "";
}

describe("a certificate of our names", { skip }, () => {
  it("is issued at once, for the names that are in DNS, and its key is kept sealed", async () => {
    dns.remove("dashboard.example");
    assert.equal(await renewIfDue(world, acme), "renewed");
    const { chain, key, renew_at } = await stored();
    const certificate = new X509Certificate(chain ?? "");
    assert.equal(certificate.subjectAltName, "DNS:mail.example, DNS:mx.mail.example");
    assert.ok(certificate.verify(new X509Certificate(chain!.split(/(?=-----BEGIN)/)[1] ?? "").publicKey));
    assert.ok(!key?.includes("PRIVATE KEY"));
    assert.match(world.seal.open(key as Buffer, keyContext(acme.directory)).toString(), /^-----BEGIN PRIVATE KEY/);
    const days = (renew_at.getTime() - world.clock.now()) / DAY_MS;
    assert.ok(days > 55 && days < 60.1, `renewed after ${days} of 90 days`);
  });

  it("is asked for again as soon as another name is in DNS, and not before it is due otherwise", async () => {
    assert.equal(await renewIfDue(world, acme), "not due");
    dns.set("dashboard.example", "A", ["127.0.0.1"]);
    assert.equal(await renewIfDue(world, acme), "renewed");
    assert.deepEqual((await stored()).names, NAMES);
  });

  it("is renewed by one process of many", async () => {
    await due();
    const before = await stored();
    const done = await Promise.all([1, 2, 3, 4].map(() => renewIfDue(world, acme)));
    assert.equal(done.filter((one) => one === "renewed").length, 1, done.join());
    assert.notEqual((await stored()).chain, before.chain);
    assert.equal(await renewIfDue(world, acme), "not due");
  });

  it("may live for some days: the renewal follows its life", async () => {
    const short = { ...acme, profile: "shortlived" };
    await due();
    assert.equal(await renewIfDue(world, short), "renewed");
    const { not_before, not_after, renew_at } = await stored();
    const lifeMs = not_after!.getTime() - not_before!.getTime();
    assert.ok(Math.abs(lifeMs - 6 * DAY_MS) < DAY_MS / 2, `${lifeMs}`);
    const share = (renew_at.getTime() - not_before!.getTime()) / lifeMs;
    assert.ok(share <= 2 / 3 && share > 0.6, `${share}`);
    const ends = { not_before: new Date(0), not_after: new Date(300) };
    assert.deepEqual([renewalAt(ends, 0).getTime(), renewalAt(ends, 0.5).getTime()], [200, 192]);
  });

  it("is issued again after the ACME server forgot the account, and after it closed it", async () => {
    await pebble.restart();
    await due();
    assert.equal(await renewIfDue(world, acme), "renewed", (await stored()).failure ?? "");
    const [account] = await world.db.query<{ url: string; key: Buffer }>("select url, key from acme_account");
    const pem = world.seal.open(account!.key, `acme-account-key:${acme.directory}`).toString();
    const client = openAcme(acme.directory, { key: createPrivateKey(pem), ca_file: acme.ca_file });
    client.account = account!.url;
    await client.post(account!.url, { status: "deactivated" });
    await client.close();
    await due();
    assert.equal(await renewIfDue(world, acme), "renewed", (await stored()).failure ?? "");
    const [other] = await world.db.query<{ url: string; key: Buffer }>("select url, key from acme_account");
    assert.notDeepEqual(other!.key, account!.key);
  });
});

describe("an ACME server that gives no certificate", { skip }, () => {
  it("is asked later and later, and the certificate in use stays", async () => {
    const { chain } = await stored();
    // It has forgotten what was proven: of a hundred proofs it would take one again, whatever PEBBLE_AUTHZREUSE says.
    await pebble.restart();
    dns.set("dashboard.example", "A", ["127.0.0.2"]);
    await due();
    const waits: number[] = [];
    for (const times of [1, 2, 3]) {
      assert.match(
        await failureOf(),
        /^dashboard\.example: no connection to it on port 80 \(the ACME server says: .+\)$/,
      );
      const row = await stored();
      assert.equal(row.failures, times);
      waits.push(Math.round((row.renew_at.getTime() - row.updated_at.getTime()) / 60_000));
      assert.equal(await renewIfDue(world, acme), "not due");
      await world.db.execute("update acme_certificate set renew_at = updated_at");
    }
    assert.deepEqual(waits, [15, 30, 60]);
    assert.equal((await stored()).chain, chain);
    const left = await world.db.query("select 1 from acme_challenge");
    assert.equal(left.length, 0);
    dns.set("dashboard.example", "A", ["127.0.0.1"]);
    await due();
    assert.equal(await renewIfDue(world, acme), "renewed");
    assert.deepEqual([(await stored()).failure, (await stored()).failures], [null, 0]);
  });

  it("says which name it refuses, and which is missing in DNS", async () => {
    const blocked = { ...world, config: { ...world.config, base_url: "https://blocked.example" } };
    dns.set("blocked.example", "A", ["127.0.0.1"]);
    await due();
    assert.equal(await renewIfDue(blocked, acme), "failed");
    assert.match((await stored()).failure ?? "", /gives no certificate for one of the names \(.*blocked\.example/);
    const nowhere = {
      ...world.config,
      hostname: "no.example",
      mx_host: "mx.no.example",
      base_url: "https://no.example",
    };
    await due();
    assert.equal(await renewIfDue({ ...world, config: nowhere }, acme), "failed");
    assert.equal((await stored()).failure, "none of our names has an address in DNS: no.example, mx.no.example");
  });

  it("with a rate limit is asked again when it says", async () => {
    const authority = makeCertificateAuthority(world.config.data_dir);
    const { key, cert } = authority.issue(["127.0.0.1"]);
    const real = await import("node:https").then(({ get }) => readDirectory(get));
    const server = createServer({ key, cert }, (request, response) => {
      if (request.url === "/dir") return void response.setHeader("content-type", "application/json").end(real(server));
      response.writeHead(429, {
        "content-type": "application/problem+json",
        "retry-after": "7200",
        "replay-nonce": "x",
      });
      const detail = "too many certificates already issued for: example";
      response.end(JSON.stringify({ type: "urn:ietf:params:acme:error:rateLimited", detail }));
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const directory = `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`;
    const limited = { ...acme, directory, ca_file: `${world.config.data_dir}/both.pem` };
    const { writeFileSync } = await import("node:fs");
    writeFileSync(limited.ca_file, authority.ca + readFileSync(pebble.ca_file, "utf8"));
    try {
      assert.equal(
        await failureOf(limited),
        "the ACME server's rate limit is reached (too many certificates already issued for: example); it may be asked again in 120 min",
      );
      const { renew_at, updated_at } = await stored(limited);
      assert.equal(renew_at.getTime() - updated_at.getTime(), 7_200_000);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("that cannot be reached is named", async () => {
    const away = { ...acme, directory: "https://127.0.0.1:1/dir" };
    assert.equal(await failureOf(away), "the ACME server cannot be reached (ECONNREFUSED)");
  });
});

/** Pebble's directory, but for the place of new orders. */
async function readDirectory(
  get: typeof import("node:https").get,
): Promise<(server: { address(): unknown }) => string> {
  const text = await new Promise<string>((done, fail) => {
    get(acme.directory, { ca: readFileSync(pebble.ca_file) }, (response) => {
      response.setEncoding("utf8").on("data", done);
    }).once("error", fail);
  });
  return (server) => {
    const { port } = server.address() as AddressInfo;
    return JSON.stringify({ ...JSON.parse(text), newOrder: `https://127.0.0.1:${port}/order` });
  };
}
