// Debian's Postfix as a real peer on loopback: an instance of its own in a temporary folder, with the settings a test or a
// benchmark gives. Needs the package postfix and root (Postfix changes users itself).
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

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
virtual   unix  - n n - -    virtual
anvil     unix  - - n - 1    anvil
scache    unix  - - n - 1    scache
postlog   unix-dgram n - n - 1 postlogd
`;

/** Why there can be no Postfix here, in a sentence; null when there can. */
export function postfixMissing(): string | null {
  if (!existsSync("/usr/sbin/postfix")) return "Postfix is not installed (apt-get install postfix)";
  return process.getuid?.() === 0 ? null : "Postfix needs to be started by root";
}

/** Postfix's version, for the conditions of a figure: its built-in setting, for /etc/postfix may have no main.cf. */
export function postfixVersion(): string {
  return `postfix ${execFileSync("postconf", ["-d", "-h", "mail_version"], { encoding: "utf8" }).trim()}`;
}

/** `pid` is the master's, whose children are all others. */
export type Postfix = { port: number; dir: string; pid: number; stop(): void };

/**
 * Starts an instance that listens on a free port of 127.0.0.1, or at `at`, whose address it also connects from;
 * `settings(dir)` are further lines of main.cf.
 */
export async function startPostfix(
  settings: (dir: string) => string,
  at?: { address: string; port: number; hostname: string },
): Promise<Postfix> {
  const dir = mkdtempSync(join(tmpdir(), "postern-postfix-"));
  chmodSync(dir, 0o755);
  for (const folder of ["queue", "lib"]) mkdirSync(join(dir, folder));
  chownSync(join(dir, "lib"), Number(execFileSync("id", ["-u", "postfix"], { encoding: "utf8" })), 0);
  const port = at?.port ?? (await freePort());
  const address = at?.address ?? "127.0.0.1";
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
myhostname = ${at?.hostname ?? "peer.example"}
alias_maps =
mynetworks = 127.0.0.0/8
${settings(dir)}
`,
  );
  writeFileSync(join(dir, "master.cf"), MASTER.replace("smtp      inet", `${address}:${port} inet`));
  const run = (command: string): void => {
    execFileSync("postfix", ["-c", dir, command], { stdio: "pipe" });
  };
  run("start");
  const pid = Number.parseInt(readFileSync(join(dir, "queue/pid/master.pid"), "utf8"), 10);
  // Whoever is interrupted leaves no Postfix behind.
  const end = (): void => {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // it has gone already
    }
    rmSync(dir, { recursive: true, force: true });
  };
  process.once("exit", end);
  return {
    port,
    dir,
    pid,
    stop() {
      process.off("exit", end);
      run("stop");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
