// Relays of sender domains: what a customer may set, and what the engine needs to know of them. Not here: whether a fallback
// is needed now (reach.ts), the HTTP of it (relay-endpoints.ts), SMTP itself (mail/smtp).
import { isIP } from "node:net";
import { findDomain, requireDomain } from "../../domains/domains.ts";
import { normalizeDomain } from "../../mail/address.ts";
import type { Tx } from "../../platform/database/db.ts";
import { coalesceByOrg } from "../../platform/fair/coalesce.ts";
import { remember } from "../../platform/fair/remember.ts";
import { insideOf, literalAddressHost, mayConnect } from "../../platform/net/addresses.ts";
import { invalid, notFound } from "../../platform/refusal.ts";
import { SealBroken } from "../../platform/storage/seal.ts";
import type { SealedColumn } from "../../platform/storage/sealed-columns.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./relay-queries.ts";
import { ispOf } from "./route.ts";
import type { Plan, PlannedHop } from "./tls-policy.ts";

export const RELAY_TLS = ["starttls", "implicit", "none"] as const;
export const RELAY_MODES = ["always", "fallback"] as const;

export type RelaySettings = {
  host: string;
  port?: number;
  username?: string | null;
  password?: string | null;
  tls?: (typeof RELAY_TLS)[number];
  mode?: (typeof RELAY_MODES)[number];
};

/** As the API shows it: never the password. */
export type RelayRecord = Pick<
  queries.RelayRow,
  "host" | "port" | "username" | "tls" | "mode" | "created_at" | "updated_at"
> & { has_password: boolean; in_use: boolean };

type Core = Pick<World, "db" | "clock" | "config" | "seal">;

const PORTS = { starttls: 587, implicit: 465, none: 25 } as const;
const USUAL_PORTS = new Set([25, 465, 587]);
const FIRST_FREE_PORT = 1_024;
/** What other processes changed is seen after this long. */
const KNOWN_FOR_MS = 2_000;
const PLAN_FOR_MS = 60_000;
const REMEMBERED_MAX = 100_000;
const HOPS_MAX = 4;
const CONNECTIONS_MAX = 10;
const MESSAGES_PER_CONNECTION = 100;

// --- what customers set -----------------------------------------------------------------------------------------------

/** The domain's relay, or 404. */
export async function getRelay(world: Core, orgId: string, idOrName: string): Promise<RelayRecord> {
  const row = await world.db.asOrg(orgId, async (tx) => {
    const domain = await requireDomain(tx, orgId, idOrName);
    return (await queries.findRelay(tx, orgId, domain.id))[0];
  });
  if (!row) throw notFound("relay");
  return toRecord(world, row);
}

/** Sets the domain's relay as a whole; a login's password may be left out while host, port and user name stay. */
export async function putRelay(
  world: Core,
  orgId: string,
  idOrName: string,
  settings: RelaySettings,
): Promise<RelayRecord> {
  const tls = settings.tls ?? "starttls";
  const host = readHost(world, settings.host);
  const port = readPort(settings.port ?? PORTS[tls]);
  if (tls === "none" && !world.config.testing.allow_loopback) {
    throw invalid("tls", "the 'tls' field must be starttls or implicit: mail and logins never go to a relay in clear");
  }
  const at = new Date(world.clock.now());
  const row = await world.db.asOrg(orgId, async (tx) => {
    const { id: domain_id } = await requireDomain(tx, orgId, idOrName);
    const [before] = await queries.findRelay(tx, orgId, domain_id);
    const isSamePlace = before?.host === host && before.port === port;
    const login = readLogin(world, settings, { domain_id, tls, known: isSamePlace ? before : undefined });
    const mode = settings.mode ?? "always";
    const wanted = { org_id: orgId, domain_id, host, port, tls, mode, ...login, created_at: at, updated_at: at };
    await wakeLater(world, tx, orgId, domain_id);
    return (await queries.storeRelay(tx, orgId, wanted))[0] as queries.RelayRow;
  });
  return toRecord(world, row);
}

/** Takes the relay away; mail waiting for it goes directly from then on. Returns the domain's id, or 404. */
export async function deleteRelay(world: Core, orgId: string, idOrName: string): Promise<string> {
  return world.db.asOrg(orgId, async (tx) => {
    const domain = await findDomain(tx, orgId, idOrName);
    if (!domain) throw notFound("domain");
    if ((await queries.deleteRelay(tx, orgId, domain.id)) === 0) throw notFound("relay");
    await wakeLater(world, tx, orgId, domain.id);
    return domain.id;
  });
}

/**
 * A login that was refused has parked the mail; it is not to wait for that once the relay was set right, only until every
 * process knows of it.
 */
async function wakeLater(world: Core, tx: Tx, orgId: string, domainId: string): Promise<void> {
  await queries.wakeRelayed(tx, orgId, domainId, new Date(world.clock.now() + 2 * KNOWN_FOR_MS));
}

async function toRecord(world: Core, row: queries.RelayRow): Promise<RelayRecord> {
  const { host, port, username, tls, mode, created_at, updated_at } = row;
  const in_use = mode === "always" || (await isClosedEverywhere(world));
  return { host, port, username, has_password: row.password !== null, tls, mode, in_use, created_at, updated_at };
}

async function isClosedEverywhere(world: Pick<World, "db">): Promise<boolean> {
  return (await queries.isClosedEverywhere(world.db))[0]?.closed ?? false;
}

/** A full host name, or an address that is nobody's inside (reliability rule 6; names are judged when resolved). */
function readHost(world: Pick<World, "config">, text: string): string {
  const literal = literalAddressHost(text);
  if (literal !== null) {
    if (mayConnect(literal, insideOf(world.config))) return literal;
    throw invalid("host", "the 'host' field must not be a private, loopback or otherwise internal address");
  }
  const name = normalizeDomain(text.replace(/\.$/, ""));
  if (name?.includes(".")) return name;
  throw invalid("host", "the 'host' field must be a full host name such as smtp.example.eu, or an IP address");
}

/** Low ports of other services are no business of a mail relay. */
function readPort(port: number): number {
  if (USUAL_PORTS.has(port) || port >= FIRST_FREE_PORT) return port;
  throw invalid("port", "the 'port' field must be 25, 465, 587, or 1024 and above");
}

type LoginContext = { domain_id: string; tls: RelayRecord["tls"]; known: queries.RelayRow | undefined };

/** The password is kept only while it would go to the same place as before: it cannot be drawn to another one. */
function readLogin(world: Core, { username, password }: RelaySettings, { domain_id, tls, known }: LoginContext) {
  if (username === undefined || username === null) {
    if (password) throw invalid("username", "the 'username' field is required beside a password");
    return { username: null, password: null };
  }
  if (tls === "none") throw invalid("tls", "the 'tls' field must not be none with a login: it would go in clear");
  refuseControls("username", username);
  if (password) {
    refuseControls("password", password);
    return { username, password: world.seal.seal(Buffer.from(password, "utf8"), sealContext(domain_id)) };
  }
  if (known?.username === username && known.password) return { username, password: known.password };
  throw invalid("password", "the 'password' field is required: another host, port or user name needs it again");
}

function refuseControls(field: string, text: string): void {
  if (/[\x00-\x1f\x7f]/.test(text)) throw invalid(field, `the '${field}' field must not hold control characters`);
}

export const SEALED: readonly SealedColumn[] = [
  {
    ...{ table: "relay", column: "password", key: ["org_id", "domain_id"] },
    context: ({ domain_id }) => sealContext(domain_id!),
  },
];

function sealContext(domainId: string): string {
  return `relay-password:${domainId}`;
}

// --- what the engine knows --------------------------------------------------------------------------------------------

export type Relay = queries.RelayRow;

export type Relays = {
  /** What is known of a sender domain's relay: null for none, undefined when it must be asked for. */
  peek(orgId: string, domainId: string): Relay | null | undefined;
  find(orgId: string, domainId: string): Promise<Relay | null>;
};

/** A look-up with a memory of seconds; many questions share a statement. */
export function relayFinder(world: Pick<World, "db" | "clock">): Relays {
  const known = remember<Relay | null>(world.clock, { for_ms: KNOWN_FOR_MS, names_max: REMEMBERED_MAX });
  const load = coalesceByOrg<Relay>({
    keys_max: 500,
    lanes: 1,
    load: async (asked) => {
      const keys = asked.map(({ org_id, key }) => ({ org_id, domain_id: key }));
      const rows = await queries.findRelays(world.db, keys);
      return rows.map((row) => [row.org_id, row.domain_id, row]);
    },
  });
  return {
    peek: (orgId, domainId) => known.get(`${orgId}/${domainId}`),
    async find(orgId, domainId) {
      const name = `${orgId}/${domainId}`;
      const seen = known.get(name);
      if (seen !== undefined) return seen;
      const relay = (await load(orgId, domainId)) ?? null;
      known.set(name, relay);
      return relay;
    },
  };
}

export type RelayPlanned = { kind: "route"; plan: Plan } | { kind: "unknown"; detail: string };

type PlanWorld = Pick<World, "resolver" | "config" | "seal" | "clock">;

/** How to reach a relay now. Whatever is wrong with it is the customer's to mend: mail waits, it never bounces. */
export function relayPlanner(world: PlanWorld): (relay: Relay) => Promise<RelayPlanned> {
  const known = remember<RelayPlanned>(world.clock, { for_ms: PLAN_FOR_MS, names_max: REMEMBERED_MAX });
  return async (relay) => {
    const name = `relay ${relay.domain_id} ${relay.updated_at.getTime()}`;
    const seen = known.get(name);
    if (seen) return seen;
    const planned = await planRelay(world, relay, name);
    known.set(name, planned);
    return planned;
  };
}

async function planRelay(world: PlanWorld, relay: Relay, name: string): Promise<RelayPlanned> {
  const { host, port, tls } = relay;
  const found = await addressesOf(world, host);
  if (typeof found === "string") return { kind: "unknown", detail: `the relay ${host}: ${found}` };
  const policy = { type: "no-policy-found" as const, domain: host, strings: [] };
  const hops: PlannedHop[] = found.map((address) => ({ host, address, terms: { kind: "relay", tls }, policy }));
  const site = {
    name,
    isp: ispOf(host),
    connections_max: CONNECTIONS_MAX,
    messages_per_connection: MESSAGES_PER_CONNECTION,
  };
  const credentials = credentialsOf(world, relay);
  if (typeof credentials === "string") return { kind: "unknown", detail: `the relay ${host}: ${credentials}` };
  const via = { port, credentials };
  return { kind: "route", plan: { domain: host, site, hops, fresh_until_ms: Number.POSITIVE_INFINITY, via } };
}

/** A text says what is wrong: under another master key nothing sealed can be opened, and the mail is to wait. */
function credentialsOf(world: Pick<World, "seal">, { username, password, domain_id }: Relay) {
  if (username === null || password === null) return null;
  try {
    return { user: username, pass: world.seal.open(password, sealContext(domain_id)).toString("utf8") };
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    return "its password cannot be opened under the present master key; set it again";
  }
}

/** The same for an absent name and a private address: a customer does not learn which names the operator's own network has. */
const UNREACHABLE = "it has no address on the public internet";

/** One forbidden address forbids the name, as everywhere that a stranger names a host. A text says what is wrong. */
async function addressesOf(world: PlanWorld, host: string): Promise<string[] | string> {
  const addresses = isIP(host) ? [host] : await resolve(world, host);
  if (typeof addresses === "string") return addresses;
  if (addresses.every((address) => mayConnect(address, insideOf(world.config)))) return addresses.slice(0, HOPS_MAX);
  return UNREACHABLE;
}

async function resolve(world: PlanWorld, host: string): Promise<string[] | string> {
  const answers = await Promise.all([world.resolver.a(host), world.resolver.aaaa(host)]);
  const addresses = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
  if (addresses.length > 0) return addresses;
  const failed = answers.find((answer) => answer.kind === "failed");
  return failed ? `it could not be looked up (${failed.reason})` : UNREACHABLE;
}
