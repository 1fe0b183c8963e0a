// A whole API in process for tests: a database of its own (cloned from the template), the real World, requests through
// Fastify's inject: no sockets. Each file makes one and closes it at the end.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrap } from "../../src/accounts/accounts.ts";
import { newSecret, secretDigest } from "../../src/accounts/keys.ts";
import { insertKey, insertOrganization } from "../../src/accounts/queries.ts";
import { createHttpServer, type HttpServer } from "../../src/api/server.ts";
import { createEngine, mountFeatures, mountOpenRoutes } from "../../src/app.ts";
import { type Config, readConfig } from "../../src/config.ts";
import type { Account, Api } from "../../src/http/http.ts";
import { startOutbound } from "../../src/outbound/outbound.ts";
import { createLog } from "../../src/platform/process/log.ts";
import type { World } from "../../src/platform/world.ts";
import { allSigningKeys, type Engine } from "../../src/ports.ts";
import { complainSimulated, windowsOfLeaving } from "../../src/sending/sending.ts";
import { buildWorld } from "../../src/world.ts";
import { testDatabase } from "./database.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; the assertions are the check
export type Answer = { status: number; body: any; headers: Record<string, string | string[] | number | undefined> };

export type TestApi = {
  world: World;
  /** The one of this process: whatever else starts in it takes this one, as the product does. */
  engine: Engine;
  /** The server itself, to ask which routes it has. */
  app: Api;
  config: Config;
  database_url: string;
  org_id: string;
  live_key: string;
  test_key: string;
  /** Asks as the first organization's live key unless `key` is given (null: no key at all). */
  ask(
    method: string,
    path: string,
    body?: unknown,
    options?: { key?: string | null; headers?: Record<string, string>; ip?: string },
  ): Promise<Answer>;
  /** A further organization with a live and a test key. */
  organization(
    plan?: Account["plan"],
    state?: Account["state"],
  ): Promise<{ org_id: string; live_key: string; test_key: string }>;
  /** Starts the delivery engine in this process. */
  startMta(): Promise<void>;
  close(): Promise<void>;
};

/** A configuration for tests: a temporary data folder, loopback allowed, a service host of its own. */
export function testConfig(env: Record<string, string> = {}): Config {
  const dir = mkdtempSync(join(tmpdir(), "postern-test-"));
  return readConfig({
    POSTERN_DATA: dir,
    POSTERN_HOSTNAME: "postern.test",
    POSTERN_BASE_URL: "https://api.postern.test",
    POSTERN_TESTING_ALLOW_LOOPBACK: "1",
    // Who plays tests that others wrote wants to see why one was answered 500.
    POSTERN_LOG_LEVEL: process.env.POSTERN_TEST_LOG_LEVEL ?? "silent",
    POSTERN_DNS: "127.0.0.1:9",
    ...env,
  });
}

/** Starts the API in process. `env` are further environment settings (POSTERN_DNS of a test DNS server, …); `change` may replace parts of the World. */
export async function testApi(
  env: Record<string, string> = {},
  change: (world: World) => World | Promise<World> = (world) => world,
): Promise<TestApi> {
  const config = testConfig(env);
  const database = await testDatabase();
  const log = createLog({ level: config.log_level, role: "test" });
  const world = await change(buildWorld(config, log, database.url, database.distributed));
  const first = await bootstrap(world, { live_key: null, test_key: null });
  if (!first) throw new Error("the template database must be empty");
  const engine = createEngine(world);
  const server = await serve(world, engine);
  return {
    world,
    engine,
    app: server.app,
    config,
    database_url: database.url,
    ...first,
    async ask(method, path, body, options = {}) {
      const key = options.key === undefined ? first.live_key : options.key;
      const headers: Record<string, string> = { ...options.headers };
      if (key !== null) headers.authorization ??= `Bearer ${key}`;
      if (body !== undefined) headers["content-type"] ??= "application/json";
      const payload =
        body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
      const response = await server.app.inject({
        method: method as "GET",
        url: path,
        headers,
        payload: payload as string,
        ...(options.ip && { remoteAddress: options.ip }),
      });
      const isJson = String(response.headers["content-type"] ?? "").includes("json");
      return { status: response.statusCode, body: isJson ? response.json() : response.body, headers: response.headers };
    },
    organization: (plan = "enterprise", state = "active") => addOrganization(world, plan, state),
    async startMta() {
      const leaving = windowsOfLeaving(world, engine.sending);
      const complain = complainSimulated(world);
      const deps = { signingKeys: allSigningKeys(world), roles: ["mta"], leaving, complain };
      engine.outbound = await startOutbound(world, deps);
    },
    async close() {
      await server.stop();
      await engine.outbound?.stop();
      await world.db.close();
      await database.drop();
      rmSync(config.data_dir, { recursive: true, force: true });
    },
  };
}

/** The API as another process over the same database serves it: with an engine of its own, that knows nothing of the first. */
export function otherProcess(world: World): Promise<HttpServer> {
  return serve(world, createEngine(world));
}

function serve(world: World, engine: Engine): Promise<HttpServer> {
  return createHttpServer(
    world,
    (api) => mountFeatures(api, world, engine),
    (api) => mountOpenRoutes(api, world, engine),
  );
}

async function addOrganization(world: World, plan: Account["plan"], state: Account["state"]) {
  const org_id = world.random.uuid();
  await insertOrganization(world.db, { id: org_id, name: `org ${org_id}`, plan, state });
  const secrets = { live: newSecret(world.random, "live"), test: newSecret(world.random, "test") };
  for (const environment of ["live", "test"] as const) {
    await insertKey(world.db, org_id, {
      id: world.random.uuid(),
      name: environment,
      environment,
      digest: secretDigest(secrets[environment]),
      key_prefix: secrets[environment].slice(0, 12),
      last_four: secrets[environment].slice(-4),
      created_at: new Date(world.clock.now()),
    });
  }
  return { org_id, live_key: secrets.live, test_key: secrets.test };
}
