// Mail servers that exist in this process only, for addresses of the simulator (mail/simulated.ts). All before and behind the
// network is the real thing: queue, path, signature, outcome, events. Each behaviour is a server of its own, named after it.
import { isSimulated, SIMULATOR, type SimulatedKind, simulatedKind, simulatorDomain } from "../../mail/simulated.ts";
import type { SendHooks, SendOutcome } from "../../mail/smtp/transaction.ts";
import { sleep } from "../../platform/clock.ts";
import type { World } from "../../platform/world.ts";
import type { MailSession, OpenSession } from "../outside.ts";
import type { Plan } from "../route/tls-policy.ts";
import type { Job } from "../types.ts";

type Behaviour = "delivered" | "bounced" | "soft-bounced" | "deferred" | "slow" | "unknown";

/** No server listens here, and no relay can be set to it: the sign that a session is simulated. */
const PORT = 0;
/** RFC 5737: an address of nobody, for the timeline. */
const ADDRESS = "192.0.2.1";
/** How long `slow` takes to answer. */
export const SLOW_MS = 10_000;
const CONNECTIONS_MAX = 20;
const MESSAGES_PER_CONNECTION = 100;

const REPLIES = {
  delivered: { code: 250, enhanced: "2.0.0", text: "simulated: accepted" },
  slow: { code: 250, enhanced: "2.0.0", text: "simulated: accepted after a long wait" },
  bounced: { code: 550, enhanced: "5.1.1", text: "simulated: no such user" },
  "soft-bounced": { code: 552, enhanced: "5.2.2", text: "simulated: mailbox full" },
  deferred: { code: 450, enhanced: "4.7.1", text: "simulated: greylisted, try again later" },
  unknown: {
    code: 550,
    enhanced: "5.1.1",
    text: "simulated: no such user; there are delivered, bounced, soft-bounced, deferred, complained and slow",
  },
} as const;

/** The way of a message to a simulated recipient; null for all other mail. */
export function simulatedPlan({ config }: Pick<World, "config">, job: Pick<Job, "email" | "attempts">): Plan | null {
  if (!isSimulated(config, job.email)) return null;
  const domain = simulatorDomain(config);
  const behaviour = behaviourOf(simulatedKind(job.email), job.attempts);
  const policy = { type: "no-policy-found" as const, domain, strings: [] };
  const terms = { kind: "relay" as const, tls: "none" as const };
  return {
    domain,
    // Those that wait stand in nobody's way.
    site: {
      name: behaviour === "slow" ? `slow.${domain}` : domain,
      isp: SIMULATOR,
      connections_max: CONNECTIONS_MAX,
      messages_per_connection: MESSAGES_PER_CONNECTION,
    },
    hops: [{ host: `${behaviour}.${domain}`, address: ADDRESS, terms, policy }],
    fresh_until_ms: Number.POSITIVE_INFINITY,
    via: { port: PORT, credentials: null },
  };
}

/** Greylisting lets the second attempt pass; a complaint comes of mail that arrived (simulator/complaints). */
function behaviourOf(kind: SimulatedKind | null, attempts: number): Behaviour {
  if (kind === null) return "unknown";
  if (kind === "complained") return "delivered";
  return kind === "deferred" && attempts > 0 ? "delivered" : kind;
}

/** Sessions as `open` makes them, but for those to simulated servers. */
export function withSimulator(open: OpenSession, wait: (ms: number) => Promise<void> = sleep): OpenSession {
  return async (options) => {
    if (options.port !== PORT) return open(options);
    return simulatedSession(options.host.slice(0, options.host.indexOf(".")) as Behaviour, wait);
  };
}

function simulatedSession(behaviour: Behaviour, wait: (ms: number) => Promise<void>): MailSession {
  const session = {
    kind: "session" as const,
    capabilities: { eightbitmime: true },
    // As a server of today: mail that requires TLS can be tried out.
    tls: { protocol: "TLSv1.3", cipher: "simulated", authorized: true },
    sent: 0,
    usable: true,
    async send(_envelope: unknown, _parts: unknown, hooks: SendHooks = {}): Promise<SendOutcome> {
      session.sent += 1;
      const outcome = await answer(behaviour, hooks, wait);
      if (outcome.kind === "broken") session.usable = false;
      return outcome;
    },
    async quit() {
      session.usable = false;
    },
    close() {
      session.usable = false;
    },
  };
  return session;
}

async function answer(
  behaviour: Behaviour,
  hooks: SendHooks,
  wait: (ms: number) => Promise<void>,
): Promise<SendOutcome> {
  const reply = REPLIES[behaviour];
  if (reply.code >= 400) return { kind: "refused", stage: "rcpt", reply };
  if (behaviour === "slow") await wait(SLOW_MS);
  if (hooks.beforeData?.() === false) return { kind: "broken", stage: "data", detail: "withheld before the message" };
  if (hooks.beforeEnd?.() === false) return { kind: "broken", stage: "data", detail: "withheld before the final dot" };
  return { kind: "delivered", reply };
}
