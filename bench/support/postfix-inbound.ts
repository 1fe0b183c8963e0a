// Postfix as a peer in receiving: smtpd with OpenDKIM and OpenDMARC (SPF by itself) as milters, every mail handed on to the
// sink, which stands for the program that a mail is for. Fed by the same load as ours, with the same mail and the same DNS.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { type Postfix, postfixMissing, startPostfix } from "../../test/support/postfix.ts";
import { type Milter, startMilter } from "./milter.ts";
import { type PeerFigures, POSTFIX_TUNED } from "./peer.ts";
import { processorSeconds } from "./processor.ts";
import { type BenchSink, meanBytes } from "./sink.ts";
import { deliverMany, type SmtpLoad } from "./smtp-load.ts";

/** OpenDMARC asks at port 53 only. */
const NAME_SERVER = "127.77.0.53";

export type PeerOptions = {
  sink: BenchSink;
  count: number;
  /** Mails before the measuring. */
  warm_up: number;
  connections: number;
  sender: string;
  recipient: string;
  message(n: number): Buffer;
  /** The name and the text of the signer's record. */
  key: [name: string, text: string];
  /** The records of the senders. */
  publish(dns: DnsServer): void;
};

/** Why this peer cannot be measured here, in a sentence; null when it can. */
export function peerMissing(): string | null {
  const programs = ["/usr/sbin/opendkim", "/usr/sbin/opendmarc"].filter((path) => !existsSync(path));
  if (programs.length > 0) return `${programs.join(" and ")} are not installed (apt-get install opendkim opendmarc)`;
  return postfixMissing();
}

/** Mails a second until their 250, and until the sink had them. Throws when the milters did not judge. */
export async function benchPostfixInbound(options: PeerOptions): Promise<PeerFigures> {
  const dir = mkdtempSync(join(tmpdir(), "postern-peer-"));
  chmodSync(dir, 0o755);
  const dns = await startDnsServer({}, { ttl_s: 300, host: NAME_SERVER, port: 53 });
  options.publish(dns);
  const milters: Milter[] = [];
  try {
    const sockets = ["opendkim", "opendmarc"].map((name) => join(dir, `${name}.socket`));
    milters.push(...(await startMilters(dir, sockets, options)));
    const postfix = await startPostfix(() => settings(sockets, options));
    try {
      return await measure(postfix, [postfix.pid, ...milters.map(({ pid }) => pid)], options);
    } finally {
      postfix.stop();
    }
  } finally {
    for (const milter of milters) milter.stop();
    await dns.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function settings(sockets: string[], { recipient, sink }: PeerOptions): string {
  return `mydestination =
virtual_mailbox_domains = ${recipient.split("@")[1]}
virtual_mailbox_maps = static:all
virtual_transport = relay:[127.0.0.1]:${sink.port}
smtp_dns_support_level = disabled
smtpd_milters = ${sockets.map((socket) => `unix:${socket}`).join(", ")}
milter_default_action = tempfail
${POSTFIX_TUNED}`;
}

async function measure(postfix: Postfix, pids: number[], options: PeerOptions): Promise<PeerFigures> {
  const { sink, count, warm_up } = options;
  await sink.reset();
  await deliver(postfix, options, { first: 0, count: warm_up });
  await sink.waitFor(warm_up);
  await sink.reset();
  const before = processorSeconds(pids);
  const startedAt = performance.now();
  const loading = deliver(postfix, options, { first: warm_up, count });
  const [load, endedAt] = await Promise.all([loading, sink.waitFor(count)]);
  const used = processorSeconds(pids) - before;
  if (load.accepted !== count) throw new Error(`the peer refused: ${JSON.stringify([...load.refused])}`);
  return {
    per_s: Math.round(count / ((endedAt - startedAt) / 1000)),
    accepts_per_s: Math.round(load.accepted / load.seconds),
    processor_us: Math.round((used * 1e6) / count),
    message_bytes: await checkJudged(sink),
  };
}

/** The mean length of the samples, all of which carry the verdicts. */
async function checkJudged(sink: BenchSink): Promise<number> {
  const samples = await sink.samples();
  for (const sample of samples) {
    const results = sample.toString("latin1").match(/^Authentication-Results:.*(?:\r?\n[ \t].*)*/gim) ?? [];
    for (const wanted of [/dkim=pass/, /dmarc=pass/]) {
      if (!wanted.test(results.join("\n")))
        throw new Error(`the peer did not judge (${wanted}): nothing was compared\n${results.join("\n")}`);
    }
  }
  return meanBytes(samples);
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

// --- milters ---------------------------------------------------------------------------------------------------------------

async function startMilters(dir: string, [dkim, dmarc]: string[], { key }: PeerOptions): Promise<Milter[]> {
  // Both pass over mail from this machine, which must count as a stranger's.
  writeFileSync(join(dir, "own-hosts"), "192.0.2.1\n");
  // From a file, in the peer's favour: with look-ups, Debian's OpenDKIM ends by SIGSEGV in libunbound after some hundred mails
  // over 32 connections.
  writeFileSync(join(dir, "keys"), `${key.join(" ")}\n`);
  writeFileSync(join(dir, "resolv.conf"), `nameserver ${NAME_SERVER}\n`);
  writeFileSync(
    join(dir, "opendkim.conf"),
    `Mode v\nSocket local:${dkim}\nUMask 000\nInternalHosts ${dir}/own-hosts\nTestPublicKeys ${dir}/keys\nSyslog no\nAuthservID peer.example\nAlwaysAddARHeader yes\n`,
  );
  writeFileSync(
    join(dir, "opendmarc.conf"),
    `Socket local:${dmarc}\nUMask 000\nIgnoreHosts ${dir}/own-hosts\nAuthservID peer.example\nTrustedAuthservIDs peer.example\nSPFSelfValidate true\nSPFIgnoreResults true\nSyslog false\nRejectFailures false\n`,
  );
  // In a mount namespace of its own: this machine's resolv.conf stays as it is for everybody else.
  const inNamespace = `mount --bind ${dir}/resolv.conf /etc/resolv.conf && exec opendmarc -f -c ${dir}/opendmarc.conf`;
  const signer = await startMilter(["opendkim", "-f", "-x", join(dir, "opendkim.conf")], dkim as string);
  try {
    return [signer, await startMilter(["unshare", "--mount", "sh", "-c", inNamespace], dmarc as string)];
  } catch (error) {
    signer.stop();
    throw error;
  }
}
