// Haraka as a peer, when it is installed (bench/README.md says how). Its own queue on disk, its DKIM plugin (RSA-2048) or none,
// everything relayed to the sink; one process as ours.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/support/free-port.ts";
import { until } from "../../test/support/until.ts";
import { feedPeer, type PeerFigures, type PeerLoad } from "./peer.ts";

const HOME = join(import.meta.dirname, "../peers/haraka");
const PACKAGE = join(HOME, "node_modules/Haraka");
const START_MS = 15_000;

/** Its figures from smtp-source to the sink; null when Haraka or smtp-source is not installed. */
export async function benchHaraka(load: PeerLoad): Promise<PeerFigures | null> {
  if (!existsSync(PACKAGE) || !existsSync("/usr/sbin/smtp-source")) return null;
  const dir = mkdtempSync(join(tmpdir(), "postern-haraka-"));
  const port = await freePort();
  configure(dir, port, load.signed);
  const child = spawn(process.execPath, [join(PACKAGE, "bin/haraka"), "-c", dir], {
    env: { PATH: process.env.PATH ?? "", SINK_PORT: String(load.sink.port) },
    stdio: "ignore",
  });
  const end = () => void child.kill("SIGKILL");
  process.once("exit", end);
  try {
    await until("haraka listens", () => isOpen(port), START_MS);
    return await feedPeer({ port, pids: [child.pid as number] }, load);
  } finally {
    process.off("exit", end);
    end();
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
    "smtp.ini": `listen=127.0.0.1:${port}\nnodes=cpus\n`,
    "log.ini": "[main]\nlevel=error\n",
    me: "shop.example\n",
    plugins: signed ? "dkim\nto_sink\n" : "to_sink\n",
    "outbound.ini": "concurrency_max=100\n",
    "dkim.ini": "[sign]\nenabled=true\nselector=bench\ndomain=shop.example\n[verify]\nenabled=false\n",
    "dkim/shop.example/selector": "bench\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, "config", name), text);
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
