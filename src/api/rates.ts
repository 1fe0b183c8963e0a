// Request rates per organization and plan: a token bucket of one second's worth, refilled continuously, per process.
// Several api processes share an organization's rate by dividing it.
import type { FastifyReply, FastifyRequest } from "fastify";
import { requestsPerSecond } from "../accounts/accounts.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";

type Bucket = { tokens: number; at_ms: number };

const BUCKETS_MAX = 100_000;

/** A hook that refuses with the contract's 429 body once an organization's bucket is empty. */
export function limitRequests(world: Pick<World, "clock">, sharers: () => number = () => 1) {
  const buckets = new Map<string, Bucket>();
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const limit = requestsPerSecond(request.account);
    const rate = limit / Math.max(1, sharers());
    const now = world.clock.monotonic();
    const bucket = buckets.get(request.account.org_id) ?? { tokens: rate, at_ms: now };
    bucket.tokens = Math.min(Math.max(1, rate), bucket.tokens + ((now - bucket.at_ms) / 1000) * rate);
    bucket.at_ms = now;
    if (buckets.size >= BUCKETS_MAX) buckets.clear();
    buckets.set(request.account.org_id, bucket);
    reply.header("ratelimit-limit", String(limit));
    if (bucket.tokens < 1) throw overRate(limit);
    bucket.tokens -= 1;
    reply.header("ratelimit-remaining", String(Math.floor(bucket.tokens)));
  };
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
