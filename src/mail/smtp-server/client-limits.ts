// Who may connect, and how often: connections in all and of one client at once, and a client's connections a minute. A
// client is an IPv4 address or an IPv6 /64, as one machine has all of that. Pure bookkeeping; time comes in.
import ipaddr from "ipaddr.js";

export type ClientLimits = {
  connections_max: number;
  /** Above this share of `connections_max` the server is under load. */
  load_share: number;
  per_client_max: number;
  per_client_minute_max: number;
};

export type Clients = {
  /** Counts the connection, or says why not. */
  enter(ip: string, nowMs: number): "entered" | "full" | "client_full" | "client_fast";
  leave(ip: string): void;
  /** The connection no longer counts among those of this minute. */
  forgive(ip: string): void;
  size(): number;
  isUnderLoad(): boolean;
};

type ClientCount = { open: number; windowAt: number; opened: number };

const WINDOW_MS = 60_000;
const CLIENTS_MAX = 100_000;

/** `isTrusted`: clients of which any number may come, such as this machine itself. */
export function createClients(limits: ClientLimits, isTrusted: (ip: string) => boolean): Clients {
  const clients = new Map<string, ClientCount>();
  let open = 0;
  return {
    enter(ip, nowMs) {
      if (open >= limits.connections_max) return "full";
      if (clients.size >= CLIENTS_MAX) forgetIdle(clients, nowMs);
      const key = clientKey(ip);
      const client = clients.get(key) ?? { open: 0, windowAt: nowMs, opened: 0 };
      if (nowMs - client.windowAt >= WINDOW_MS) Object.assign(client, { windowAt: nowMs, opened: 0 });
      if (!isTrusted(ip)) {
        if (client.open >= limits.per_client_max) return "client_full";
        if (client.opened >= limits.per_client_minute_max) return "client_fast";
      }
      client.open += 1;
      client.opened += 1;
      clients.set(key, client);
      open += 1;
      return "entered";
    },
    leave(ip) {
      open -= 1;
      const client = clients.get(clientKey(ip));
      if (client) client.open -= 1;
    },
    forgive(ip) {
      const client = clients.get(clientKey(ip));
      if (client && client.opened > 0) client.opened -= 1;
    },
    size: () => open,
    isUnderLoad: () => open > limits.connections_max * limits.load_share,
  };
}

/** What counts as one client. */
export function clientKey(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  if (address.kind() === "ipv4") return address.toString();
  return `${Buffer.from(address.toByteArray().slice(0, 8)).toString("hex")}::/64`;
}

/** What counts as one sender: large ones come again from a neighbour. IPv4 /24, IPv6 /64. */
export function clientNetwork(ip: string): string {
  const key = clientKey(ip);
  return /^\d+\.\d+\.\d+\.\d+$/.test(key) ? key.replace(/\.\d+$/, ".0/24") : key;
}

function forgetIdle(clients: Map<string, ClientCount>, nowMs: number): void {
  for (const [key, client] of clients) {
    if (client.open <= 0 && nowMs - client.windowAt >= WINDOW_MS) clients.delete(key);
  }
}
