// Pebble, the ACME server that Let's Encrypt makes for tests, on loopback: real orders, challenges and certificates. It is
// built once by Go and kept in the user's cache. Where there is neither it nor Go, tests that need it are skipped.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { DnsServer } from "./dns-server.ts";
import { freePort } from "./free-port.ts";
import { makeCertificateAuthority } from "./tls.ts";
import { until } from "./until.ts";

export type Pebble = {
  /** The address of its directory. */
  directory: string;
  /** The authority of its own server: for POSTERN_ACME_CA. */
  ca_file: string;
  /** PEM of the root that its certificates lead to; a new one after each start. */
  root(): Promise<string>;
  /** Stops it and starts it again: it has forgotten every account and order. */
  restart(): Promise<void>;
  stop(): Promise<void>;
};

const VERSION = "v2.7.0";
const MODULE = `github.com/letsencrypt/pebble/v2/cmd/pebble@${VERSION}`;
const CACHE = join(homedir(), `.cache/postern/pebble-${VERSION}`);
const GO = ["/usr/local/go/bin/go", "go"];

/** Why it cannot be had, or false: as `skip` of a test. */
export function noPebble(): string | false {
  if (existsSync(join(CACHE, "pebble"))) return false;
  const go = GO.find((path) => spawnSync(path, ["version"], { stdio: "ignore" }).status === 0);
  if (!go) return "Pebble, the ACME server of this test, is built by Go, which is not here";
  mkdirSync(CACHE, { recursive: true });
  const env = { ...process.env, GOBIN: CACHE, GOFLAGS: "-mod=mod" };
  const built = spawnSync(go, ["install", MODULE], { env, encoding: "utf8" });
  return built.status === 0 ? false : `Pebble could not be built: ${built.stderr.trim().split("\n").at(-1)}`;
}

/** `http_port`: where it asks for proofs. `life_s`: how long certificates of the profile `shortlived` are valid. */
export async function startPebble(
  dns: DnsServer,
  { http_port, life_s = 518_400 }: { http_port: number; life_s?: number },
): Promise<Pebble> {
  const dir = mkdtempSync(join(tmpdir(), "postern-pebble-"));
  const authority = makeCertificateAuthority(dir);
  const { key, cert } = authority.issue(["localhost", "127.0.0.1"]);
  const [port, management] = [await freePort(), await freePort()];
  writeFileSync(join(dir, "key.pem"), key);
  writeFileSync(join(dir, "cert.pem"), cert);
  const profiles = {
    default: { description: "ninety days", validityPeriod: 7_776_000 },
    shortlived: { description: "short", validityPeriod: life_s },
  };
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: join(dir, "cert.pem"),
    privateKey: join(dir, "key.pem"),
    httpPort: http_port,
    tlsPort: 5001,
    ocspResponderURL: "",
    externalAccountBindingRequired: false,
    domainBlocklist: ["blocked.example"],
    retryAfter: { authz: 1, order: 1 },
    profiles,
  };
  writeFileSync(join(dir, "config.json"), JSON.stringify({ pebble }));
  const read = (url: string) => readOver(url, authority.ca);
  const begin = async () => {
    const args = ["-config", join(dir, "config.json"), "-dnsserver", dns.address];
    const child = spawn(join(CACHE, "pebble"), args, {
      env: { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "20", PEBBLE_AUTHZREUSE: "0" },
      stdio: "ignore",
    });
    await until("Pebble answers", () => read(`https://127.0.0.1:${port}/dir`).catch(() => null));
    return child;
  };
  let child = await begin();
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    ca_file: authority.ca_file,
    root: () => read(`https://127.0.0.1:${management}/roots/0`),
    async restart() {
      await end(child);
      child = await begin();
    },
    async stop() {
      await end(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}

function readOver(url: string, ca: string): Promise<string> {
  return new Promise((done, fail) => {
    get(url, { ca }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => done(text));
    }).once("error", fail);
  });
}
