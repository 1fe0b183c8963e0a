// The certificate of our servers: made once, shared by processes, renewed without a restart.
import assert from "node:assert/strict";
import type { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect, createServer, type SecureContext } from "node:tls";
import type { Config } from "../../config.ts";
import { fixedClock } from "../clock.ts";
import { createLog } from "../process/log.ts";
import { createMetrics } from "../process/metrics.ts";
import { makeSelfSigned } from "./self-signed.ts";
import { serverTls } from "./server-tls.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-tls-"));
after(() => rmSync(dir, { recursive: true }));

const clock = fixedClock(Date.now());
const worldOf = (config: Partial<Config>) => ({
  clock,
  log: createLog({ level: "silent", role: "test" }),
  metrics: createMetrics(),
  config: {
    data_dir: dir,
    mx_host: "mx.postern.test",
    hostname: "postern.test",
    tls_cert_file: null,
    tls_key_file: null,
    ...config,
  } as Config,
});

/** The certificate that a client sees. */
async function shownBy(secureContext: SecureContext): Promise<X509Certificate> {
  const server = createServer({ SNICallback: (_name, done) => done(null, secureContext) }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", servername: "mx.postern.test", rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  const seen = socket.getPeerX509Certificate() as X509Certificate;
  socket.destroy();
  server.close();
  return seen;
}

test("without files a certificate is made, kept, and the same at the next start", async () => {
  const first = await shownBy(serverTls(worldOf({}))());
  assert.equal(first.subjectAltName, "DNS:mx.postern.test, DNS:postern.test");
  assert.ok(first.verify(first.publicKey));
  assert.ok(Date.parse(first.validFrom) < clock.now() && Date.parse(first.validTo) > clock.now() + 3_000 * 86_400_000);
  assert.equal(statSync(join(dir, "self-signed.pem")).mode & 0o777, 0o600);
  const again = await shownBy(serverTls(worldOf({}))());
  assert.equal(again.fingerprint256, first.fingerprint256);
});

test("a self-signed certificate that a power cut left empty or torn is made again", async () => {
  const path = join(dir, "self-signed.pem");
  const whole = readFileSync(path, "utf8");
  for (const left of [
    "",
    "\0".repeat(whole.length),
    whole.slice(0, 100),
    whole.slice(0, whole.indexOf("CERTIFICATE")),
  ]) {
    writeFileSync(path, left);
    const made = await shownBy(serverTls(worldOf({}))());
    assert.equal(made.subjectAltName, "DNS:mx.postern.test, DNS:postern.test");
    const again = await shownBy(serverTls(worldOf({}))());
    assert.equal(again.fingerprint256, made.fingerprint256);
  }
});

test("the operator's files are used, and read again when they are replaced", async () => {
  const [cert, key] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const write = (host: string, mtimeS: number) => {
    const made = makeSelfSigned([host], clock.now());
    writeFileSync(cert, made.cert);
    writeFileSync(key, made.key);
    for (const path of [cert, key]) utimesSync(path, mtimeS, mtimeS);
  };
  write("one.example", 1_000);
  const context = serverTls(worldOf({ tls_cert_file: cert, tls_key_file: key }));
  assert.equal((await shownBy(context())).subjectAltName, "DNS:one.example");
  write("two.example", 2_000);
  assert.equal((await shownBy(context())).subjectAltName, "DNS:one.example", "not looked at yet");
  clock.advance(31_000);
  assert.equal((await shownBy(context())).subjectAltName, "DNS:two.example");
  writeFileSync(cert, readFileSync(cert).subarray(0, 100));
  clock.advance(31_000);
  assert.equal((await shownBy(context())).subjectAltName, "DNS:two.example", "a half-written renewal changes nothing");
});

test("files that are no certificate and its key are named with their settings", () => {
  const [cert, other] = [join(dir, "given.pem"), join(dir, "other.pem")];
  writeFileSync(cert, makeSelfSigned(["mx.postern.test"], clock.now()).cert);
  writeFileSync(other, makeSelfSigned(["mx.postern.test"], clock.now()).key);
  const named =
    /given\.pem \(POSTERN_TLS_CERT\) with the key .*\.pem \(POSTERN_TLS_KEY\) cannot be used: .*PEM form\.$/;
  assert.throws(() => serverTls(worldOf({ tls_cert_file: cert, tls_key_file: other })), named);
  assert.throws(() => serverTls(worldOf({ tls_cert_file: cert, tls_key_file: cert })), named);
});
