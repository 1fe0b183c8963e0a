// POSTERN_HTTPS: TLS in front of the API's own server. Each connection gets the certificate that is newest when it comes, so
// that a renewal needs no restart and ends no connection; behind the handshake everything is as without TLS.

import type { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";
import type { World } from "../world.ts";

export type TlsListener = { address: string; stop(): Promise<void> };

const HANDSHAKE_MS = 10_000;
const BACKLOG = 1_024;
/** What is still open then is cut: as without TLS (api/closing.ts). */
const CLOSE_WITHIN_MS = 30_000;

type TlsWorld = Pick<World, "config" | "held" | "log">;

/** Listens on POSTERN_HTTPS and gives each connection to `http` once its handshake is over; null without that setting. */
export async function listenTls(
  world: TlsWorld,
  http: HttpServer,
  context: () => SecureContext,
): Promise<TlsListener | null> {
  const { https } = world.config;
  if (https === null) return null;
  const open = new Set<Socket>();
  const server = createTcpServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    shakeHands(socket, context, (secure) => http.emit("connection", secure));
  });
  await listen(server, https, world.held(https.host, https.port));
  const { address, port } = server.address() as AddressInfo;
  return {
    address: `https://${address.includes(":") ? `[${address}]` : address}:${port}`,
    async stop() {
      const late = setTimeout(() => cutAll(open), CLOSE_WITHIN_MS);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(late);
    },
  };
}

function shakeHands(socket: Socket, context: () => SecureContext, ready: (secure: TLSSocket) => void): void {
  const secure = new TLSSocket(socket, {
    isServer: true,
    secureContext: context(),
    ALPNProtocols: ["http/1.1"],
  });
  const late = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
  // A client that speaks no TLS or goes away: nobody is there to be answered.
  secure.on("error", () => socket.destroy());
  secure.once("close", () => clearTimeout(late));
  secure.once("secure", () => {
    clearTimeout(late);
    ready(secure);
  });
}

function cutAll(open: Iterable<Socket>): void {
  for (const socket of open) socket.destroy();
}

function listen(server: Server, { host, port }: { host: string; port: number }, held: Server | null): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => resolve(void server.off("error", reject)));
    if (held) server.listen(held, BACKLOG);
    else server.listen({ host, port, backlog: BACKLOG });
  });
}
