// An SMTP server: accepts connections within limits, learns the client's address behind a load balancer, and hands each
// to a session. It stops in good order: no new connections, 421 to the idle ones, and time for what is under way.
import { createServer, type Server, type Socket } from "node:net";
import type { SecureContext } from "node:tls";
import ipaddr from "ipaddr.js";
import { type ClientLimits, type Clients, clientKey, createClients } from "./client-limits.ts";
import { type ProxyHeader, readProxyHeader } from "./proxy-header.ts";
import { formatReply, type Reply, reply } from "./reply.ts";
import { type Hooks, type SessionLimits, serveSession } from "./session.ts";
import { ServerWire } from "./wire.ts";

export type SmtpServerOptions<Route> = {
  host: string;
  port: number;
  /** A socket that is open at this address already. */
  held?: Server | null;
  /** Our name in the greeting. */
  name: string;
  limits: SessionLimits;
  client_limits: ClientLimits;
  hooks: Hooks<Route>;
  tls: (() => SecureContext) | null;
  /** TLS from the first byte (RFC 8314); needs `tls`. */
  implicit_tls?: boolean;
  /** How long a wrong login waits that the hook calls slow. */
  slow_login_ms?: number;
  /** True for clients whose connections begin with a PROXY header. */
  isProxy(ip: string): boolean;
  /** True if proxies say in XCLIENT whether their clients use TLS. */
  proxies_tell_tls?: boolean;
  /** The clients of these speak TLS with them. */
  proxies_end_tls?: boolean;
  /** Clients without limits of their own. */
  isTrusted(ip: string): boolean;
  /** Monotonic milliseconds. */
  now(): number;
  sleep(ms: number): Promise<void>;
  onFailure(error: unknown): void;
  /** Hears of each connection that was let in and has ended, or was answered 421 at once. */
  connections?: {
    entered(): void;
    left(): void;
    refused(why: keyof typeof REFUSALS): void;
  };
};

export type SmtpServer = {
  address: string;
  port: number;
  connections(): number;
  stop(withinMs: number): Promise<void>;
};

/** `leave` gives the place back once, however often it is called. */
type Place = { key: string; leave(): void };

type Running<Route> = {
  options: SmtpServerOptions<Route>;
  clients: Clients;
  isProxy: (ip: string) => boolean;
  wires: Set<ServerWire>;
  /** The connections that were let in, oldest first. */
  places: Map<ServerWire, Place>;
  /** Also those that said goodbye and linger. */
  sockets: Set<Socket>;
  stopping: boolean;
};

const BACKLOG = 1_024;
const KEEP_ALIVE_MS = 60_000;
const PROXY_HEADER_MS = 5_000;
const STOP_POLL_MS = 20;

/** Listens; rejects when the address cannot be had. */
export async function startSmtpServer<Route>(options: SmtpServerOptions<Route>): Promise<SmtpServer> {
  const running: Running<Route> = {
    options,
    clients: createClients(options.client_limits, options.isTrusted),
    isProxy: options.isProxy,
    wires: new Set(),
    places: new Map(),
    sockets: new Set(),
    stopping: false,
  };
  // Half-open: a client may close its side right after QUIT and still wants our answers.
  const server = createServer({
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  server.on("connection", (socket) => {
    welcome(running, socket).catch(options.onFailure);
  });
  await listen(server, options);
  const bound = server.address() as { address: string; port: number };
  return {
    address: bound.address,
    port: bound.port,
    connections: () => running.clients.size(),
    stop: (withinMs) => stop(running, server, withinMs),
  };
}

function listen(
  server: Server,
  { host, port, held }: Pick<SmtpServerOptions<unknown>, "host" | "port" | "held">,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      server.on("error", () => undefined);
      resolve();
    });
    if (held) server.listen(held, BACKLOG);
    else server.listen({ host, port, backlog: BACKLOG });
  });
}

const REFUSALS: Record<"full" | "client_full" | "client_fast", Reply> = {
  full: reply(421, "4.3.2", "too many connections, try again shortly"),
  client_full: reply(421, "4.7.0", "too many connections from your network at once"),
  client_fast: reply(421, "4.7.0", "too many connections from your network, try again in a minute"),
};

async function welcome<Route>(running: Running<Route>, socket: Socket): Promise<void> {
  const { options } = running;
  running.sockets.add(socket);
  socket.on("error", () => undefined).on("close", () => running.sockets.delete(socket));
  const peer = { ip: plainAddress(socket.remoteAddress ?? ""), port: socket.remotePort ?? 0 };
  const wire = new ServerWire(socket, options.now);
  running.wires.add(wire);
  try {
    const client = running.isProxy(peer.ip) ? await proxiedClient(wire, peer) : peer;
    if (options.proxies_end_tls && client !== peer) wire.isCovered = true;
    const has_door = options.proxies_tell_tls === true && client !== peer;
    if (client && !running.stopping) await admit(running, wire, { ...client, has_door });
    else socket.destroy();
  } finally {
    running.wires.delete(wire);
  }
}

async function admit<Route>(
  running: Running<Route>,
  wire: ServerWire,
  { has_door, ...client }: { ip: string; port: number; has_door: boolean },
): Promise<void> {
  const { options, clients, places } = running;
  const entered = enter(running, client.ip);
  if (entered !== "entered") {
    options.connections?.refused(entered);
    wire.send(formatReply(REFUSALS[entered]));
    wire.close();
    return;
  }
  const place = takePlace(running, client.ip);
  places.set(wire, place);
  options.connections?.entered();
  try {
    if (options.implicit_tls && !(await wire.beginTls(contextOf(options), options.limits.handshake_ms))) return;
    await serveSession(wire, {
      name: options.name,
      ...{ client, has_door },
      limits: options.limits,
      hooks: options.hooks,
      tls: options.tls,
      isUnderLoad: clients.isUnderLoad,
      isStopping: () => running.stopping,
      sleep: options.sleep,
      onFailure: options.onFailure,
      slowDown: () => slowDown(running, wire, client.ip),
    });
  } finally {
    places.delete(wire);
    place.leave();
    options.connections?.left();
  }
}

function takePlace<Route>({ clients }: Running<Route>, ip: string): Place {
  let isTaken = true;
  return {
    key: clientKey(ip),
    leave() {
      if (isTaken) clients.leave(ip);
      isTaken = false;
    },
  };
}

/**
 * A wrong login that waits for its answer takes no place away from others: where there is none left, the oldest of them
 * goes, of the same client where it is the client that has too many.
 */
function enter<Route>({ clients, options, places }: Running<Route>, ip: string): ReturnType<Clients["enter"]> {
  const entered = clients.enter(ip, options.now());
  if (entered !== "full" && entered !== "client_full") return entered;
  const key = clientKey(ip);
  for (const [wire, place] of places) {
    if (!wire.isHeldBack || (entered === "client_full" && place.key !== key)) continue;
    wire.interrupt();
    places.delete(wire);
    place.leave();
    return clients.enter(ip, options.now());
  }
  return entered;
}

/**
 * Waiting is the price of a wrong login: having paid it, the connection does not count among the client's of this minute, so
 * that no number of wrong logins keeps a right one from the same address out.
 */
async function slowDown<Route>({ clients, options }: Running<Route>, wire: ServerWire, ip: string): Promise<boolean> {
  const paid = await wire.holdBack(options.slow_login_ms ?? 0);
  if (paid) clients.forgive(ip);
  return paid;
}

function contextOf<Route>({ tls }: SmtpServerOptions<Route>): SecureContext {
  if (!tls) throw new Error("implicit TLS needs a certificate");
  return tls();
}

async function proxiedClient(wire: ServerWire, peer: { ip: string; port: number }) {
  const header = await wire.readFirst<ProxyHeader>(PROXY_HEADER_MS, (bytes) => {
    const progress = readProxyHeader(bytes);
    return progress.kind === "more" ? null : { value: progress.header, octets: progress.octets };
  });
  if (header === null || header.kind === "bad") return null;
  return header.kind === "own" ? peer : { ip: plainAddress(header.ip), port: header.port };
}

/** An IPv4 client of a socket for both families has an IPv4 address all the same. */
function plainAddress(ip: string): string {
  return ipaddr.isValid(ip) ? ipaddr.process(ip).toString() : ip;
}

async function stop<Route>(running: Running<Route>, server: Server, withinMs: number): Promise<void> {
  const { options, wires, sockets } = running;
  running.stopping = true;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const wire of wires) wire.interrupt();
  const deadline = options.now() + withinMs;
  while (wires.size > 0 && options.now() < deadline) await options.sleep(STOP_POLL_MS);
  for (const socket of sockets) socket.destroy();
  await closed;
}
