// Tries `postern setup --yes` out where nothing was set up yet: one command to a mail that was delivered and signed. Its records are
// published as the zone file has them, as an operator does. Name server and receiving server are on loopback; there is no ACME
// server. Not here: how the artefact got there.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { createResolver } from "../src/platform/dns/resolver.ts";
import type { Step } from "../src/setup/types.ts";
import { type DnsServer, startDnsServer } from "../test/support/dns-server.ts";
import { nodeStyleResolver } from "../test/support/node-resolver.ts";
import { posternSettings } from "../test/support/postern-process.ts";
import { startSmtpSink } from "../test/support/smtp-sink.ts";
import { receiveAt } from "../test/support/stories.ts";
import { until } from "../test/support/until.ts";
import { publishZone } from "../test/support/zone-file.ts";
import { secondsSince } from "./try.ts";

const HOST = "mail.example.eu";
const OPERATOR = "you@operator.example";
const ZONE_WITHIN_MS = 120_000;
/** The doctor's last word is about this machine's port 25 and its addresses. */
const DONE = ["settings", "organization", "records", "mail"];

export type SetUpTried = { seconds_from_setup_to_mail: number };

/** `start` runs `postern` with these arguments; `zone` is where its zone file will be, as seen from here. */
export async function trySetUp(
  start: (args: string[], env: Record<string, string>) => ChildProcess,
  zone: string,
): Promise<SetUpTried> {
  await using undo = new AsyncDisposableStack();
  const dns = undo.adopt(await startDnsServer(), (server) => server.stop());
  const sink = undo.adopt(await startSmtpSink(), (server) => server.stop());
  receiveAt(dns, "operator.example");
  const { env } = await posternSettings("", {
    POSTERN_DNS: dns.address,
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
  });
  const { POSTERN_DATA: _data, POSTERN_HOSTNAME: _host, ...given } = env;
  const answers = ["--host", HOST, "--addresses", "127.0.0.1", "--notices", OPERATOR, "--acme", "off"];
  const began = performance.now();
  const child = start(["setup", "--yes", "--json", ...answers, "--wait-minutes", "3"], given);
  undo.defer(() => void child.kill("SIGKILL"));
  const said = Promise.all([text(child.stdout!), text(child.stderr!), once(child, "exit")]);
  const file = await Promise.race([
    until("the zone file is there", () => existsSync(zone) && readFileSync(zone, "utf8"), ZONE_WITHIN_MS),
    said.then(([out, err]) => Promise.reject(new Error(`postern setup ended without a zone file:\n${out}${err}`))),
  ]);
  publishZone(dns, file);
  const [out] = await said;
  refuseUndone(JSON.parse(out).steps);
  const [mail] = await sink.waitFor(1);
  await refuseUnsigned(dns, mail!.bytes);
  return { seconds_from_setup_to_mail: secondsSince(began) };
}

function refuseUndone(steps: Step[]): void {
  const undone = DONE.filter((name) => steps.find((step) => step.name === name)?.status !== "done");
  if (undone.length > 0) throw new Error(`postern setup did not do ${undone.join(", ")}: ${JSON.stringify(steps)}`);
}

/** A second opinion on the signature, by the key that the zone file has. */
async function refuseUnsigned(dns: DnsServer, bytes: Buffer): Promise<void> {
  const options = { servers: [dns.address], timeout_ms: 2_000, attempts: 2, cache_max: 10, validating: false };
  const resolver = nodeStyleResolver(createResolver({ ...options, now: () => performance.now() }));
  const { results } = await dkimVerify(bytes, { resolver } as never);
  const [first] = results;
  if (first?.status.result !== "pass" || first.signingDomain !== `masked.${HOST}`)
    throw new Error(`the mail of postern setup is not signed: ${JSON.stringify(first)}`);
}
