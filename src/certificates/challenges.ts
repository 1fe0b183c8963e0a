// The answers to an ACME server that wants to see that a name is ours (HTTP-01, RFC 8555 §8.3): on a small server of its own
// at POSTERN_ACME_HTTP, and on the API's, for where a proxy has port 80. The answers are in the database, so that it does
// not matter which machine is asked. Everything else that comes to port 80 is sent to the public address.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Role } from "../config.ts";
import type { Api } from "../http/http.ts";
import type { World } from "../platform/world.ts";
import type { AcmeConfig } from "../settings/certificates.ts";
import { findChallenge } from "./queries.ts";

/** The roles that servers of other people reach by one of the service's names. */
export const CHALLENGE_ROLES: readonly Role[] = ["api", "mx", "submission"];

const PATH = "/.well-known/acme-challenge/";
/** RFC 8555 §8.1: base64url, at least 128 bits. */
const TOKEN = /^[A-Za-z0-9_-]{16,128}$/;
const TIMES = { headersTimeout: 10_000, requestTimeout: 15_000, keepAliveTimeout: 5_000 };
const CONNECTIONS_MAX = 500;

type Answering = Pick<World, "db" | "config" | "log" | "held">;

/** Listens on POSTERN_ACME_HTTP. */
export async function startChallengeServer(
  world: Answering,
  { http }: AcmeConfig,
): Promise<{ port: number; stop(): Promise<void> }> {
  const server = createServer({ ...TIMES, maxHeaderSize: 16 * 1024 }, (request, response) => {
    answer(world, request, response).catch((err) => {
      world.log.warn({ err }, "a challenge of the ACME server could not be answered");
      response.writeHead(503, { "retry-after": "5" }).end();
    });
  });
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, http, world.held(http.host, http.port));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, { host, port }: AcmeConfig["http"], held: ReturnType<World["held"]>): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => resolve(void server.off("error", reject)));
    if (held) server.listen(held);
    else server.listen({ host, port });
  });
}

async function answer(world: Answering, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? "/";
  if (url.startsWith(PATH)) {
    const text = await answerTo(world, url.slice(PATH.length));
    response.writeHead(text === null ? 404 : 200, { "content-type": "text/plain" }).end(text ?? "unknown token\n");
    return;
  }
  const { base_url } = world.config;
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (!base_url.startsWith("https:") || !isRead || !url.startsWith("/")) {
    response.writeHead(403, { "content-type": "text/plain" }).end("Only HTTPS is served here.\n");
    return;
  }
  response.writeHead(308, { location: base_url + url }).end();
}

async function answerTo({ db }: Pick<World, "db">, token: string): Promise<string | null> {
  return TOKEN.test(token) ? await findChallenge(db, token) : null;
}

/** The same on the API's server. */
export function mountChallenges(api: Api, world: Pick<World, "db">): void {
  api.get(`${PATH}:token`, { schema: { hide: true } }, async (request, reply) => {
    const text = await answerTo(world, (request.params as { token: string }).token);
    return reply
      .code(text === null ? 404 : 200)
      .type("text/plain")
      .send(text ?? "unknown token\n");
  });
}
