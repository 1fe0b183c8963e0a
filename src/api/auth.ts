// Bearer keys (RFC 6750 §2.1). 401 exactly for a missing, malformed, unknown or revoked key; looked up in the database
// on every request (many at a time), so a revocation holds from the next request on, on every node.
import type { FastifyRequest } from "fastify";
import { protectLive } from "../accounts/accounts.ts";
import { environmentOf } from "../domains/domains.ts";
import type { Account } from "../platform/http.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";

/** A hook that sets `request.account` or refuses with 401. */
export function requireKey(authenticate: (secret: string) => Promise<Account | null>) {
  return async (request: FastifyRequest): Promise<void> => {
    const header = request.headers.authorization;
    if (!header) throw new Refusal("missing_api_key", "send your API key as 'Authorization: Bearer <key>'");
    const secret = /^Bearer ([\x21-\x7e]{1,200})$/i.exec(header)?.[1];
    const account = secret ? await authenticate(secret) : null;
    if (!account) throw new Refusal("invalid_api_key", "the API key is malformed, unknown or revoked");
    request.account = account;
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
