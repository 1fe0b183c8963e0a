// Debian's Postfix as a peer: an instance of its own in a temporary folder, relaying everything to the sink, with
// OpenDKIM (RSA-2048) as a milter or without. Fed by Postfix's own smtp-source. Stock settings but for addresses.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/support/postern-process.ts";
import type { BenchSink } from "./sink.ts";

const MASTER = `
smtp      inet  n - n - -    smtpd
pickup    unix  n - n 60 1   pickup
cleanup   unix  n - n - 0    cleanup
qmgr      unix  n - n 300 1  qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n - -    trivial-rewrite
bounce    unix  - - n - 0    bounce
defer     unix  - - n - 0    bounce
trace     unix  - - n - 0    bounce
verify    unix  - - n - 1    verify
flush     unix  n - n 1000? 0 flush
proxymap  unix  - - n - -    proxymap
smtp      unix  - - n - -    smtp
relay     unix  - - n - -    smtp
showq     unix  n - n - -    showq
error     unix  - - n - -    error
retry     unix  - - n - -    error
discard   unix  - - n - -    discard
local     unix  - n n - -    local
anvil     unix  - - n - 1    anvil
scache    unix  - - n - 1    scache
postlog   unix-dgram n - n - 1 postlogd
`;

/** Postfix's version, for the conditions. */
export function postfixVersion(): string {
  return `postfix ${execFileSync("postconf", ["-h", "mail_version"], { encoding: "utf8" }).trim()}`;
}

/** Messages a second from smtp-source to the sink; null when Postfix (or OpenDKIM) is not installed or may not run. */
export async function benchPostfix(options: {
  sink: BenchSink;
  count: number;
  signed: boolean;
  body_bytes: number;
}): Promise<number | null> {
  if (!existsSync("/usr/sbin/postfix") || process.getuid?.() !== 0) return null;
  if (options.signed && !existsSync("/usr/sbin/opendkim")) return null;
  const dir = mkdtempSync(join(tmpdir(), "postern-postfix-"));
  chmodSync(dir, 0o755);
  const signer = options.signed ? await startOpenDkim(dir) : null;
  const port = await freePort();
  configure(dir, port, options.sink.port, signer?.port ?? null);
  const postfix = (...args: string[]) => execFileSync("postfix", ["-c", dir, ...args], { stdio: "pipe" });
  postfix("start");
  try {
    await options.sink.reset();
    await send(port, 200, options.body_bytes);
    await options.sink.waitFor(200, "received");
    await options.sink.reset();
    const startedAt = performance.now();
    const sending = send(port, options.count, options.body_bytes);
    const endedAt = await options.sink.waitFor(options.count, "received");
    await sending;
    await checkSigned(options);
    return options.count / ((endedAt - startedAt) / 1000);
  } finally {
    postfix("stop");
    signer?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function checkSigned({ sink, signed }: { sink: BenchSink; signed: boolean }): Promise<void> {
  const [sample] = await sink.samples();
  const hasSignature = /^dkim-signature:/im.test(sample?.toString("latin1") ?? "");
  if (hasSignature !== signed)
    throw new Error(`the peer's mail is ${signed ? "not " : ""}signed: nothing was compared`);
}

function send(port: number, count: number, bytes: number): Promise<void> {
  const args = ["-s", "20", "-m", String(count), "-l", String(bytes), "-f", "orders@shop.example", "-t"];
  const child = spawn("smtp-source", [...args, "customer@customer.example", `127.0.0.1:${port}`], { stdio: "pipe" });
  return new Promise((resolve, reject) => {
    child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`smtp-source ended with ${code}`))));
  });
}

function configure(dir: string, port: number, sinkPort: number, milterPort: number | null): void {
  for (const folder of ["queue", "lib"]) mkdirSync(join(dir, folder));
  const uid = Number(execFileSync("id", ["-u", "postfix"], { encoding: "utf8" }));
  chownSync(join(dir, "lib"), uid, 0);
  const milter =
    milterPort === null ? "" : `smtpd_milters = inet:127.0.0.1:${milterPort}\nmilter_default_action = tempfail\n`;
  writeFileSync(
    join(dir, "main.cf"),
    `compatibility_level = 3.6
queue_directory = ${join(dir, "queue")}
data_directory = ${join(dir, "lib")}
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
meta_directory = /etc/postfix
maillog_file = ${join(dir, "maillog")}
maillog_file_prefixes = ${dir}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = peer.example
mydestination =
alias_maps =
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:${sinkPort}
smtp_dns_support_level = disabled
always_add_missing_headers = yes
${milter}`,
  );
  writeFileSync(join(dir, "master.cf"), MASTER.replace("smtp      inet", `127.0.0.1:${port} inet`));
}

async function startOpenDkim(dir: string): Promise<{ port: number; stop(): void }> {
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
  if (child.exitCode !== null)
    throw new Error(`opendkim did not start: ${readFileSync(join(dir, "opendkim.conf"), "utf8")}`);
  return { port, stop: () => child.kill("SIGTERM") };
}
