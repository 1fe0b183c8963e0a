// The internal listener: /healthz, /readyz and /metrics (Prometheus), apart from the public one.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
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

type InternalWorld = Pick<World, "config" | "db" | "log" | "metrics">;

/** Listens on `config.internal`; when only the default port is taken, on a free one. `/readyz` is 503 until `ready()` and while the database does not answer. */
export async function startInternalServer(world: InternalWorld, answerMs: number = ANSWER_MS): Promise<InternalServer> {
  const state = { ready: false, answer_ms: answerMs };
  const server = createServer((request, response) => {
    answer(world, state, request.url ?? "", response).catch((err) => {
      world.log.error({ err }, "the internal listener failed");
      response.writeHead(500).end();
    });
  });
  const { host, port } = world.config.internal;
  await listen(server, host, port).catch(async (error: NodeJS.ErrnoException) => {
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

function listen(server: ReturnType<typeof createServer>, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

type State = { ready: boolean; answer_ms: number };

async function answer(world: InternalWorld, state: State, url: string, response: ServerResponse): Promise<void> {
  const path = url.split("?")[0];
  if (path === "/healthz") return json(response, 200, { status: "ok" });
  if (path === "/metrics") {
    const up = world.metrics.gauge("postern_database_up", "Does the database answer this process?");
    up.set((await isReachable(world, state)) ? 1 : 0);
    const text = await world.metrics.text();
    response.writeHead(200, { "content-type": world.metrics.content_type }).end(text);
    return;
  }
  if (path !== "/readyz") return json(response, 404, { error: "there is only /healthz, /readyz and /metrics here" });
  const reachable = state.ready && (await isReachable(world, state));
  if (!reachable) response.setHeader("retry-after", "1");
  json(response, reachable ? 200 : 503, { status: reachable ? "ready" : "not ready" });
}

/** No answer in time is none: who asks has little patience, too. */
async function isReachable({ db }: InternalWorld, { answer_ms }: State): Promise<boolean> {
  const asked = db.query("select 1").then(
    () => true,
    () => false,
  );
  return within(asked, answer_ms, false);
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
