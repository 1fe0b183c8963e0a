// The world the engine sends into: names that resolve or do not, servers that are slow, dead, choosy, that break off and
// lose their answers. A server is one destination domain's. What arrived is kept for the verdict.
import type { ConnectFailure, SessionOptions } from "../../src/mail/smtp/session.ts";
import type { Envelope, SendHooks, SendOutcome } from "../../src/mail/smtp/transaction.ts";
import type { MailSession, OpenSession } from "../../src/outbound/outside.ts";
import type { Answer, Resolver } from "../../src/platform/dns/resolver.ts";
import type { Life, Universe } from "./universe.ts";

/** Times are of the wall. */
export type Destination = {
  domain: string;
  /** Milliseconds that each step of a conversation takes, at most. */
  slowness_ms: number;
  /** Nothing answers until then. */
  dead_until_ms: number;
  /** 451 until then. */
  greylists_until_ms: number;
  /** 421 at the door until then. */
  busy_until_ms: number;
  dns: "fine" | "servfail" | "nxdomain";
  dns_until_ms: number;
  /** And no longer than until then by the monotonic clock: a clock that is set back makes no domain absent for longer. */
  dns_monotonic_until_ms: number;
  /** It does not get over its trouble before its mail is out of time. */
  is_hopeless: boolean;
  /** What is said to RCPT when all is well. */
  says: "yes" | "no" | "later";
  /** Chances that the connection breaks before the final dot, and that it is lost after it. */
  breaks: number;
  loses: number;
};

export type Arrival = { email: string; at_ms: number };
/** A message began to be sent. */
export type Start = { email: string; at_ms: number; monotonic_ms: number };

export type MailNetwork = {
  destinations: Map<string, Destination>;
  arrivals: Arrival[];
  starts: Start[];
  resolver(life: Life): Resolver;
  open(life: Life): OpenSession;
};

/** `hides`: sessions that do not tell of lost answers, to see that the simulation notices. */
export function createMailNetwork(universe: Universe, destinations: Destination[], hides: boolean): MailNetwork {
  const network = {
    destinations: new Map(destinations.map((destination) => [destination.domain, destination])),
    arrivals: [] as Arrival[],
    starts: [] as Start[],
  };
  const wait = waiter(universe);
  return {
    ...network,
    resolver: (life) => createResolver(universe, network.destinations, (ms) => wait(life, ms)),
    open: (life) => (options) => openSession({ universe, network, life, hides, wait: (ms) => wait(life, ms) }, options),
  };
}

function waiter(universe: Universe) {
  return (life: Life, ms: number): Promise<void> => {
    life.calls += 1;
    return new Promise((resolve) =>
      universe.after(ms, life, () => {
        life.calls -= 1;
        resolve();
      }),
    );
  };
}

type Wait = (ms: number) => Promise<void>;

// --- names ------------------------------------------------------------------------------------------------------------

function createResolver(universe: Universe, destinations: Map<string, Destination>, wait: Wait): Resolver {
  const stateOf = (name: string): Destination["dns"] => {
    const domain = destinations.get(name.replace(/^(mx|_mta-sts)\./, ""));
    if (!domain || universe.monotonic() >= domain.dns_monotonic_until_ms) return "fine";
    return universe.wall() < domain.dns_until_ms ? domain.dns : "fine";
  };
  const look = async <T>(name: string, found: () => T[]): Promise<Answer<T>> => {
    const state = stateOf(name);
    await wait(state === "servfail" ? 4_000 * universe.chance.float() : 5 + 20 * universe.chance.float());
    if (state === "servfail") return { kind: "failed", reason: "servfail" };
    if (state === "nxdomain") return { kind: "absent", reason: "nxdomain" };
    const records = found();
    if (records.length === 0) return { kind: "absent", reason: "nodata" };
    return { kind: "found", records, ttl_s: 60, authenticated: false };
  };
  return {
    mx: (name) => look(name, () => [{ exchange: `mx.${name}`, preference: 10 }]),
    a: (name) => look(name, () => ["127.0.0.1"]),
    aaaa: (name) => look(name, () => []),
    txt: (name) => look(name, () => []),
    cname: (name) => look(name, () => []),
    ptr: (name) => look(name, () => []),
    tlsa: (name) => look(name, () => []),
  };
}

// --- servers ----------------------------------------------------------------------------------------------------------

type Side = {
  universe: Universe;
  network: Pick<MailNetwork, "destinations" | "arrivals" | "starts">;
  life: Life;
  hides: boolean;
  wait: Wait;
};

const CONNECT_TIMEOUT_MS = 30_000;

async function openSession(side: Side, { host }: SessionOptions): Promise<MailSession | ConnectFailure> {
  const { universe, network, wait } = side;
  const server = network.destinations.get(host.replace(/^mx\./, "")) as Destination;
  if (universe.wall() < server.dead_until_ms) {
    const isSilent = universe.chance.float() < 0.1;
    await wait(isSilent ? CONNECT_TIMEOUT_MS : 20);
    return failure("connect", isSilent ? "timeout" : "network");
  }
  await wait(thinking(universe, server));
  if (universe.wall() < server.busy_until_ms) {
    return { ...failure("banner", "refused"), reply: { code: 421, enhanced: null, text: "too many connections" } };
  }
  return createSession(side, server);
}

function failure(stage: ConnectFailure["stage"], cause: ConnectFailure["cause"]): ConnectFailure {
  return { kind: "failed", stage, cause, reply: null, detail: `${cause} at ${stage}`, tls_failed: false };
}

function thinking({ chance }: Universe, { slowness_ms }: Destination): number {
  return 5 + chance.float() * slowness_ms;
}

function createSession(side: Side, server: Destination): MailSession {
  let sent = 0;
  let usable = true;
  return {
    kind: "session",
    tls: null,
    capabilities: { eightbitmime: true },
    get sent() {
      return sent;
    },
    get usable() {
      return usable;
    },
    quit: async () => {
      usable = false;
    },
    close() {
      usable = false;
    },
    async send(envelope, _parts, hooks = {}) {
      usable = false;
      const outcome = await converse(side, server, { envelope, hooks });
      sent += 1;
      usable = outcome.kind === "delivered" || outcome.kind === "refused";
      return outcome;
    },
  };
}

const REPLIES = {
  no: { code: 550, enhanced: "5.1.1", text: "no such user here" },
  later: { code: 452, enhanced: "4.2.2", text: "mailbox full" },
  greylisted: { code: 451, enhanced: "4.7.1", text: "greylisted, please try again later" },
  accepted: { code: 250, enhanced: "2.0.0", text: "queued" },
};

type Message = { envelope: Envelope; hooks: SendHooks };

async function converse(side: Side, server: Destination, { envelope, hooks }: Message): Promise<SendOutcome> {
  const { universe, network, wait } = side;
  const now = { at_ms: universe.wall(), monotonic_ms: universe.monotonic() };
  network.starts.push({ email: envelope.to, ...now });
  const broken: SendOutcome = { kind: "broken", stage: "data", detail: "the connection was lost" };
  await wait(thinking(universe, server));
  if (universe.chance.float() < server.breaks || universe.wall() < server.dead_until_ms) return broken;
  if (universe.wall() < server.greylists_until_ms) return { kind: "refused", stage: "rcpt", reply: REPLIES.greylisted };
  if (server.says !== "yes") return { kind: "refused", stage: "rcpt", reply: REPLIES[server.says] };
  if (hooks.beforeData && !hooks.beforeData()) return broken;
  await wait(thinking(universe, server));
  if (hooks.beforeEnd && !hooks.beforeEnd()) return broken;
  return end(side, server, envelope);
}

/** The dot is on its way: from here on only the server knows what happens, whatever becomes of the sender. */
async function end(
  { universe, network, wait, hides }: Side,
  server: Destination,
  envelope: Envelope,
): Promise<SendOutcome> {
  const isLost = universe.chance.float() < server.loses;
  const isTaken = !isLost || universe.chance.float() < 0.5;
  const ms = thinking(universe, server);
  if (isTaken) {
    universe.plan(ms / 2, () => network.arrivals.push({ email: envelope.to, at_ms: universe.wall() }));
  }
  await wait(ms);
  if (isLost && hides) return { kind: "refused", stage: "final", reply: REPLIES.later };
  return isLost ? { kind: "ambiguous", detail: "connection reset" } : { kind: "delivered", reply: REPLIES.accepted };
}
