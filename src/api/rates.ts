// Request rates per organization and plan: what is beyond an organization's bucket is refused with the contract's body.
// The bucket itself, shared by all processes, is the accounts feature's.
import type { FastifyReply, FastifyRequest } from "fastify";
import { requestRates } from "../accounts/accounts.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";

/** A hook that refuses with the contract's 429 body once an organization's bucket is empty. */
export function limitRequests(world: Pick<World, "db" | "clock">) {
  const take = requestRates(world);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { allowed, limit, remaining } = await take(request.account);
    reply.header("ratelimit-limit", String(limit));
    reply.header("ratelimit-remaining", String(remaining));
    reply.header("ratelimit-reset", String(resetSeconds(limit, remaining)));
    if (!allowed) throw overRate(limit);
  };
}

/** Until the bucket is full again: it holds one second's worth. */
function resetSeconds(limit: number, remaining: number): number {
  return remaining >= limit - 1 ? 0 : 1;
}

function overRate(limit: number): Refusal {
  return new Refusal("rate_limit_exceeded", `more than ${limit} requests per second; slow down and retry`, {
    retry_after_seconds: 1,
    body: {
      limit_type: "requests_per_second",
      limit,
      used: limit,
      retry_after_seconds: 1,
      warming_phase: "",
    },
  });
}
