// The HTTP edge: one Fastify server for /v1 and /openapi.yaml. Order of a request: authentication → request rate →
// shape → the feature. What a route declares as schema is validated, served and described.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import swagger from "@fastify/swagger";
import Fastify, { type FastifyError, type FastifyReply, type FastifyRequest } from "fastify";
import { authenticate, authenticateMask } from "../accounts/accounts.ts";
import { noteChanges, rememberReplaced } from "../audit/audit.ts";
import type { Api } from "../http/http.ts";
import { ErrorBody, RateLimitBody } from "../http/http.ts";
import { personAccounts } from "../people/people.ts";
import { isWithin } from "../platform/net/addresses.ts";
import { listenTls, type TlsListener } from "../platform/net/tls-listener.ts";
import type { Pressure } from "../platform/process/pressure.ts";
import { createWorkMeter } from "../platform/process/thread-ms.ts";
import type { World } from "../platform/world.ts";
import { Event } from "../webhooks/types.ts";
import { logAccess } from "./access-log.ts";
import { judgePeople, keepOutOfCaches, refuseMaskKey, requireKey, requireLiveKey } from "./auth.ts";
import { readJsonBodies } from "./body/json-body.ts";
import { demandEmptyBody } from "./body/no-body.ts";
import { refuseNul } from "./body/refuse-nul.ts";
import { answerOddRequests, answerUnreadable, demandHost } from "./client-errors.ts";
import { closerOf } from "./closing.ts";
import { compileAtFirstUse, serializersAtFirstUse } from "./compile-schemas.ts";
import { repeatCreates } from "./creates/creates.ts";
import { noteCutOff } from "./cut-off.ts";
import { mountDescription } from "./description.ts";
import { mountDocs } from "./docs/docs.ts";
import { answerError } from "./errors.ts";
import { type Charging, chargingOf, divertHeavy } from "./heavy/heavy.ts";
import { createHeavyProcess, type HeavyRequest } from "./heavy/heavy-process.ts";
import { limitLoad } from "./load.ts";
import { describeApi } from "./openapi.ts";
import { limitRequests } from "./rates.ts";

const BODY_BYTES_MAX = 1024 * 1024;
const HEADERS_BYTES_MAX = 16 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 120_000;

export type HttpServer = {
  app: Api;
  listen(): Promise<string>;
  /** Answers 503 from now on, finishes what is under way, closes; within 30 s, whatever clients leave half sent. */
  stop(): Promise<void>;
};

/**
 * `pressure`: while it says that something is short, changes are refused for now. `heavy_worker`: the file of the process
 * that heavy requests are done in; without it they are done here. `tls`: the certificate of POSTERN_HTTPS.
 */
export type Surroundings = { pressure?: Pick<Pressure, "shortage">; heavy_worker?: URL; tls?: () => SecureContext };

/** Builds the server; `mount` adds every feature's routes below authentication, `mountOpen` those without a key. */
export async function createHttpServer(
  world: World,
  mount: (api: Api) => void,
  mountOpen: (api: Api) => void = () => undefined,
  surroundings: Surroundings = {},
): Promise<HttpServer> {
  return buildServer(world, { mount, mountOpen, ...surroundings });
}

/** The request that another process handed over, by its id. */
type FindHanded = (id: string) => HeavyRequest | undefined;
type Mounting = { mount: (api: Api) => void; mountOpen: (api: Api) => void };

/**
 * The same for the process of heavy requests: asked by `inject` with the headers of `named` beside the request's own. Who
 * asks, and that the rate allows it, was found out before.
 */
export async function createInnerServer(world: World, { find, ...mounting }: Mounting & { find: FindHanded }) {
  const { app } = await buildServer(world, { ...mounting, find });
  return { app, named: (id: string) => ({ [HANDED_HEADER]: id }) };
}

const HANDED_HEADER = "x-postern-handed";

type Parts = Mounting & Surroundings & { find?: FindHanded };

async function buildServer(world: World, parts: Parts): Promise<HttpServer> {
  const { mount, mountOpen, pressure = null, heavy_worker = null, find = null } = parts;
  const heavy = heavy_worker && createHeavyProcess(world, heavy_worker);
  const app = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Of `X-Forwarded-For` only what proxies of the operator's own wrote is believed.
    trustProxy: (ip: string) => isWithin(ip, world.config.trusted_proxies),
    // No path is longer than the head it came in: how long a parameter may be, its schema says (400, not 414).
    routerOptions: { maxParamLength: HEADERS_BYTES_MAX, ignoreTrailingSlash: false },
    frameworkErrors: answerUnrouted(world.log),
    clientErrorHandler: (error, socket) => answerUnreadable(world.log, error, socket as Socket, world.random.uuid()),
    http: { headersTimeout: HEADERS_TIMEOUT_MS, maxHeaderSize: HEADERS_BYTES_MAX, requireHostHeader: false },
    genReqId: (raw) => (find ? handedId(raw) : world.random.uuid()),
    // As it came: what a client of our own would make of its dots and escapes is another path.
    ...(find ? { rewriteUrl: (raw: Headed) => find(handedId(raw))?.url ?? "/" } : {}),
    return503OnClosing: false,
    forceCloseConnections: "idle",
    exposeHeadRoutes: true,
    logger: false,
    schemaController: { compilersFactory: { buildSerializer: serializersAtFirstUse } },
  }) as unknown as Api;
  const state = { stopping: false };
  const close = closerOf(app as never);
  answerOddRequests(world.log, app.server, () => world.random.uuid());

  const charging = readBodies(app, world, heavy !== null);
  decorateRequests(app);
  refuseWhenStopping(app, state);
  countForMoves(app, world);
  app.setErrorHandler((error, request, reply) => {
    charging?.judged(request);
    answerError(world.log, error, request, reply);
  });
  app.addHook("onSend", async (request, reply) => noteCutOff(request, reply));
  app.addHook("onRequest", demandHost);
  answerUnknown(app);
  limitLoad(app, world, pressure);
  divertHeavy(app, world, heavy && charging ? { heavy, charging } : null);
  // Those that were handed over are counted where they came in.
  if (!find) countRequests(app, world);

  app.addSchema(ErrorBody);
  app.addSchema(RateLimitBody);
  app.addSchema({ ...Event, $id: "Event" });
  await app.register(swagger, describeApi(world.config.base_url));
  await app.register(async (scope) => {
    const v1 = scope as unknown as Api;
    guardRequests(v1, world, find);
    mount(v1);
  });
  await app.register(async (scope) => mountOpen(scope as unknown as Api));
  mountKeyless(app);
  await app.ready();

  let https: TlsListener | null = null;
  return {
    app,
    async listen() {
      const address = await app.listen(placeOf(world));
      if (parts.tls) https = await listenTls(world, app.server, parts.tls);
      return https?.address ?? address;
    },
    async stop() {
      state.stopping = true;
      await Promise.all([close(), https?.stop()]);
      await heavy?.stop();
    },
  };
}

/** Installs the reading of bodies and its validators. Of a thread that organizations share it answers how they are charged for it. */
function readBodies(app: Api, world: World, isShared: boolean): Charging | null {
  const meter = createWorkMeter(world.clock);
  const validators = compileAtFirstUse(app, meter);
  const charging = isShared ? chargingOf(world, validators) : null;
  readJsonBodies(app as never, meter, charging ?? undefined);
  return charging;
}

/** What every request of /v1 passes on its way to its route. */
function guardRequests(v1: Api, world: World, find: FindHanded | null): void {
  const judge = judgePeople(world);
  v1.addHook("onRoute", demandEmptyBody);
  v1.addHook("onRequest", keepOutOfCaches);
  if (find) v1.addHook("onRequest", takeHanded(find));
  else {
    const ofFullKey = authenticate(world);
    const refuseMask = refuseMaskKey(authenticateMask(world));
    const findAccount = async (secret: string) => (await ofFullKey(secret)) ?? (await refuseMask(secret));
    const byKey = requireKey(world, findAccount, { people: personAccounts(world), judge });
    v1.addHook("onRequest", byKey);
    v1.decorateRequest("askAgain", function askAgain(this: FastifyRequest) {
      return byKey.again(this);
    });
    v1.addHook("onRequest", limitRequests(world));
  }
  v1.addHook("onRequest", requireLiveKey(world));
  v1.addHook("preHandler", judge);
  rememberReplaced(v1 as never);
  v1.addHook("preValidation", refuseNul);
  v1.addHook("preSerialization", noteChanges(world));
  repeatCreates(v1, world);
}

/** Node takes a handle that is open already under this name. */
function placeOf({ config, held }: World): { host: string; port: number; _handle?: unknown } {
  const open = held(config.http.host, config.http.port) as unknown as { _handle: unknown } | null;
  return { ...config.http, ...(open && { _handle: open._handle }) };
}

function decorateRequests(app: Api): void {
  app.decorateRequest("account");
  app.decorateRequest("rawBody", null);
  app.decorateRequest("unstorable", false);
  app.decorateRequest("isHeavy", false);
}

function mountKeyless(app: Api): void {
  // Monitors and tools ask for the head alone (RFC 9110 §9.3.2).
  const open = { schema: { hide: true }, exposeHeadRoute: true };
  mountDescription(app);
  mountDocs(app);
  app.get("/healthz", open, async () => ({ status: "ok" }));
}

/** Logs the answer to a path that cannot be read: no hook sees these. */
function answerUnrouted(log: World["log"]) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    noteCutOff(request, reply.header("x-request-id", request.id));
    answerError(log, error, request, reply);
  };
}

type Headed = Pick<IncomingMessage, "headers">;

function handedId({ headers }: Headed): string {
  return String(headers[HANDED_HEADER]);
}

function takeHanded(find: FindHanded) {
  return async (request: FastifyRequest): Promise<void> => {
    const handed = find(request.id);
    if (!handed) throw new Error("a request was handed over by nobody");
    request.account = handed.account;
  };
}

function refuseWhenStopping(app: Api, state: { stopping: boolean }): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    if (!state.stopping) return;
    reply.header("retry-after", "1").code(503);
    const error = "Postern is stopping; try again shortly";
    return reply.send({ error, code: "unavailable", request_id: request.id });
  });
  app.addHook("onSend", async (_request, reply) => {
    if (state.stopping) reply.header("connection", "close");
  });
}

/** Requests that may change something. Streams of events go on for hours, and only read. */
function countForMoves(app: Api, { moves }: Pick<World, "moves">): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (request.method !== "GET" && request.method !== "HEAD") reply.raw.once("close", moves.begin());
    done();
  });
}

/** Before anything of a body is read: whatever it holds, there is nothing here. */
function answerUnknown(app: Api): void {
  app.addHook("onRequest", async (request, reply) => {
    if (!request.is404) return;
    const error = `there is no ${request.method} ${request.url.split("?")[0]?.slice(0, 200)}`;
    return reply.code(404).send({ error, code: "not_found", request_id: request.id });
  });
}

const CLASSES = ["1xx", "2xx", "3xx", "4xx", "5xx"];

function countRequests(app: Api, world: Pick<World, "log" | "metrics">): void {
  app.addHook("onResponse", logAccess(world.log));
  const requests = world.metrics.counter("postern_http_requests_total", "HTTP requests answered", [
    "method",
    "route",
    "status",
  ]);
  const seconds = world.metrics.histogram("postern_http_request_seconds", "Time from request to answer", [
    "method",
    "route",
    "class",
  ]);
  app.addHook("onResponse", async (request, reply) => {
    const route = request.routeOptions.url ?? "unknown";
    const status = String(reply.statusCode);
    requests.inc({ method: request.method, route, status });
    seconds.observe(
      { method: request.method, route, class: CLASSES[Number(status[0]) - 1] ?? "5xx" },
      reply.elapsedTime / 1000,
    );
  });
}
