// Debian's nginx with its mail module on loopback, with a configuration of `postern cells nginx`.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { until } from "./until.ts";

export const NGINX_MODULES = "/usr/lib/nginx/modules";

/** True if the program and its mail module are there. Tests that need them are skipped with a message otherwise. */
export function hasNginx(): boolean {
  const isThere = spawnSync("nginx", ["-v"], { stdio: "ignore" }).status === 0;
  return isThere && existsSync(join(NGINX_MODULES, "ngx_mail_module.so"));
}

/** Starts it in `dir`; resolves once it listens at `port`. Its answer ends it. */
export async function startNginx(dir: string, conf: string, port: number): Promise<() => Promise<void>> {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => {
    mkdirSync(join(dir, kind), { recursive: true });
    return `${kind}_temp_path ${join(dir, kind)};`;
  });
  const file = join(dir, "nginx.conf");
  const isIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ family }) => family === "IPv6"));
  const placed = isIpv6 ? conf : conf.replace(/^ *listen \[::\].*\n/gm, "");
  writeFileSync(file, placed.replace("http {", `http {\n  access_log off;\n  ${temporary.join("\n  ")}`));
  // Started by root, it would give its work to a user that cannot read this folder.
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const more = `daemon off; error_log stderr; pid ${join(dir, "nginx.pid")}; ${user}`;
  const child = spawn("nginx", ["-p", dir, "-c", file, "-g", more], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (piece) => {
    said = (said + piece).slice(-4_000);
  });
  await until("nginx listens", async () => {
    if (child.exitCode !== null) throw new Error(`nginx has ended: ${said}`);
    return await listens(port);
  });
  return async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  };
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
