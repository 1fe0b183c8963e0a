// Ways in which an installation is broken, each on a machine that is well otherwise: the doctor says one sentence about
// it with what to do, and ends with 1 where it would stop mail.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import pg from "pg";
import { testConfig } from "../../test/support/api.ts";
import { type TestDatabase, testDatabase } from "../../test/support/database.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { makeCertificateAuthority } from "../../test/support/tls.ts";
import { findConfig } from "../config.ts";
import { examine, printable } from "../doctor.ts";
import { createLog } from "../platform/process/log.ts";
import { acceptMasterKey } from "../platform/storage/master-key.ts";
import type { World } from "../platform/world.ts";
import { buildWorld } from "../world.ts";
import type { Check } from "./check.ts";
import { ownZone } from "./own-zone.ts";
import type { ZoneRecord } from "./zone.ts";

const V4 = "127.0.0.1";
const V6 = "2001:db8::25";
const HOST = "mail.example.eu";
const KEY = "ab".repeat(32);

let dns: DnsServer;
let database: TestDatabase;
let world: World;
let admin: pg.Client;
let dir: string;
let zone: ZoneRecord[];
/** Our MX as others see it, and what answers that Postern runs. */
let mx: Server;
let running: HttpServer;

async function portOf(server: Server | HttpServer): Promise<number> {
  await new Promise<void>((done) => server.listen(0, V4, done));
  return (server.address() as { port: number }).port;
}

/** Settings with a certificate of their own, in files that begin with `name`. */
function certified(name: string, hosts: string[], life: { from_days?: number; until_days?: number }) {
  const { cert, key } = makeCertificateAuthority(dir).issue(hosts, life);
  const files = { POSTERN_TLS_CERT: join(dir, `${name}.pem`), POSTERN_TLS_KEY: join(dir, `${name}-key.pem`) };
  writeFileSync(files.POSTERN_TLS_CERT, cert);
  writeFileSync(files.POSTERN_TLS_KEY, key);
  return files;
}

let well: Record<string, string>;

before(async () => {
  dns = await startDnsServer();
  dir = mkdtempSync(join(tmpdir(), "postern-broken-"));
  database = await testDatabase();
  const names = { POSTERN_DNS: dns.address, POSTERN_HOSTNAME: HOST, POSTERN_PUBLIC_ADDRESSES: V4 };
  const config = testConfig({ ...names, POSTERN_MASTER_KEY: KEY });
  world = buildWorld(config, createLog({ level: "silent", role: "test" }), database.url);
  admin = new pg.Client({ connectionString: database.admin_url });
  await admin.connect();
  mx = createServer((socket) => socket.end(`220 mx.${HOST} ESMTP\r\n`));
  running = createHttpServer((_request, response) => response.end("{}"));
  const authority = makeCertificateAuthority(dir);
  const { cert, key } = authority.issue([HOST, `mx.${HOST}`]);
  writeFileSync(join(dir, "cert.pem"), cert);
  writeFileSync(join(dir, "key.pem"), key);
  mkdirSync(join(dir, "data"), { mode: 0o700 });
  await acceptMasterKey(world);
  well = {
    POSTERN_DATA: join(dir, "data"),
    POSTERN_HOSTNAME: HOST,
    POSTERN_BASE_URL: `https://${HOST}`,
    POSTERN_PUBLIC_ADDRESSES: V4,
    POSTERN_DNS: dns.address,
    POSTERN_DNS_BLOCK_LISTS: "list.example.eu",
    POSTERN_MASTER_KEY: KEY,
    DATABASE_URL: database.url,
    POSTERN_TLS_CERT: join(dir, "cert.pem"),
    POSTERN_TLS_KEY: join(dir, "key.pem"),
    POSTERN_HTTP: "127.0.0.1:0",
    POSTERN_SUBMISSION: "127.0.0.1:0",
    POSTERN_MX: "0.0.0.0:0",
    POSTERN_INTERNAL: `${V4}:${await portOf(running)}`,
    POSTERN_TESTING_OUTBOUND_PORT: String(await portOf(mx)),
  };
});

after(async () => {
  await admin?.end();
  await world?.db.close();
  await database?.drop();
  await dns?.stop();
  mx?.close();
  running?.close();
  rmSync(dir, { recursive: true, force: true });
});

beforeEach(async () => {
  dns.clear();
  zone = (await ownZone(world)).records;
  const sets = Map.groupBy(zone, ({ name, type }) => `${name} ${type}`);
  for (const set of sets.values()) {
    const [{ name, type }] = set as [ZoneRecord];
    dns.set(
      name,
      type,
      set.map(({ value, priority }) => (type === "MX" ? { exchange: value, preference: priority } : value)),
    );
  }
  dns.set(V4, "PTR", [HOST]);
  dns.set("2.0.0.127.list.example.eu", "A", ["127.0.0.2"]);
});

/** What is no fault of the situation: the test server does not wait for its disk, and the MX is on another port than 25. */
const OF_THE_TEST = /^(fsync|full_page_writes|Data checksums|synchronous_commit) |^The MX listens on 0\.0\.0\.0:0/;

async function bad(change: Record<string, string> = {}): Promise<Check[]> {
  const env = { ...well, ...change };
  const checks = await examine({ try_smtp: V4 }, () => findConfig(env));
  return checks.filter(({ status, says }) => (status === "problem" || status === "warning") && !OF_THE_TEST.test(says));
}

type Broken = {
  name: string;
  /** Breaks it; the answer mends what is not mended before each case, and says which settings are other ones. */
  breaks(): Promise<{ change?: Record<string, string>; mend?(): unknown } | undefined> | undefined;
  check: string;
  status: Check["status"];
  says: RegExp;
  remedy: RegExp;
  /** Why it cannot be tried here. */
  skip?: string | false;
};

const isRoot = process.getuid?.() === 0;

const SITUATIONS: Broken[] = [
  {
    name: "a PTR that names something else",
    breaks: async () => void dns.set(V4, "PTR", ["host-127.provider.example"]),
    check: "PTR",
    status: "problem",
    says: /^127\.0\.0\.1 is called host-127\.provider\.example in DNS, not mail\.example\.eu\./,
    remedy: /Ask the provider of the address for the PTR record mail\.example\.eu\./,
  },
  {
    name: "an IPv6 address without a PTR",
    breaks: async () => {
      dns.set(HOST, "AAAA", [V6]);
      return { change: { POSTERN_PUBLIC_ADDRESSES: `${V4},${V6}` } };
    },
    check: "PTR",
    status: "problem",
    says: /^2001:db8::25 has no name in DNS\./,
    remedy: /Ask the provider of the address/,
  },
  {
    name: "port 25 closed on the way out",
    breaks: async () => ({ change: { POSTERN_TESTING_OUTBOUND_PORT: "1" } }),
    check: "port 25",
    status: "problem",
    says: /^127\.0\.0\.1 cannot be reached on port 1: ECONNREFUSED\.$/,
    remedy: /Many hosts close port 25: ask them to open it, or send through a relay\./,
  },
  {
    name: "port 25 closed on the way in",
    breaks: async () => {
      dns.set(`mx.${HOST}`, "A", ["127.0.0.3"]);
      return { change: { POSTERN_PUBLIC_ADDRESSES: `${V4},127.0.0.3` } };
    },
    check: "port 25 in",
    status: "problem",
    says: /^Port \d+ of 127\.0\.0\.3 \(mx\.mail\.example\.eu\) does not answer: ECONNREFUSED\. No mail and no bounce arrives\.$/,
    remedy: /Open port 25 in the firewalls/,
  },
  {
    name: "our own SPF record missing",
    breaks: async () => void dns.remove(`_spf.${HOST}`, "TXT"),
    check: "SPF",
    status: "problem",
    says: /So the SPF record of every customer's domain is invalid to receivers\.$/,
    remedy: /^Publish the record: _spf\.mail\.example\.eu TXT "v=spf1 ip4:127\.0\.0\.1 -all"$/,
  },
  {
    name: "the record of bounces missing",
    breaks: async () => void dns.remove(`bounces.${HOST}`, "MX"),
    check: "bounces",
    status: "warning",
    says: /bounces\.mail\.example\.eu.*no bounce comes back/,
    remedy: /^Publish /,
  },
  {
    name: "a database that is too old",
    breaks: async () => {
      // A real server that says another version of itself.
      await admin.query("create schema old");
      await admin.query(
        `create function old.current_setting(name text) returns text language sql as
           $$ select case name when 'server_version_num' then '130014' when 'server_version' then '13.14' else pg_catalog.current_setting(name) end $$`,
      );
      await admin.query("grant usage on schema old to public");
      await admin.query(
        `alter database "${new URL(database.url).pathname.slice(1)}" set search_path = old, pg_catalog, public`,
      );
      return {
        mend: async () => {
          await admin.query(`alter database "${new URL(database.url).pathname.slice(1)}" reset search_path`);
          await admin.query("drop schema old cascade");
        },
      };
    },
    check: "database",
    status: "problem",
    says: /^PostgreSQL 13\.14 is too old\.$/,
    remedy: /^Use 15 or newer/,
  },
  {
    name: "a database role without the right to make tables",
    breaks: async () => {
      await admin.query("create table taken as select * from schema_migration where number = 1");
      await admin.query("delete from schema_migration where number = 1");
      await admin.query("revoke create on schema public from pg_database_owner, public");
      return {
        mend: async () => {
          await admin.query("insert into schema_migration select * from taken; drop table taken");
          await admin.query("grant create on schema public to pg_database_owner");
        },
      };
    },
    check: "schema",
    status: "problem",
    says: /^The database role may make no tables\.$/,
    remedy: /must own the database/,
  },
  {
    name: "a clock that is ten minutes wrong",
    breaks: async () => {
      writeFileSync(join(dir, "clock"), "600");
      return { change: { POSTERN_TESTING_CLOCK_FILE: join(dir, "clock") } };
    },
    check: "clock",
    status: "problem",
    says: /^The database's clock is (59\d|60\d) s behind this machine's\.$/,
    remedy: /chrony or systemd-timesyncd/,
  },
  {
    name: "a disk that is almost full",
    breaks: async () => {
      const folder = join(dir, "small");
      mkdirSync(folder);
      const done = spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m,mode=700", "none", folder]);
      assert.equal(done.status, 0, String(done.stderr));
      return { change: { POSTERN_DATA: folder }, mend: () => spawnSync("umount", [folder]) };
    },
    check: "data folder",
    status: "problem",
    says: /small has 1 MiB free\.$/,
    remedy: /^Make room/,
    skip: !isRoot && "a small file system is mounted by root only",
  },
  {
    name: "a data folder to be made in a file system that is read-only",
    breaks: async () => {
      const folder = join(dir, "read-only");
      mkdirSync(folder);
      const done = spawnSync("mount", ["-t", "tmpfs", "-o", "ro", "none", folder]);
      assert.equal(done.status, 0, String(done.stderr));
      return { change: { POSTERN_DATA: join(folder, "a", "data") }, mend: () => spawnSync("umount", [folder]) };
    },
    check: "data folder",
    status: "problem",
    says: /data does not exist and cannot be made: \S+read-only is on a file system that is read-only\.$/,
    remedy: /^Set POSTERN_DATA to a folder/,
    skip: !isRoot && "a file system is mounted by root only",
  },
  {
    name: "the master key lost",
    breaks: async () => ({ change: { POSTERN_MASTER_KEY: "" } }),
    check: "master key",
    status: "problem",
    says: /^There is no master key here, and the database was sealed with one\.$/,
    remedy: /put your copy of it back/,
  },
  {
    name: "a store of large bodies that refuses the keys",
    breaks: async () => {
      const store = createHttpServer((request, response) => {
        request.resume();
        request.on("end", () => response.writeHead(403).end("<Error><Code>AccessDenied</Code></Error>"));
      });
      const change = {
        ...{ POSTERN_S3_ENDPOINT: `http://${V4}:${await portOf(store)}`, POSTERN_S3_BUCKET: "mail" },
        ...{ POSTERN_S3_ACCESS_KEY: "id", POSTERN_S3_SECRET_KEY: "secret" },
      };
      return { change, mend: () => store.closeAllConnections() ?? store.close() };
    },
    check: "large bodies",
    status: "problem",
    says: /^The bucket mail at http:.* cannot be used: .*403/,
    remedy: /these keys may write, read and delete in it/,
  },
  {
    name: "a certificate near its end",
    breaks: async () => ({ change: certified("old", [HOST], { from_days: -85, until_days: 5 }) }),
    check: "certificate",
    status: "warning",
    says: /old\.pem expires in [45] days\.$/,
    remedy: /^Renew it/,
  },
  {
    name: "a certificate that names no mail server here",
    breaks: async () => ({ change: certified("other", ["www.example.eu"], {}) }),
    check: "certificate",
    status: "warning",
    says: new RegExp(`other\\.pem does not name mx\\.${HOST}, ${HOST}: who checks the name of a mail server `),
    remedy: /^Take one that names every host here/,
  },
  {
    name: "a certificate that browsers do not take for the API",
    breaks: async () => ({
      change: { ...certified("mail-only", [`mx.${HOST}`], {}), POSTERN_HTTPS: `${V4}:0` },
    }),
    check: "certificate",
    status: "problem",
    says: new RegExp(`mail-only\\.pem does not name ${HOST}: no browser and no client of the API accepts it\\.$`),
    remedy: /^Take one that names every host here/,
  },
  {
    name: "a certificate of tomorrow",
    breaks: async () => ({ change: certified("early", [HOST, `mx.${HOST}`], { from_days: 1, until_days: 90 }) }),
    check: "certificate",
    status: "problem",
    says: /early\.pem is not valid before \d{4}-\d\d-\d\dT\d\d:\d\dZ\.$/,
    remedy: /^Renew it/,
  },
  {
    name: "an address on a block list",
    breaks: async () => {
      dns.set("192.0.2.9", "PTR", [HOST]);
      dns.set("9.2.0.192.list.example.eu", "A", ["127.0.0.2"]);
      return { change: { POSTERN_PUBLIC_ADDRESSES: `${V4},192.0.2.9` } };
    },
    check: "listed",
    status: "problem",
    says: /list\.example\.eu.*: servers that ask this list refuse our mail\.$/,
    remedy: /^Ask the list to remove it/,
  },
];

describe("the doctor", () => {
  it("finds nothing wrong on the machine that is well", async () => {
    assert.deepEqual(await bad(), []);
  });

  for (const { name, breaks, skip = false, ...expected } of SITUATIONS) {
    it(`sees ${name}, in one sentence with the remedy`, { skip }, async () => {
      const { change = {}, mend = () => undefined } = (await breaks()) ?? {};
      try {
        const found = await bad(change);
        const one = found.find((check) => check.name === expected.check && expected.says.test(check.says));
        assert.ok(one, JSON.stringify(found, null, 1));
        assert.equal(one.status, expected.status);
        assert.match(one.remedy ?? "", expected.remedy);
        assert.equal(printable([one]).split("\n").length, 4, "a line, its remedy, and the sum");
      } finally {
        await mend();
      }
    });
  }
});
