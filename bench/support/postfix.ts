// Postfix as a peer: relays everything to the sink, with OpenDKIM (RSA-2048) as a milter or without.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postfixMissing, startPostfix } from "../../test/support/postfix.ts";
import { type Milter, startMilter } from "./milter.ts";
import { feedPeer, type PeerFigures, type PeerLoad, POSTFIX_TUNED } from "./peer.ts";

/** Its figures from smtp-source to the sink; null when Postfix (or OpenDKIM) is not installed or may not run. */
export async function benchPostfix(load: PeerLoad): Promise<PeerFigures | null> {
  if (postfixMissing() || (load.signed && !existsSync("/usr/sbin/opendkim"))) return null;
  const dir = mkdtempSync(join(tmpdir(), "postern-opendkim-"));
  chmodSync(dir, 0o755);
  const socket = join(dir, "socket");
  const signer = load.signed ? await startOpenDkim(dir, socket) : null;
  const { recipient } = load;
  const postfix = await startPostfix(
    (own) => settings(load.sink.port, signer && socket) + (recipient ? aliasSettings(own, recipient) : ""),
  );
  try {
    return await feedPeer({ port: postfix.port, pids: [postfix.pid, ...(signer ? [signer.pid] : [])] }, load);
  } finally {
    postfix.stop();
    signer?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

function settings(sinkPort: number, socket: string | null): string {
  const milter = socket === null ? "" : `smtpd_milters = unix:${socket}\nmilter_default_action = tempfail\n`;
  return `mydestination =
relayhost = [127.0.0.1]:${sinkPort}
smtp_dns_support_level = disabled
always_add_missing_headers = yes
${POSTFIX_TUNED}${milter}`;
}

/** The recipient is a virtual alias (RFC 5321 §3.9.1) for somebody elsewhere. */
function aliasSettings(dir: string, alias: string): string {
  writeFileSync(join(dir, "aliases"), `/^${alias.replaceAll(".", "\\.")}$/ customer@customer.example\n`);
  const domain = alias.slice(alias.indexOf("@") + 1);
  return `virtual_alias_domains = ${domain}\nvirtual_alias_maps = regexp:${join(dir, "aliases")}\n`;
}

function startOpenDkim(dir: string, socket: string): Promise<Milter> {
  const key = join(dir, "key.pem");
  execFileSync("openssl", ["genrsa", "-out", key, "2048"], { stdio: "pipe" });
  chmodSync(key, 0o600);
  writeFileSync(
    join(dir, "opendkim.conf"),
    `Domain shop.example
Selector bench
KeyFile ${key}
Canonicalization relaxed/relaxed
Mode s
Socket local:${socket}
UMask 000
InternalHosts 127.0.0.1
RequireSafeKeys no
Syslog no
OversignHeaders From
`,
  );
  return startMilter(["opendkim", "-f", "-x", join(dir, "opendkim.conf")], socket);
}
