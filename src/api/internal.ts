// The internal listener: /healthz, /readyz, /metrics (Prometheus) and /owns (the door of several cells), apart from the public one.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { findPause } from "../outbound/outbound.ts";
import { within } from "../platform/clock.ts";
import type { World } from "../platform/world.ts";

export type InternalServer = {
  address: string;
  ready(): void;
  /** The process stops: `/readyz` says so, so that nobody is sent here; the rest still answers. */
  unready(): void;
  stop(): Promise<void>;
};

/** The database has answered by then, or counts as away; a scrape of Prometheus has 10 s. */
const ANSWER_MS = 3_000;

/** `moving`: to be asked again shortly. */
type Ownership = "yes" | "no" | "moving";

type InternalWorld = Pick<World, "config" | "db" | "log" | "metrics" | "held">;

export type InternalOptions = {
  sends: boolean;
  /** What `/owns` answers: null where it is asked wrongly; rejects where it cannot be known. */
  owns(search: URLSearchParams): Promise<Ownership | null>;
  answer_ms?: number;
};

/**
 * Listens on `config.internal`; when only the default port is taken, on a free one. `/readyz` is 503 until `ready()`, while
 * the database does not answer, and of a process that `sends` while sending is paused; `/readyz/doors` leaves the last out.
 */
export async function startInternalServer(
  world: InternalWorld,
  { sends, owns, answer_ms = ANSWER_MS }: InternalOptions,
): Promise<InternalServer> {
  const state = { ready: false, sends, owns, answer_ms };
  const server = createServer((request, response) => {
    answer(world, state, request.url ?? "", response).catch((err) => {
      world.log.error({ err }, "the internal listener failed");
      response.writeHead(500).end();
    });
  });
  const { host, port } = world.config.internal;
  await listen(server, host, port, world.held(host, port)).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE" || !world.config.internal_is_default) throw error;
    await listen(server, host, 0);
    const { port: instead } = server.address() as AddressInfo;
    world.log.warn(
      { taken: port, instead },
      "the port of POSTERN_INTERNAL is taken: /metrics and /readyz are on another",
    );
  });
  const bound = server.address() as AddressInfo;
  return {
    address: `http://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`,
    ready: () => {
      state.ready = true;
    },
    unready: () => {
      state.ready = false;
    },
    stop: () =>
      new Promise((resolve) => {
        state.ready = false;
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(
  server: ReturnType<typeof createServer>,
  host: string,
  port: number,
  held: Server | null = null,
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    if (held) server.listen(held);
    else server.listen(port, host);
  });
}

type State = Required<InternalOptions> & { ready: boolean };

async function answer(world: InternalWorld, state: State, url: string, response: ServerResponse): Promise<void> {
  const [path, search] = url.split("?");
  if (path === "/healthz") return json(response, 200, { status: "ok" });
  if (path === "/metrics") {
    const up = world.metrics.gauge("postern_database_up", "1 while the database answers this process");
    up.set((await isReachable(world, state)) ? 1 : 0);
    const text = await world.metrics.text();
    response.writeHead(200, { "content-type": world.metrics.content_type }).end(text);
    return;
  }
  if (path === "/readyz" || path === "/readyz/doors") return readiness(world, state, path, response);
  if (path === "/owns") return ownership(state, new URLSearchParams(search), response);
  json(response, 404, { error: "there is only /healthz, /readyz, /readyz/doors, /metrics and /owns here" });
}

/** 503 while this process cannot know: who asks must not take that for a no. */
async function ownership({ owns, answer_ms }: State, search: URLSearchParams, response: ServerResponse): Promise<void> {
  const unknown = "unknown" as const;
  const is_own = await within(
    owns(search).catch(() => unknown),
    answer_ms,
    unknown,
  );
  if (is_own === null)
    return json(response, 400, { error: "ask for key_digest (64 hex digits), domain, host, address or link" });
  if (is_own === unknown) return json(response, 503, { error: "the database does not answer" });
  json(response, 200, { owns: is_own !== "no", ...(is_own === "moving" && { moving: true }) });
}

/** Every process reports a pause; one that is to send is not ready meanwhile, its doors are. */
async function readiness(world: InternalWorld, state: State, path: string, response: ServerResponse): Promise<void> {
  const pause = state.ready ? await lookAtPause(world, state) : "away";
  const isPaused = pause !== "away" && pause !== null;
  const isReady = pause !== "away" && !(isPaused && state.sends && path === "/readyz");
  if (!isReady) response.setHeader("retry-after", "1");
  const reported = isPaused
    ? {
        sending: "paused",
        since: pause.since,
        reason: pause.reason,
        remedy: "postern resume, once the queue was looked at",
      }
    : {};
  json(response, isReady ? 200 : 503, { status: isReady ? "ready" : "not ready", ...reported });
}

/** No answer in time is none: who asks has little patience, too. */
function lookAtPause(
  { db }: InternalWorld,
  { answer_ms }: State,
): Promise<Awaited<ReturnType<typeof findPause>> | "away"> {
  return within(
    findPause(db).catch(() => "away" as const),
    answer_ms,
    "away",
  );
}

async function isReachable(world: InternalWorld, state: State): Promise<boolean> {
  return (await lookAtPause(world, state)) !== "away";
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
