// All wiring: starts the roles, which mount the features in the order of the mail's way.
import type { SecureContext } from "node:tls";
import { authenticateMask } from "./accounts/accounts.ts";
import { mountAccounts } from "./accounts/routes.ts";
import { aliasFinder } from "./aliases/aliases.ts";
import { mountAliases } from "./aliases/routes.ts";
import { keepOutOfCaches, readOtherKeyHeader, requireKey, WRONG_MASK_KEY } from "./api/auth.ts";
import { refuseNul } from "./api/body/refuse-nul.ts";
import { startForgettingCreates } from "./api/creates/creates.ts";
import { startInternalServer } from "./api/internal.ts";
import { limitRequests } from "./api/rates.ts";
import { createHttpServer } from "./api/server.ts";
import { noteChanges } from "./audit/audit.ts";
import { startAuditWork } from "./audit/background.ts";
import { mountAudit } from "./audit/routes.ts";
import { isElsewhere } from "./cells/elsewhere.ts";
import { ownsNamed } from "./cells/owns.ts";
import { mountCertificates, startCertificates } from "./certificates/certificates.ts";
import type { Role } from "./config.ts";
import { mountDashboard } from "./dashboard/dashboard.ts";
import { mountDkim } from "./dkim/routes.ts";
import { startDmarcWork } from "./dmarc/background.ts";
import { mountDmarc } from "./dmarc/routes.ts";
import { mountHealth } from "./doctor/health-routes.ts";
import { examine } from "./doctor.ts";
import { startDomainChecks } from "./domains/background.ts";
import { mountDomains } from "./domains/routes.ts";
import type { DomainPorts } from "./domains/types.ts";
import type { Api } from "./http/http.ts";
import { startInboundWork } from "./inbound/background.ts";
import { createInbound, type Inbound } from "./inbound/inbound.ts";
import { quarantineOf } from "./inbound/read/emails.ts";
import { mountOperatorMail } from "./inbound/read/operator-routes.ts";
import { type Mx, startMx } from "./inbound/receive/mx.ts";
import { mountInbound } from "./inbound/routes.ts";
import { startPackingReceived } from "./inbound/search/pack.ts";
import { addDestination } from "./masked/addresses/destinations.ts";
import { startMaskedWork } from "./masked/background.ts";
import { mountForwarders } from "./masked/forwarders/forwarders.ts";
import { maskedAddresses, serviceMailer } from "./masked/masked.ts";
import { mountMaskedPages } from "./masked/open-routes.ts";
import { mountMasked } from "./masked/routes.ts";
import { followMoves } from "./moving/follow-moves.ts";
import { startOutboundWork } from "./outbound/background.ts";
import { guardSending } from "./outbound/guard/guard.ts";
import { mountWitness } from "./outbound/guard/witness.ts";
import { mountQueue } from "./outbound/operate/queue-routes.ts";
import { mountRelayed } from "./outbound/operate/relayed-routes.ts";
import { mountSources } from "./outbound/operate/source-routes.ts";
import { laneFinder, MTA_CHANNEL, notifier, startOutbound } from "./outbound/outbound.ts";
import { mountPools } from "./outbound/pools/pool-endpoints.ts";
import { mountRelays } from "./outbound/route/relay-endpoints.ts";
import { startTlsReports } from "./outbound/tls-reports/tls-reports.ts";
import type { Mark } from "./outbound/types.ts";
import { startPeopleWork } from "./people/people.ts";
import { mountPeople } from "./people/routes.ts";
import { within } from "./platform/clock.ts";
import { startDayIndexes } from "./platform/database/day-indexes.ts";
import { startHealing } from "./platform/database/heal-times.ts";
import { startPartitionWork } from "./platform/database/partitions.ts";
import { startAnalyzing } from "./platform/database/young-tables.ts";
import { serverTls } from "./platform/net/server-tls.ts";
import { ownVersion } from "./platform/own-version.ts";
import { type Pressure, watchPressure } from "./platform/process/pressure.ts";
import { guardEventLoop, watchRoles } from "./platform/process/watchdog.ts";
import { followKeyRing } from "./platform/storage/follow-key-ring.ts";
import { createSpool } from "./platform/storage/spool.ts";
import type { World } from "./platform/world.ts";
import {
  allSigningKeys,
  dmarcPorts,
  domainPorts,
  type Engine,
  inboundPorts,
  reportPorts,
  reviewFigures,
  sendingParts,
  settlingPorts,
  warmingPorts,
} from "./ports.ts";
import { mountPrivacy } from "./privacy/routes.ts";
import { startSendingWork } from "./sending/background.ts";
import { mountUnsubscribe } from "./sending/late/unsubscribe-routes.ts";
import { monthReader } from "./sending/prepare/allowances.ts";
import { mountSending } from "./sending/routes.ts";
import { startPacking } from "./sending/search/pack.ts";
import { complainSimulated, windowsOfLeaving } from "./sending/sending.ts";
import { startStatsWork } from "./stats/background.ts";
import { mountStats } from "./stats/routes.ts";
import { type Submission, startSubmission } from "./submission/submission.ts";
import { startSuppressionWork } from "./suppressions/background.ts";
import { mountSuppressions } from "./suppressions/routes.ts";
import { mountTemplates } from "./templates/routes.ts";
import { startWarmingWork } from "./warming/background.ts";
import { mountWarming } from "./warming/routes.ts";
import { startHooks } from "./webhooks/dispatch.ts";
import { mountWebhooks } from "./webhooks/routes.ts";

const HEAVY_WORKER = new URL("./heavy-worker.ts", import.meta.url);
/** How long the roles may take to end. After 60 s the process is ended anyway; the rest is for the database. */
const END_WITHIN_MS = 50_000;

/** Nothing runs yet. */
export function createEngine(world: World): Engine {
  const findLane = laneFinder(world);
  const tellOthers = notifier(world);
  const notify = (): void => {
    engine.outbound?.wake();
    tellOthers();
  };
  const sending = sendingParts(world, { findLane, notify, outbound: () => engine.outbound });
  const engine: Engine = { outbound: null, findLane, notify, sending, spool: createSpool(world), certificates: null };
  return engine;
}

/** A domain that another cell holds is not verified here. */
function besideCells(world: World): DomainPorts {
  return { ...domainPorts(world), isElsewhere: (domain) => isElsewhere(world, domain, { fresh: true }) };
}

/** Mounts every feature's routes, in the order of the flow. */
export function mountFeatures(api: Api, world: World, engine: Engine): void {
  const masked = { ...settlingPorts(world, engine), findAlias: aliasFinder(world) };
  mountAccounts(api, world, {
    usedThisMonth: monthReader(world),
    findDestination: async (account, email) =>
      (await addDestination(world, masked, account, { email, field: "destination" })).destination,
  });
  mountAudit(api, world);
  const ports = besideCells(world);
  mountDomains(api, world, ports);
  mountDkim(api, world, ports);
  mountWebhooks(api, world);
  mountTemplates(api, world);
  mountSuppressions(api, world);
  mountWarming(api, world, warmingPorts(world));
  mountStats(api, world);
  mountRelays(api, world);
  mountPools(api, world);
  mountSending(api, world, engine.sending);
  mountAliases(api, world, { isMasked: maskedAddresses(world) });
  mountDmarc(api, world, dmarcPorts(world));
  mountMasked(api, world, masked);
  engine.inbound ??= ownInbound(api, world, engine);
  mountInbound(api, world, engine.inbound);
  mountPrivacy(api, world, { ...masked, outbound: () => engine.outbound });
}

/** Mounts what is open to people without an API key: each link carries its own proof. */
export function mountOpenRoutes(api: Api, world: World, engine: Engine): void {
  // A scope each: both read forms, in their own way.
  api.register(async (scope) => mountMaskedPages(scope as unknown as Api, world, pagePorts(world, engine)));
  api.register(async (scope) => mountUnsubscribe(scope as unknown as Api, world));
  api.register(async (scope) => mountForPasswordManagers(scope as unknown as Api, world, engine));
  mountWitness(api, world);
  mountCertificates(api, world);
  mountDashboard(api, world, (scope) => {
    mountPeople(scope, { ...world, mailer: serviceMailer(world, engine), reviewFigures: reviewFigures(world) });
    mountQueue(scope, world);
    mountSources(scope, world);
    mountRelayed(scope, world);
    mountHealth(scope, world, () => examine({ try_smtp: null }, () => world.config));
    if (engine.inbound) mountOperatorMail(scope, world, engine.inbound);
  });
}

function pagePorts(world: World, engine: Engine) {
  return { ...settlingPorts(world, engine), quarantine: quarantineOf(world) };
}

/** What password managers ask for: other services' operations, by mask keys alone. */
function mountForPasswordManagers(scope: Api, world: World, { findLane, notify }: Engine): void {
  scope.addHook("onRequest", readOtherKeyHeader);
  scope.addHook("onRequest", keepOutOfCaches);
  scope.addHook("onRequest", requireKey(world, authenticateMask(world), { wrong: WRONG_MASK_KEY }));
  scope.addHook("onRequest", limitRequests(world));
  scope.addHook("preValidation", refuseNul);
  const note = noteChanges(world);
  scope.addHook("preSerialization", note);
  // An answer without a body is not serialized.
  scope.addHook("onSend", async (request, reply, body) =>
    reply.statusCode === 204 ? note(request, reply, body) : body,
  );
  mountForwarders(scope, world, { findLane, notify, findAlias: aliasFinder(world) });
}

/** The API accepts mail too (simulate) and processes it again (replay, release), also where no MX runs. */
function ownInbound(api: Api, world: World, engine: Engine): Inbound {
  const inbound = createInbound(world, inboundPorts(world, engine), { claims: false });
  api.addHook("onClose", () => inbound.stop());
  return inbound;
}

/** Starts the MX with its engine. `close` takes nothing new; `stop` then finishes what was taken as well. */
export async function startReceiving(
  world: World,
  engine: Engine,
  pressure: Shortages = NO_SHORTAGE,
): Promise<Mx & { inbound: Inbound; close(): Promise<void> }> {
  const ports = { ...inboundPorts(world, engine), isElsewhere: (domain: string) => isElsewhere(world, domain) };
  const inbound = createInbound(world, ports, { claims: true });
  const mx = await startMx(world, { ...inbound, ...intake(world, engine, pressure) }).catch(async (error) => {
    await inbound.stop();
    throw error;
  });
  return {
    ...mx,
    inbound,
    close: mx.stop,
    async stop() {
      await mx.stop();
      await inbound.stop();
    },
  };
}

/** Starts SMTP submission over the sending pipeline. */
export function startSubmitting(world: World, engine: Engine, pressure: Shortages = NO_SHORTAGE): Promise<Submission> {
  const { sending } = engine.sending;
  return startSubmission(world, { sending, ...intake(world, engine, pressure) });
}

type Shortages = Pick<Pressure, "shortage" | "room">;

const NO_SHORTAGE: Shortages = { shortage: () => null, room: () => ({ bytes: Number.POSITIVE_INFINITY, looks: 0 }) };

/** What both SMTP servers take mail in with; while the process is short of something mail is answered 452. */
function intake(world: World, engine: Engine, pressure: Shortages) {
  const { spool } = engine;
  spool.limitBy(pressure.room);
  return { spool, hasRoom: () => pressure.shortage() === null, tls: tlsOf(world, engine) };
}

/** The certificate that every listener shows, as it is at each handshake. */
function tlsOf(world: World, engine: Engine): () => SecureContext {
  return serverTls(world, () => engine.certificates?.issued() ?? null);
}

export type Running = { address: string | null; internal: string; stop(): Promise<void> };

/** The delivery engine, from now on the one that accepted mail is handed to. */
async function startSendingOut(world: World, roles: readonly Role[], { engine, mark }: { engine: Engine; mark: Mark }) {
  const leaving = windowsOfLeaving(world, engine.sending);
  const outbound = await startOutbound(world, {
    signingKeys: allSigningKeys(world),
    roles: [...roles],
    findLane: engine.findLane,
    leaving,
    complain: complainSimulated(world),
    mark,
  });
  engine.outbound = outbound;
  const listener = await world.db.listen([MTA_CHANNEL], outbound.wake);
  // The engine first: it begins nothing more from this very moment, and takes no more mail that is accepted.
  return async (): Promise<void> => void (await Promise.all([outbound.stop(), listener.close()]));
}

type Part = { name: string; stop(): Promise<unknown> };

/** What the `clock` role does; order does not matter, each part works on rows of its own. */
function startClockWork(world: World, engine: Engine): Part[] {
  const works = {
    partitions: startPartitionWork(world),
    dayIndexes: startDayIndexes(world),
    youngTables: startAnalyzing(world),
    times: startHealing(world),
    sending: startSendingWork(world),
    searches: startPacking(world),
    domains: startDomainChecks(world, besideCells(world)),
    suppressions: startSuppressionWork(world),
    dmarc: startDmarcWork(world),
    outbound: startOutboundWork(world),
    tlsReports: startTlsReports(world, reportPorts(world, engine)),
    inbound: startInboundWork(world),
    receivedSearches: startPackingReceived(world),
    masked: startMaskedWork(world, settlingPorts(world, engine)),
    warming: startWarmingWork(world, warmingPorts(world)),
    stats: startStatsWork(world),
    audit: startAuditWork(world),
    people: startPeopleWork(world),
    creates: startForgettingCreates(world),
  };
  return Object.entries(works).map(([name, { stop }]) => ({ name: `clock: ${name}`, stop }));
}

/**
 * What takes mail and requests in, and behind it what works on received mail, which ends when nothing comes any more. The
 * part is among `parts` from the beginning, so that one that cannot be opened leaves none of the others open.
 */
async function startDoors(world: World, roles: readonly Role[], engine: Engine, { parts, pressure }: Beginning) {
  const doors: Part["stop"][] = [];
  let receiving: Awaited<ReturnType<typeof startReceiving>> | null = null;
  const stop = async (): Promise<void> => {
    await Promise.all(doors.map((close) => close()));
    await receiving?.inbound.stop();
  };
  parts.push({ name: "doors", stop });
  if (roles.includes("mx")) {
    receiving = await startReceiving(world, engine, pressure);
    engine.inbound = receiving.inbound;
    doors.push(receiving.close);
  }
  if (roles.includes("submission")) doors.push((await startSubmitting(world, engine, pressure)).stop);
  if (!roles.includes("api")) return null;
  const server = await createHttpServer(
    world,
    (api) => mountFeatures(api, world, engine),
    (api) => mountOpenRoutes(api, world, engine),
    { pressure, heavy_worker: HEAVY_WORKER, ...(world.config.https && { tls: tlsOf(world, engine) }) },
  );
  doors.push(server.stop);
  return await server.listen();
}

type Beginning = { parts: Part[]; pressure: Pressure };

/** Starts the roles of this process; `stop` ends all of them at once, within 50 s, and rejects when one did not end. */
export async function startRoles(world: World, roles: readonly Role[]): Promise<Running> {
  const internal = await startInternalServer(world, { sends: roles.includes("mta"), owns: ownsNamed(world) });
  noteBuild(world, roles);
  const pressure = await watchPressure(world);
  const [guard, roleWatch] = [guardEventLoop(world), watchRoles(world)];
  const parts: Part[] = [];
  const stop = async (): Promise<void> => {
    internal.unready();
    const trouble = await endTogether(parts);
    pressure.stop();
    roleWatch.stop();
    await guard.stop();
    await internal.stop();
    if (trouble) throw trouble;
  };
  try {
    const address = await startParts(world, roles, { parts, pressure });
    internal.ready();
    return { address, internal: internal.address, stop };
  } catch (error) {
    await stop().catch((err) => world.log.error({ err }, "what had been started did not end in good order"));
    throw error;
  }
}

/** For boards and alerts: which versions run, and as what. */
function noteBuild({ metrics }: Pick<World, "metrics">, roles: readonly Role[]): void {
  const labels = { version: ownVersion(), node: process.versions.node, roles: roles.join(",") };
  metrics.gauge("postern_build_info", "1; its labels say what runs", Object.keys(labels)).set(labels, 1);
}

/** Answers where the API is, if it is here. What was started is in `parts` even when the rest cannot be. */
async function startParts(world: World, roles: readonly Role[], beginning: Beginning): Promise<string | null> {
  const { parts } = beginning;
  const keyRing = await followKeyRing(world);
  parts.push({ name: "key ring", stop: keyRing.stop });
  const engine = createEngine(world);
  const certificates = await startCertificates(world, roles);
  engine.certificates = certificates;
  if (certificates) parts.push({ name: "certificates", stop: certificates.stop });
  if (roles.includes("mta")) {
    const { stop } = await guardSending(world, (mark) => startSendingOut(world, roles, { engine, mark }));
    parts.push({ name: "mta", stop });
  }
  const isWaiting = (orgId: string): boolean => engine.outbound?.isWaiting(orgId) ?? true;
  parts.push({ name: "moves", stop: (await followMoves(world, keyRing.process_id, isWaiting)).stop });
  const address = await startDoors(world, roles, engine, beginning);
  if (roles.includes("hooks")) parts.push({ name: "hooks", stop: (await startHooks(world)).stop });
  if (roles.includes("clock")) parts.push(...startClockWork(world, engine));
  return address;
}

/**
 * Ends all parts at once: none waits for another's clients, and what one leaves behind is a row that other processes take
 * up. Answers what went wrong; a part that has not ended in time is left as a kill would leave it.
 */
async function endTogether(parts: Part[]): Promise<Error | null> {
  const left = new Set(parts.map(({ name }) => name));
  const errors: unknown[] = [];
  const ended = parts.map(({ name, stop }) =>
    stop().then(
      () => left.delete(name),
      (error) => errors.push(error),
    ),
  );
  await within(Promise.all(ended), END_WITHIN_MS, null);
  if (left.size === 0) return null;
  return new AggregateError(errors, `these did not end in good order: ${[...left].join(", ")}`);
}
