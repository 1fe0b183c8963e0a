// Postfix as a peer: relays everything to the sink, with OpenDKIM (RSA-2048) as a milter or without. Stock settings but
// for addresses.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/support/postern-process.ts";
import { postfixMissing, startPostfix } from "../../test/support/postfix.ts";
import { feedPeer, type PeerLoad } from "./peer.ts";

/** Messages a second from smtp-source to the sink; null when Postfix (or OpenDKIM) is not installed or may not run. */
export async function benchPostfix(load: PeerLoad): Promise<number | null> {
  if (postfixMissing() || (load.signed && !existsSync("/usr/sbin/opendkim"))) return null;
  const signer = load.signed ? await startOpenDkim() : null;
  const { recipient } = load;
  const postfix = await startPostfix(
    (dir) => settings(load.sink.port, signer?.port ?? null) + (recipient ? aliasSettings(dir, recipient) : ""),
  );
  try {
    return await feedPeer(postfix.port, load);
  } finally {
    postfix.stop();
    signer?.stop();
  }
}

function settings(sinkPort: number, milterPort: number | null): string {
  const milter =
    milterPort === null ? "" : `smtpd_milters = inet:127.0.0.1:${milterPort}\nmilter_default_action = tempfail\n`;
  return `mydestination =
relayhost = [127.0.0.1]:${sinkPort}
smtp_dns_support_level = disabled
always_add_missing_headers = yes
${milter}`;
}

/** The recipient is a virtual alias (RFC 5321 §3.9.1) for somebody elsewhere. */
function aliasSettings(dir: string, alias: string): string {
  writeFileSync(join(dir, "aliases"), `/^${alias.replaceAll(".", "\\.")}$/ customer@customer.example\n`);
  const domain = alias.slice(alias.indexOf("@") + 1);
  return `virtual_alias_domains = ${domain}\nvirtual_alias_maps = regexp:${join(dir, "aliases")}\n`;
}

async function startOpenDkim(): Promise<{ port: number; stop(): void }> {
  const dir = mkdtempSync(join(tmpdir(), "postern-opendkim-"));
  const port = await freePort();
  const keys = join(dir, "dkim");
  mkdirSync(keys);
  execFileSync("openssl", ["genrsa", "-out", join(keys, "key.pem"), "2048"], { stdio: "pipe" });
  chmodSync(join(keys, "key.pem"), 0o600);
  writeFileSync(
    join(dir, "opendkim.conf"),
    `Domain shop.example
Selector bench
KeyFile ${join(keys, "key.pem")}
Canonicalization relaxed/relaxed
Mode s
Socket inet:${port}@127.0.0.1
InternalHosts 127.0.0.1
RequireSafeKeys no
Syslog no
OversignHeaders From
`,
  );
  const child = spawn("opendkim", ["-f", "-x", join(dir, "opendkim.conf")], { stdio: "pipe" });
  await new Promise((resolve) => setTimeout(resolve, 500));
  if (child.exitCode !== null) throw new Error(`opendkim did not start (exit code ${child.exitCode})`);
  return {
    port,
    stop() {
      child.kill("SIGTERM");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
