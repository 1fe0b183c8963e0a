// Who logs in: the user `postern` with an API key as password. Keys are looked up at the login and again for each message,
// so that a revoked key stops at once. Wrong logins in number are answered slowly; a right key always passes, as others
// behind the same address must not suffer for one program with an old key.
import { authenticate, requestRates } from "../accounts/accounts.ts";
import type { Account } from "../http/http.ts";
import { INVALID, type Login, type LoginAnswer } from "../mail/smtp-server/auth.ts";
import { clientKey } from "../mail/smtp-server/client-limits.ts";
import { type Reply, reply } from "../mail/smtp-server/reply.ts";
import type { Client } from "../mail/smtp-server/session.ts";
import { isUnavailable } from "../platform/database/db.ts";
import { type Buckets, createBuckets } from "../platform/fair/buckets.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { FAILED_LOGINS } from "./limits.ts";

const USER = "postern";

export const LOGIN_GONE: Reply = reply(535, "5.7.8", "the API key of this login was revoked");
const NOT_NOW: Reply = reply(454, "4.7.0", "logins cannot be checked at the moment, try again shortly");

export type Logins = {
  check(client: Client, login: Login): Promise<LoginAnswer>;
  /** The account behind a login as it is now; null when its key was revoked. */
  current(client: Client): Promise<Account | null>;
  /** Counts a message as one request of its organization; throws the Refusal when there are too many a second. */
  countMessage(account: Account): Promise<void>;
};

type User = { secret: string };

/** Logins of this process. */
export function createLogins(world: Pick<World, "db" | "clock" | "log" | "metrics">): Logins {
  const lookUp = authenticate(world);
  const failures = createBuckets(FAILED_LOGINS);
  const take = requestRates(world);
  const counter = world.metrics.counter("postern_submission_logins_total", "Logins at submission", ["result"]);
  return {
    async check(client, { user, password }) {
      const account = user.toLowerCase() === USER ? await find(lookUp, password) : null;
      if (account === "unavailable") return { kind: "refused", reply: NOT_NOW };
      if (account) {
        counter.inc({ result: "accepted" });
        return { kind: "known", user: { secret: password } satisfies User };
      }
      const slow = noteFailure(world, failures, clientKey(client.ip));
      counter.inc({ result: slow ? "slowed" : "refused" });
      return { kind: "refused", reply: INVALID, slow };
    },
    current: (client) => lookUp((client.user as User).secret),
    async countMessage(account) {
      const { allowed, limit } = await take(account);
      if (!allowed) throw overRate(limit);
    },
  };
}

async function find(
  lookUp: (secret: string) => Promise<Account | null>,
  secret: string,
): Promise<Account | null | "unavailable"> {
  try {
    return await lookUp(secret);
  } catch (error) {
    if (isUnavailable(error)) return "unavailable";
    throw error;
  }
}

/** Counts a failed login; true if its answer must wait. Logs one line when a client's answers begin to wait. */
function noteFailure(world: Pick<World, "clock" | "log">, failures: Buckets, key: string): boolean {
  const now = world.clock.monotonic();
  const slow = failures.take(key, now) > 0;
  if (!slow && failures.isEmpty(key, now)) {
    world.log.warn({ client: key }, "too many failed logins at submission; further wrong ones are answered slowly");
  }
  return slow;
}

function overRate(limit: number): Refusal {
  return new Refusal("rate_limit_exceeded", `more than ${limit} messages and requests per second`, {
    retry_after_seconds: 1,
    body: { limit_type: "requests_per_second", limit, used: limit },
  });
}
