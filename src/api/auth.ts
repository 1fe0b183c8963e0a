// Bearer keys (RFC 6750 §2.1). 401 exactly for a missing, malformed, unknown or revoked key; looked up in the database
// on every request (many at a time), so a revocation holds from the next request on, on every node.
import type { FastifyRequest } from "fastify";
import type { Account } from "../platform/http.ts";
import { Refusal } from "../platform/refusal.ts";

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
