// Debian's rspamd as a process on loopback, with a few rules of its own instead of its thousands: they load in a second.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.ts";

export type Rspamd = { url: string; stop(): Promise<void> };

const START_MS = 20_000;
const POLL_MS = 50;
/** A connection that comes before its worker does may never be answered. */
const PING_MS = 1_000;

/** Scores that tests expect: 6.5 for watches in the subject, −1.5 for a friend in the envelope, 20 for watches on loans. */
const RULES = `
local function sells(what)
  return function(task) return (task:get_subject() or ''):find(what) ~= nil end
end
rspamd_config.WATCHES = { score = 6.5, description = 'Sells watches', callback = sells('watches') }
rspamd_config.LOANS = { score = 13.5, description = 'Lends money', callback = sells('loans') }
rspamd_config.FROM_FRIEND = { score = -1.5, description = 'From a friend', callback = function(task)
  local from = task:get_from('smtp')
  return from and from[1] and from[1].addr == 'friend@sender.example'
end }
`;

/** True if the program is there. Tests that need it are skipped with a message otherwise. */
export function hasRspamd(): boolean {
  return spawnSync("rspamd", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Starts it; resolves when it answers. */
export async function startRspamd(): Promise<Rspamd> {
  const dir = mkdtempSync(join(tmpdir(), "postern-rspamd-"));
  const port = await freePort();
  writeFileSync(join(dir, "rules.lua"), RULES);
  // Of all public suffixes rspamd compiles an automaton, which takes it twenty seconds.
  writeFileSync(join(dir, "suffixes.dat"), "com\nexample\n");
  writeFileSync(join(dir, "rspamd.conf"), configuration(dir, port));
  const asRoot = process.getuid?.() === 0 ? ["--insecure", "-u", "root", "-g", "root"] : [];
  const child = spawn("rspamd", ["-f", ...asRoot, "-c", join(dir, "rspamd.conf")], { stdio: "ignore" });
  const stop = async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    rmSync(dir, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await answering(url, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

function configuration(dir: string, port: number): string {
  return `options {
  filters = "";
  url_tld = "${join(dir, "suffixes.dat")}";
  dns { nameserver = ["127.0.0.1:9"]; timeout = 0.2s; retransmits = 1; }
  control_socket = "${join(dir, "control.sock")} mode=0600";
  hs_cache_dir = "${dir}";
}
logging { type = "console"; level = "error"; }
worker "normal" { bind_socket = "127.0.0.1:${port}"; count = 1; }
lua = "${join(dir, "rules.lua")}";
metric { name = "default"; actions { reject = 15; add_header = 6; } }
`;
}

async function answering(url: string, child: ChildProcess): Promise<void> {
  const until = Date.now() + START_MS;
  while (Date.now() < until && child.exitCode === null) {
    const answer = await fetch(`${url}/ping`, { signal: AbortSignal.timeout(PING_MS) }).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error("rspamd does not answer");
}
