// Haraka as a peer, when it is installed (bench/README.md says how). Its own queue on disk, its DKIM plugin (RSA-2048) or none, everything relayed to the sink; one process as ours.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/support/postern-process.ts";
import { feedPeer, type PeerLoad } from "./peer.ts";

const HOME = join(import.meta.dirname, "../peers/haraka");
const PACKAGE = join(HOME, "node_modules/Haraka");
const START_MS = 15_000;

/** Messages a second from smtp-source to the sink; null when Haraka or smtp-source is not installed. */
export async function benchHaraka(load: PeerLoad): Promise<number | null> {
  if (!existsSync(PACKAGE) || !existsSync("/usr/sbin/smtp-source")) return null;
  const dir = mkdtempSync(join(tmpdir(), "postern-haraka-"));
  const port = await freePort();
  configure(dir, port, load.signed);
  const child = spawn(process.execPath, [join(PACKAGE, "bin/haraka"), "-c", dir], {
    env: { PATH: process.env.PATH ?? "", SINK_PORT: String(load.sink.port) },
    stdio: "ignore",
  });
  try {
    await untilOpen(port);
    return await feedPeer(port, load);
  } finally {
    child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The installed version, for the conditions. */
export function harakaVersion(): string {
  if (!existsSync(PACKAGE)) return "haraka is not installed";
  return `haraka ${JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")).version}`;
}

function configure(dir: string, port: number, signed: boolean): void {
  cpSync(join(PACKAGE, "config"), join(dir, "config"), { recursive: true });
  cpSync(join(HOME, "plugins"), join(dir, "plugins"), { recursive: true });
  mkdirSync(join(dir, "queue"));
  const key = join(dir, "config/dkim/shop.example");
  mkdirSync(key, { recursive: true });
  execFileSync("openssl", ["genrsa", "-out", join(key, "private"), "2048"], { stdio: "pipe" });
  const files = {
    "smtp.ini": `listen=127.0.0.1:${port}\nnodes=0\n`,
    "log.ini": "[main]\nlevel=error\n",
    me: "shop.example\n",
    plugins: signed ? "dkim\nto_sink\n" : "to_sink\n",
    "outbound.ini": "concurrency_max=100\n",
    "dkim.ini": "[sign]\nenabled=true\nselector=bench\ndomain=shop.example\n[verify]\nenabled=false\n",
    "dkim/shop.example/selector": "bench\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, "config", name), text);
}

async function untilOpen(port: number): Promise<void> {
  const until = performance.now() + START_MS;
  while (!(await isOpen(port))) {
    if (performance.now() > until) throw new Error("haraka did not start");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}
