// Postfix as a peer in receiving: smtpd with OpenDKIM and OpenDMARC (SPF by itself) as milters, every mail piped to a small
// script. Fed by the same load as ours, with the same mail and the same DNS. Stock settings but for addresses.
import { execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { freePort } from "../../test/support/postern-process.ts";
import { type Postfix, postfixMissing, startPostfix } from "../../test/support/postfix.ts";
import { deliverMany, type SmtpLoad } from "./smtp-load.ts";

/** OpenDMARC asks at port 53 only. */
const NAME_SERVER = "127.77.0.53";
const STARTED_WITHIN_MS = 5_000;
const PIPED_WITHIN_MS = 120_000;

export type PeerOptions = {
  count: number;
  connections: number;
  sender: string;
  recipient: string;
  message(n: number): Buffer;
  /** The name and the text of the signer's record. */
  key: [name: string, text: string];
  /** The records of the senders. */
  publish(dns: DnsServer): void;
};

export type PeerRate = { accepts_per_s: number; per_s: number };

/** Why this peer cannot be measured here, in a sentence; null when it can. */
export function peerMissing(): string | null {
  const programs = ["/usr/sbin/opendkim", "/usr/sbin/opendmarc"].filter((path) => !existsSync(path));
  if (programs.length > 0) return `${programs.join(" and ")} are not installed (apt-get install opendkim opendmarc)`;
  return postfixMissing();
}

/** Mails a second until their 250, and until the script had them. Throws when the milters did not judge. */
export async function benchPostfixInbound(options: PeerOptions): Promise<PeerRate> {
  const dir = mkdtempSync(join(tmpdir(), "postern-peer-"));
  chmodSync(dir, 0o755);
  const dns = await startDnsServer({}, { ttl_s: 300, host: NAME_SERVER, port: 53 });
  options.publish(dns);
  const milters = await startMilters(dir, options);
  const postfix = await startPostfix(() => settings(milters.ports, options.recipient));
  try {
    pipeToScript(postfix, dir);
    await checkJudged(postfix, dir, options);
    return await measure(postfix, dir, options);
  } finally {
    postfix.stop();
    milters.stop();
    await dns.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function settings(milterPorts: number[], recipient: string): string {
  return `mydestination =
virtual_mailbox_domains = ${recipient.split("@")[1]}
virtual_mailbox_maps = static:all
virtual_transport = script
smtp_dns_support_level = disabled
smtpd_milters = ${milterPorts.map((port) => `inet:127.0.0.1:${port}`).join(", ")}
milter_default_action = tempfail
script_destination_recipient_limit = 1
`;
}

/** The script counts; before the measuring it keeps a mail, to see that it was judged. */
function pipeToScript(postfix: Postfix, dir: string): void {
  const script = join(dir, "script");
  writeFileSync(join(dir, "count"), "");
  writeFileSync(
    script,
    `#!/bin/sh\nif [ -e ${dir}/keep ]; then cat > ${dir}/keep; else cat > /dev/null; fi\necho >> ${dir}/count\n`,
  );
  writeFileSync(join(dir, "keep"), "");
  for (const name of ["count", "keep"]) chmodSync(join(dir, name), 0o666);
  chmodSync(script, 0o755);
  appendFileSync(
    join(postfix.dir, "master.cf"),
    `script    unix  - n n - - pipe\n  flags=Rq user=nobody argv=${script}\n`,
  );
  execFileSync("postfix", ["-c", postfix.dir, "reload"], { stdio: "pipe" });
}

async function checkJudged(postfix: Postfix, dir: string, options: PeerOptions): Promise<void> {
  await deliver(postfix, options, { first: 0, count: 1 });
  await piped(dir, 1);
  const results = readFileSync(join(dir, "keep"), "latin1").match(/^Authentication-Results:.*(?:\n[ \t].*)*/gim) ?? [];
  const all = results.join("\n");
  for (const wanted of [/dkim=pass/, /dmarc=pass/]) {
    if (!wanted.test(all)) throw new Error(`the peer did not judge (${wanted}): nothing was compared\n${all}`);
  }
  rmSync(join(dir, "keep"));
}

async function measure(postfix: Postfix, dir: string, options: PeerOptions): Promise<PeerRate> {
  const before = pipedSoFar(dir);
  const startedAt = performance.now();
  const load = await deliver(postfix, options, { first: 1, count: options.count });
  if (load.accepted !== options.count) throw new Error(`the peer refused: ${JSON.stringify([...load.refused])}`);
  await piped(dir, before + options.count);
  const seconds = (performance.now() - startedAt) / 1000;
  return { accepts_per_s: load.accepted / load.seconds, per_s: load.accepted / seconds };
}

function deliver(
  { port }: Postfix,
  options: PeerOptions,
  { first, count }: { first: number; count: number },
): Promise<SmtpLoad> {
  const { connections, sender, recipient, message } = options;
  return deliverMany({
    port,
    count,
    connections,
    sender,
    recipient: () => recipient,
    message: (n) => message(first + n),
  });
}

/** A line, so a byte, for each mail. */
function pipedSoFar(dir: string): number {
  return statSync(join(dir, "count")).size;
}

async function piped(dir: string, count: number): Promise<void> {
  const until = Date.now() + PIPED_WITHIN_MS;
  while (pipedSoFar(dir) < count) {
    if (Date.now() > until) throw new Error(`${pipedSoFar(dir)} of ${count} mails were piped`);
    await sleep(5);
  }
}

// --- milters ---------------------------------------------------------------------------------------------------------------

type Milters = { ports: number[]; stop(): void };

async function startMilters(dir: string, { key }: Pick<PeerOptions, "key">): Promise<Milters> {
  const [dkimPort, dmarcPort] = [await freePort(), await freePort()];
  // Both pass over mail from this machine unless told that it is a stranger's.
  writeFileSync(join(dir, "own-hosts"), "192.0.2.1\n");
  // From a file, in the peer's favour: with look-ups, Debian's OpenDKIM ends by SIGSEGV in libunbound after some hundred mails
  // over 32 connections.
  writeFileSync(join(dir, "keys"), `${key.join(" ")}\n`);
  writeFileSync(join(dir, "resolv.conf"), `nameserver ${NAME_SERVER}\n`);
  writeFileSync(
    join(dir, "opendkim.conf"),
    `Mode v\nSocket inet:${dkimPort}@127.0.0.1\nInternalHosts ${dir}/own-hosts\nTestPublicKeys ${dir}/keys\nSyslog no\nAuthservID peer.example\nAlwaysAddARHeader yes\n`,
  );
  writeFileSync(
    join(dir, "opendmarc.conf"),
    `Socket inet:${dmarcPort}@127.0.0.1\nIgnoreHosts ${dir}/own-hosts\nAuthservID peer.example\nTrustedAuthservIDs peer.example\nSPFSelfValidate true\nSPFIgnoreResults true\nSyslog false\nRejectFailures false\n`,
  );
  // In a mount namespace of its own: this machine's resolv.conf stays as it is for everybody else.
  const inNamespace = `mount --bind ${dir}/resolv.conf /etc/resolv.conf && exec opendmarc -f -c ${dir}/opendmarc.conf`;
  const children = [
    spawn("opendkim", ["-f", "-x", join(dir, "opendkim.conf")], { stdio: "ignore" }),
    spawn("unshare", ["--mount", "sh", "-c", inNamespace], { stdio: "ignore" }),
  ];
  const stop = () => {
    for (const child of children) child.kill("SIGTERM");
  };
  await sleep(STARTED_WITHIN_MS / 5);
  const ended = children.find(({ exitCode }) => exitCode !== null);
  if (ended) {
    stop();
    throw new Error(`${ended.spawnfile} did not start (exit code ${ended.exitCode})`);
  }
  return { ports: [dkimPort, dmarcPort], stop };
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
