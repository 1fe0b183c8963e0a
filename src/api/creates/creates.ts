// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header) for every operation that creates something: a request that is
// repeated with its key gets the first answer, and nothing is made twice. One mechanism for all of them, as hooks. Sending
// has its own, which commits the answer with the message (sending/accept/idempotency.ts).
import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Api, answers } from "../../http/http.ts";
import { IdempotencyHeader, readKey } from "../../http/idempotency-key.ts";
import { sleep } from "../../platform/clock.ts";
import { atMostEvery, type RoundsWorld, startRounds } from "../../platform/process/rounds.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { SealedColumn } from "../../platform/storage/sealed-columns.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./creates-queries.ts";

const KEEP_MS = 72 * 3_600_000;
/** For the first of two requests with one key that came at the same time. */
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 100;
const FORGET_LOOK_MS = 60_000;
const FORGET_EVERY_MS = 3_600_000;
const ROWS_MAX = 20_000;
const STATUS_MADE = 201;
const USED = "this Idempotency-Key was used with another request";
const { 409: CONFLICT } = answers({}, [409]);

type CreatesWorld = Pick<World, "db" | "clock" | "seal" | "log">;
type Route = { method: string | string[]; schema?: { headers?: unknown; body?: unknown; response?: unknown } };
type Taken = queries.CreateName & { org_id: string };

/** Installs it for the routes of `api` that are mounted from now on and answer 201. */
export function repeatCreates(api: Api, world: CreatesWorld): void {
  const taken = new WeakMap<FastifyRequest, Taken>();
  api.addHook("onRoute", (route: Route) => {
    if (route.method !== "POST" || !isCreating(route)) return;
    const response = { 409: CONFLICT, ...(route.schema?.response as object) };
    route.schema = { ...route.schema, headers: IdempotencyHeader, response };
  });
  /** The stored answer, sent; null where the request is the first one. */
  const repeated = async (request: FastifyRequest, reply: FastifyReply, content: Buffer | null) => {
    const key = readKey(request.headers["idempotency-key"]);
    if (key === null) return null;
    const { org_id, environment } = request.account;
    const name = { org_id, environment, key };
    const answer = await takeOrFind(world, name, hashOf(request, content));
    if (answer === null) {
      taken.set(request, name);
      return null;
    }
    reply.header("idempotent-replayed", "true").code(answer.status).type("application/json; charset=utf-8");
    return reply.send(answer.text);
  };
  api.addHook("preHandler", async (request, reply) => {
    const route = request.routeOptions as Route;
    if (request.method !== "POST" || !isCreating(route)) return;
    if (!readsItself(route)) return (await repeated(request, reply, request.rawBody)) ?? undefined;
    // Its handler asks, once it has the body; what is wrong with the key is said before that.
    readKey(request.headers["idempotency-key"]);
  });
  api.decorateRequest("isRepeated", async function isRepeated(this: FastifyRequest, reply, content) {
    return (await repeated(this, reply, content)) !== null;
  });
  api.addHook("onSend", async (request, reply, payload) => {
    const name = taken.get(request);
    if (name) await conclude(world, name, reply, payload);
    return payload;
  });
}

function isCreating({ schema }: Route): boolean {
  return STATUS_MADE in ((schema?.response ?? {}) as object);
}

/** Where a file is uploaded, its bytes are not known before the handler has read them. */
function readsItself({ schema }: Route): boolean {
  return "content" in ((schema?.body ?? {}) as object);
}

/** The same key may be used again only for the same content to the same place. */
function hashOf({ method, url }: FastifyRequest, content: Buffer | null): Buffer {
  return createHash("sha256")
    .update(`${method} ${url}\n`)
    .update(content ?? "")
    .digest();
}

/** Null where the request is the first one, which now has the key; else the stored answer. */
async function takeOrFind(world: CreatesWorld, name: Taken, hash: Buffer) {
  const until = world.clock.monotonic() + WAIT_MS;
  for (;;) {
    const row = await world.db.asOrg(name.org_id, async (tx) => {
      const at = new Date(world.clock.now());
      const isFirst = (await queries.takeKey(tx, name.org_id, name, { hash, at })) > 0;
      if (!isFirst) return (await queries.findKey(tx, name.org_id, name))[0];
      const since = new Date(at.getTime() - KEEP_MS);
      if ((await queries.takeFromMail(tx, name.org_id, name, { hash, at, since })) === 0) throw conflict(USED);
      return null;
    });
    if (row === null) return null;
    if (row && world.clock.now() - row.created_at.getTime() >= KEEP_MS) await drop(world, name);
    else if (row && !row.request_hash.equals(hash)) throw conflict(USED);
    else if (row?.status && row.answer) {
      return { status: row.status, text: world.seal.open(row.answer, contextOf(name)).toString() };
    } else if (world.clock.monotonic() >= until) {
      throw conflict(
        "the first request with this Idempotency-Key has not ended; look whether it made something before you use another key",
      );
    } else await sleep(LOOK_EVERY_MS);
  }
}

/** What succeeded is kept, before its answer leaves; what failed may be tried again. */
async function conclude(
  world: CreatesWorld,
  name: Taken,
  { statusCode }: FastifyReply,
  payload: unknown,
): Promise<void> {
  try {
    if (statusCode >= 300 || typeof payload !== "string") return void (await drop(world, name));
    const answer = world.seal.seal(Buffer.from(payload), contextOf(name));
    await world.db.asOrg(name.org_id, (tx) =>
      queries.storeAnswer(tx, name.org_id, name, { status: statusCode, answer }),
    );
  } catch (err) {
    // The answer stands. A repeated request learns that the first has not ended, so that nothing is made twice.
    world.log.warn({ err, org_id: name.org_id }, "the answer to an Idempotency-Key could not be kept");
  }
}

async function drop(world: CreatesWorld, name: Taken): Promise<void> {
  await world.db.asOrg(name.org_id, (tx) => queries.dropKey(tx, name.org_id, name));
}

function conflict(sentence: string): Refusal {
  return new Refusal("idempotency_conflict", sentence, { field: "Idempotency-Key" });
}

export const SEALED: readonly SealedColumn[] = [
  {
    ...{ table: "idempotent_create", column: "answer", key: ["org_id", "environment", "key"] },
    context: ({ org_id, environment, key }) => contextOf({ org_id: org_id!, environment: environment!, key: key! }),
  },
];

function contextOf({ org_id, environment, key }: Taken): string {
  return `idempotent-create:${org_id}:${environment}:${key}`;
}

/** What the clock role does: keys are forgotten after 72 hours. */
export function startForgettingCreates(world: Pick<World, "db" | "clock"> & RoundsWorld): { stop(): Promise<void> } {
  const round = atMostEvery(world, FORGET_EVERY_MS, async () => {
    const before = new Date(world.clock.now() - KEEP_MS);
    while ((await queries.forgetKeys(world.db, before, ROWS_MAX)) === ROWS_MAX);
  });
  return startRounds(world, { name: "forgetting idempotency keys", every_ms: FORGET_LOOK_MS, round });
}
