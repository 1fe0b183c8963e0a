// A port for a server that must be given one.
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that systems give to outgoing connections (32768 and up on Linux): no such connection can take it meanwhile. */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 100;

/** By this process: its user may not have bound it yet. */
const given = new Set<number>();

/** A TCP port of 127.0.0.1 at which nobody listens; at random, so that two who ask at once hardly get the same. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port found between ${LOWEST} and ${HIGHEST}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}
