// Bearer keys (RFC 6750 §2.1). 401 exactly for a missing, malformed, unknown or revoked key; looked up in the database
// on every request (many at a time), so a revocation holds from the next request on, on every node.
import type { FastifyReply, FastifyRequest } from "fastify";
import { getKey, protectLive, refuseMoving } from "../accounts/accounts.ts";
import { environmentOf } from "../domains/domains.ts";
import type { Account } from "../http/http.ts";
import { clientKey } from "../mail/smtp-server/client-limits.ts";
import { judgePerson } from "../people/people.ts";
import { sleep } from "../platform/clock.ts";
import { createBuckets } from "../platform/fair/buckets.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";

/**
 * Wrong keys of one client that are answered at once: a hundred, then one a second; the others wait. A key has 190 bits, so
 * nobody guesses one: this is about the noise, and a right key is looked up and passes whatever came before it.
 */
const WRONG_KEYS = { per_s: 1, burst: 100, names_max: 100_000 };
const WAIT_MS = 1_000;
/** So many wait at once in this process. Those beyond are answered at once, and their connections end. */
const WAITING_MAX = 1_000;

type Limits = { wrong_keys: typeof WRONG_KEYS; wait_ms: number; waiting_max: number };
const LIMITS: Limits = { wrong_keys: WRONG_KEYS, wait_ms: WAIT_MS, waiting_max: WAITING_MAX };

const WRONG_KEY = "the API key is malformed, unknown or revoked";
/** Where password managers ask. */
export const WRONG_MASK_KEY = `${WRONG_KEY}, or it is not a mask key: password managers need a key of kind mask (svc_mask_…)`;

/**
 * `people`: the account of a signed-in person, for a request without a key. `judge`: what else is asked again of a request that
 * lasts. `wrong`: what a 401 says. `limits` is for tests.
 */
type KeyOptions = {
  limits?: Limits;
  wrong?: string;
  people?: (request: FastifyRequest) => Promise<Account | null>;
  judge?: (request: FastifyRequest) => Promise<void>;
};

/** A hook that sets `request.account` or refuses with 401. `again` asks the same of a request that lasts. */
export function requireKey(
  { clock }: Pick<World, "clock">,
  authenticate: (secret: string) => Promise<Account | null>,
  { limits = LIMITS, wrong = WRONG_KEY, people = async () => null, judge = async () => undefined }: KeyOptions = {},
) {
  const slow = slowWrongKeys(clock, limits);
  async function isKnown(request: FastifyRequest): Promise<boolean> {
    const header = request.headers.authorization;
    const acting = header === undefined ? await people(request) : null;
    if (!acting && !header) throw new Refusal("missing_api_key", "send your API key as 'Authorization: Bearer <key>'");
    const secret = /^Bearer ([\x21-\x7e]{1,200})$/i.exec(header ?? "")?.[1];
    const account = acting ?? (secret ? await authenticate(secret) : null);
    if (account === null) return false;
    refuseMoving(account);
    request.account = account;
    return true;
  }
  async function hook(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (await isKnown(request)) return;
    await slow(request, reply);
    throw new Refusal("invalid_api_key", wrong);
  }
  async function again(request: FastifyRequest): Promise<void> {
    if (!(await isKnown(request))) throw new Refusal("invalid_api_key", wrong);
    await judge(request);
  }
  return Object.assign(hook, { again });
}

/**
 * A hook: no cache keeps an answer (RFC 9111 §5.2.2.5). One address has another answer for each key, and for each person and
 * organization; a cache knows by itself only of `Authorization` that it must not share (§3.5), not of cookies.
 */
export function keepOutOfCaches(_request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  reply.header("cache-control", "no-store");
  done();
}

/** A hook: the key of programs that send it bare, as SimpleLogin's do, in `Authentication`. */
export async function readOtherKeyHeader({ headers }: FastifyRequest): Promise<void> {
  const { authentication } = headers;
  if (headers.authorization === undefined && typeof authentication === "string") {
    headers.authorization = `Bearer ${authentication}`;
  }
}

/** 403 for a mask key, which is a right key in a wrong place; null for what is none. */
export function refuseMaskKey(authenticateMask: (secret: string) => Promise<Account | null>) {
  return async (secret: string): Promise<null> => {
    if ((await authenticateMask(secret)) === null) return null;
    const only = "a mask key serves password managers, under /api; this operation needs a full API key";
    throw new Refusal("mask_key_not_allowed", only);
  };
}

/** Waits when the client has sent many wrong keys; no longer than it stays. */
function slowWrongKeys(clock: World["clock"], { wrong_keys, wait_ms, waiting_max }: Limits) {
  const buckets = createBuckets(wrong_keys);
  let waiting = 0;
  return async ({ ip }: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (buckets.take(clientKey(ip), clock.monotonic()) === 0) return;
    if (waiting >= waiting_max) {
      reply.header("connection", "close");
      return;
    }
    const gone = new AbortController();
    const leave = () => gone.abort();
    reply.raw.once("close", leave);
    waiting += 1;
    await sleep(wait_ms, gone.signal);
    waiting -= 1;
    reply.raw.off("close", leave);
  };
}

/** A hook for `preHandler`: 403 for a person whose role does not include the operation, or who has to show the password again. */
export function judgePeople(world: Pick<World, "db" | "clock">) {
  return async ({ account, method, routeOptions, params, body }: FastifyRequest): Promise<void> => {
    const { operationId: operation = "" } = (routeOptions.schema ?? {}) as { operationId?: string };
    await judgePerson(world, account, { operation, method }, async () => {
      const { id } = params as { id?: string };
      if (id === undefined) return (body as { environment?: string } | null)?.environment === "live";
      return (await getKey(world, account.org_id, id)).environment === "live";
    });
  };
}

/** A hook: 403 for a test key where the route is for live keys, or names a domain that a live key made. */
export function requireLiveKey(world: Pick<World, "db">) {
  return async ({ account, params, routeOptions }: FastifyRequest): Promise<void> => {
    const { live_keys_only, live_domain_only } = routeOptions.config;
    if (live_keys_only !== undefined) await protectLive(account, live_keys_only, async () => "live");
    if (live_domain_only === undefined) return;
    const { id } = params as { id: string };
    await protectLive(account, live_domain_only, () => environmentOf(world, account.org_id, id));
  };
}
