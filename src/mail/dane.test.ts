// DANE's verdicts beside OpenSSL's own: certificates made by openssl, a server of openssl's, and `s_client -dane_…` as the
// judge of every combination of record and certificate. Skipped where the openssl program is missing.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createServer, type Server } from "node:tls";
import fc from "fast-check";
import { rounds } from "../../test/support/rounds.ts";
import { matchTlsa, publicKeyOf, readTlsaSet, type TlsaRecord } from "./dane.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-dane-"));
const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
const options = { skip: hasOpenssl ? false : "the openssl program is not installed" };
const HOST = "mx.example.com";
const AT_ONCE = 4;

type Chain = { der: Buffer[]; pem: string; key: string };
let good: Chain;
let expired: Chain;
let root: Buffer;

before(() => {
  if (!hasOpenssl) return;
  run("ecparam -name prime256v1 -out curve");
  authority("root", "/CN=Root", null);
  authority("middle", "/CN=Middle", "root");
  good = leaf("good", "30");
  expired = leaf("expired", "-1");
  root = der("root");
});
after(() => rmSync(dir, { recursive: true, force: true }));

function run(command: string): void {
  execFileSync("openssl", command.split(" "), { cwd: dir, stdio: ["ignore", "ignore", "ignore"] });
}

function authority(name: string, subject: string, issuer: string | null): void {
  writeFileSync(join(dir, "ca.ext"), "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n");
  run(`req -new -newkey ec:curve -nodes -keyout ${name}.key -out ${name}.csr -subj ${subject}`);
  const signer = issuer ? `-CA ${issuer}.pem -CAkey ${issuer}.key -set_serial 2` : `-signkey ${name}.key -set_serial 1`;
  run(`x509 -req -in ${name}.csr ${signer} -days 30 -extfile ca.ext -out ${name}.pem`);
}

function leaf(name: string, days: string): Chain {
  writeFileSync(join(dir, "leaf.ext"), `subjectAltName=DNS:${HOST}\nbasicConstraints=CA:FALSE\n`);
  run(`req -new -newkey ec:curve -nodes -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`);
  run(
    `x509 -req -in ${name}.csr -CA middle.pem -CAkey middle.key -set_serial 3 -days ${days} -extfile leaf.ext -out ${name}.pem`,
  );
  const pem = [name, "middle"].map((one) => readFileSync(join(dir, `${one}.pem`), "utf8")).join("");
  return { der: [der(name), der("middle")], pem, key: readFileSync(join(dir, `${name}.key`), "utf8") };
}

function der(name: string): Buffer {
  return Buffer.from(new X509Certificate(readFileSync(join(dir, `${name}.pem`))).raw);
}

function record(usage: number, selector: number, matching_type: number, certificate: Buffer): TlsaRecord {
  const selected = selector === 0 ? certificate : (publicKeyOf(certificate) as Buffer);
  const algorithm = ["", "sha256", "sha512"][matching_type];
  const data = algorithm ? createHash(algorithm).update(selected).digest() : selected;
  return { usage, selector, matching_type, data };
}

const judge = (records: TlsaRecord[], chain: Chain, names = [HOST]) =>
  matchTlsa(records, chain.der, { names, now_ms: Date.now() });

describe("a certificate beside its TLSA records", options, () => {
  it("gets the same verdict from OpenSSL, whatever the record speaks of", async () => {
    const servers = await Promise.all([good, expired].map(startServer));
    const cases = [good, expired].flatMap((chain, index) => {
      const port = (servers[index] as Server).address() as { port: number };
      return comparisons(chain).map((one) => ({ ...one, chain, port: port.port }));
    });
    try {
      for (let at = 0; at < cases.length; at += AT_ONCE) {
        await Promise.all(cases.slice(at, at + AT_ONCE).map(compare));
      }
      assert.equal(cases.length, 50);
    } finally {
      for (const server of servers) server.close();
    }
  });

  it("passes DANE-EE whatever its name and dates, DANE-TA only with both (RFC 7672 §3.1)", () => {
    const ee = record(3, 1, 1, expired.der[0] as Buffer);
    assert.equal(judge([ee], expired, ["nobody.example.com"]).matched, true);
    const ta = record(2, 0, 1, good.der[1] as Buffer);
    assert.equal(judge([ta], good).matched, true);
    const named = judge([ta], good, ["other.example.com"]);
    assert.deepEqual(!named.matched && named.fault, "certificate-host-mismatch");
    const late = judge([ta], expired);
    assert.deepEqual(!late.matched && late.fault, "certificate-expired");
    assert.equal(judge([ta], good, ["other.example.com", HOST]).matched, true);
  });

  it("needs no more than one of several records", () => {
    const wrong = record(3, 1, 1, root);
    const right = record(3, 1, 1, good.der[0] as Buffer);
    assert.equal(judge([wrong], good).matched, false);
    assert.equal(judge([wrong, right], good).matched, true);
  });

  it("is refused when the chain is broken, empty or made of something else", () => {
    const ta = record(2, 0, 1, root);
    assert.equal(judge([ta], good).matched, false, "the root is not in the chain");
    const withRoot = { ...good, der: [...good.der, root] };
    assert.equal(judge([ta], withRoot).matched, true);
    assert.equal(judge([ta], { ...good, der: [good.der[0] as Buffer, root] }).matched, false, "a link is missing");
    for (const chain of [[], [Buffer.alloc(0)], [Buffer.from("30820000", "hex")], [randomish(500)]]) {
      assert.equal(judge([ta, record(3, 0, 1, root)], { ...good, der: chain }).matched, false);
    }
  });
});

type Comparison = { one: TlsaRecord; name: string; chain: Chain; port: number };

/** Every usage and selector, each with some matching type, on every certificate; and another name on the right ones. */
function comparisons(chain: Chain): Pick<Comparison, "one" | "name">[] {
  const stranger = (chain === good ? expired : good).der[0] as Buffer;
  const certificates = [...chain.der, root, stranger];
  const kinds = [
    [2, 0, 1],
    [2, 1, 0],
    [2, 1, 2],
    [3, 0, 0],
    [3, 1, 1],
  ] as const;
  const all = certificates.flatMap((one) =>
    kinds.map(([usage, selector, type]) => ({ one: record(usage, selector, type, one), name: HOST })),
  );
  const misnamed = chain.der.slice(1).concat(root);
  const others = misnamed.flatMap((one) => [record(2, 0, 0, one), record(2, 1, 2, one)]);
  const leaf = record(3, 1, 1, chain.der[0] as Buffer);
  return [...all, ...[...others, leaf].map((one) => ({ one, name: "other.example.com" }))];
}

async function compare({ one, name, chain, port }: Comparison): Promise<void> {
  const ours = judge([one], chain, [name]).matched;
  const theirs = await askOpenssl(port, one, name);
  const { usage, selector, matching_type } = one;
  assert.equal(ours, theirs, JSON.stringify({ usage, selector, matching_type, name, late: chain === expired, ours }));
}

async function startServer({ pem, key }: Chain): Promise<Server> {
  const server = createServer({ cert: pem, key }, (socket) => socket.on("error", () => undefined).end("hello\r\n"));
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

/** What OpenSSL says; RFC 7672 has no name checks for DANE-EE. */
async function askOpenssl(port: number, { usage, selector, matching_type, data }: TlsaRecord, name: string) {
  const child = spawn(
    "openssl",
    [
      ..."s_client -brief -verify 9 -verify_return_error -dane_ee_no_namechecks".split(" "),
      ...["-connect", `127.0.0.1:${port}`, "-dane_tlsa_domain", name],
      ...["-dane_tlsa_rrdata", `${usage} ${selector} ${matching_type} ${data.toString("hex")}`],
    ],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await once(child, "close");
  return /^Verification: OK$/m.test(said) && /^DANE TLSA/m.test(said);
}

function randomish(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, index) => (index * 197 + 31) & 0xff));
}

describe("a set of TLSA records", () => {
  const make = (usage: number, selector: number, type: number, length: number): TlsaRecord => ({
    usage,
    selector,
    matching_type: type,
    data: randomish(length),
  });

  it("keeps DANE-TA and DANE-EE, and passes over kinds we need not know", () => {
    const usable = [make(3, 1, 1, 32), make(2, 0, 2, 64)];
    const others = [make(0, 0, 1, 32), make(1, 1, 1, 32), make(3, 2, 1, 32), make(3, 1, 9, 32), make(255, 1, 1, 32)];
    assert.deepEqual(readTlsaSet([...others, ...usable]), { usable, defects: [] });
  });

  it("names malformed records instead of taking them for matches", () => {
    const malformed = [
      ...[0, 3, 19, 31, 33].map((length) => make(3, 1, 1, length)),
      ...[0, 32, 63, 65].map((length) => make(2, 0, 2, length)),
      make(3, 0, 0, 200),
      make(3, 1, 0, 91),
      make(2, 0, 0, 0),
    ];
    for (const one of malformed) {
      const { usable, defects } = readTlsaSet([one]);
      assert.deepEqual(usable, [], JSON.stringify(one));
      assert.match(
        defects[0] ?? "",
        /^TLSA \d \d \d (has \d+ bytes instead of (32|64)|holds no (certificate|public key))$/,
      );
    }
    const sound = make(3, 1, 1, 32);
    assert.deepEqual(readTlsaSet([...malformed, sound]).usable, [sound]);
  });

  it("uses the strongest digest of each kind alone (RFC 7671 §9)", () => {
    const strong = [make(3, 1, 2, 64), make(2, 0, 1, 32)];
    const weak = make(3, 1, 1, 32);
    assert.deepEqual(readTlsaSet([weak, ...strong]).usable, strong);
  });

  it("never throws, whatever the bytes", () => {
    const bytes = fc.uint8Array({ maxLength: 120 }).map((array) => Buffer.from(array));
    const records = fc.array(
      fc.record({ usage: fc.nat(4), selector: fc.nat(2), matching_type: fc.nat(3), data: bytes }),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(records, fc.array(bytes, { maxLength: 4 }), (given, chain) => {
        const { usable } = readTlsaSet(given);
        assert.equal(typeof matchTlsa(usable, chain, { names: ["a.example"], now_ms: 0 }).matched, "boolean");
        for (const der of chain) assert.ok((publicKeyOf(der)?.length ?? 0) <= der.length);
      }),
      { numRuns: rounds(200, 1_000) },
    );
  });
});
