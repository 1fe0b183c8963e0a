// Debian's unbound as a validating resolver on loopback: signed zones from texts with their trust anchors, `example` and
// a few more forwarded to the test name server, nothing asked of the world outside.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DnsServer } from "./dns-server.ts";
import { freePort } from "./free-port.ts";
import type { SignedZone } from "./signed-zone.ts";

export type Unbound = {
  /** `127.0.0.1:port`. */
  address: string;
  stop(): Promise<void>;
};

const START_MS = 10_000;
const FORWARDED = ["example.", "postern.test.", "google.com."];

/** True if the program is there. Tests that need it are skipped with a message otherwise. */
export function hasUnbound(): boolean {
  return spawnSync("unbound", ["-V"], { stdio: "ignore" }).status === 0;
}

/** Starts it for the zones (by apex). */
export async function startUnbound(zones: Record<string, SignedZone>, forwardTo: DnsServer): Promise<Unbound> {
  const dir = mkdtempSync(join(tmpdir(), "postern-unbound-"));
  const port = await freePort();
  for (const [apex, { text }] of Object.entries(zones)) writeFileSync(join(dir, `${apex}.zone`), text);
  writeFileSync(join(dir, "root.hints"), ". 3600000 NS ns.invalid.\nns.invalid. 3600000 A 127.0.0.1\n");
  writeFileSync(join(dir, "unbound.conf"), configuration(dir, port, zones, forwardTo));
  const child = spawn("unbound", ["-d", "-c", join(dir, "unbound.conf")], { stdio: ["ignore", "ignore", "pipe"] });
  try {
    await started(child);
  } catch (error) {
    child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  return {
    address: `127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGTERM");
      if (child.exitCode === null) await once(child, "exit");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function configuration(dir: string, port: number, zones: Record<string, SignedZone>, forwardTo: DnsServer): string {
  const anchors = Object.values(zones).map(({ trust_anchor }) => `  trust-anchor: "${trust_anchor}"`);
  const signed = Object.keys(zones).map(
    (apex) =>
      `auth-zone:\n  name: "${apex}."\n  zonefile: "${join(dir, `${apex}.zone`)}"\n` +
      "  for-upstream: yes\n  for-downstream: no\n  fallback-enabled: no\n",
  );
  const forwarded = FORWARDED.map(
    (name) => `forward-zone:\n  name: "${name}"\n  forward-addr: ${forwardTo.address.replace(":", "@")}\n`,
  );
  return `server:
  interface: 127.0.0.1@${port}
  port: ${port}
  num-threads: 1
  username: ""
  chroot: ""
  pidfile: ""
  directory: "${dir}"
  use-syslog: no
  verbosity: 1
  do-ip6: no
  do-not-query-localhost: no
  module-config: "validator iterator"
  cache-max-ttl: 1
  cache-max-negative-ttl: 1
  root-hints: "${join(dir, "root.hints")}"
  local-zone: "test." nodefault
${anchors.join("\n")}
remote-control:
  control-enable: no
${[...signed, ...forwarded].join("")}`;
}

async function started(child: ChildProcess): Promise<void> {
  let said = "";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error(`unbound did not start: ${said}`)), START_MS);
  child.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4_000);
    if (/start of service/.test(said)) resolve();
  });
  child.once("exit", (code) => reject(new Error(`unbound ended with ${code}: ${said}`)));
  child.once("error", reject);
  await promise.finally(() => clearTimeout(timer));
}
