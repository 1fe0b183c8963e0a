// Listening sockets that were opened before they are used: the low ports, which only root may bind, held until the servers
// that belong on them start as Postern's own user. Until then a connection is cut at once; its peer tries again.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import type { Place } from "./places.ts";

/** The open socket of this address, once; null where there is none, and the server opens its own. */
export type HeldPlaces = (host: string, port: number) => Server | null;

export const NONE_HELD: HeldPlaces = () => null;

const FIRST_FREE_PORT = 1_024;

/** Opens those of the addresses that an ordinary user could not. */
export async function holdPlaces(places: readonly Place[]): Promise<HeldPlaces> {
  const first = firstFreePort();
  const held = new Map<string, Server>();
  for (const { host, port } of places.filter((place) => place.port > 0 && place.port < first)) {
    const server = createServer((socket) => socket.destroy()).listen({ host, port });
    await once(server, "listening");
    held.set(`${host} ${port}`, server);
  }
  return (host, port) => {
    const server = held.get(`${host} ${port}`) ?? null;
    held.delete(`${host} ${port}`);
    return server;
  };
}

/** Linux lets the operator set it. */
function firstFreePort(): number {
  try {
    return Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
  } catch {
    return FIRST_FREE_PORT;
  }
}
