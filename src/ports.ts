// Who lends what to whom: a feature imports only features to its left, and gets from here, as functions, what it needs of those
// to its right.
import type { SecureContext } from "node:tls";
import { hasAliases } from "./aliases/aliases.ts";
import { refusalBody, shapeRefusal } from "./api/errors.ts";
import { dkimKeys, signingKeys } from "./dkim/dkim.ts";
import type { DmarcPorts } from "./dmarc/types.ts";
import { findHolder, findReceiver, findSender, listDomains } from "./domains/domains.ts";
import type { DomainPorts } from "./domains/types.ts";
import { keepIfLarge } from "./inbound/blobs/blob-references.ts";
import { forgetBlobs, forgetReceived } from "./inbound/blobs/forget.ts";
import type { Inbound, InboundPorts } from "./inbound/inbound.ts";
import { describeHeld } from "./inbound/process/findings.ts";
import { threadFinder } from "./inbound/process/threads.ts";
import { deferUnproven, reportDecider, reportHandler } from "./inbound/returned/report-address.ts";
import { rulesStep } from "./inbound/rules/rules-step.ts";
import { createSpamFilter } from "./inbound/spam/spam-step.ts";
import type { Handler, Kind, Mail, SpamReport, SpamStep } from "./inbound/types.ts";
import {
  aliasMaker,
  type CarryPorts,
  forwardHandler,
  hasMaskedAliases,
  maskedCheck,
  maskedDecider,
  maskedReturnPath,
  patternDecider,
  replyHandler,
  serviceMailer,
  type TracePorts,
  withActivity,
  withMaskedKey,
} from "./masked/masked.ts";
import {
  exitChooser,
  type FindLane,
  hasQueuedMail,
  hastenWaiting,
  type Outbound,
  poolPorts,
} from "./outbound/outbound.ts";
import { findSources } from "./outbound/pools/sources.ts";
import type { ReportPorts } from "./outbound/tls-reports/tls-reports.ts";
import type { ReviewFigures } from "./people/types.ts";
import { LAST_ID } from "./platform/database/page.ts";
import type { Spool } from "./platform/storage/spool.ts";
import type { World } from "./platform/world.ts";
import { listEmails } from "./sending/emails/emails.ts";
import { forgetWindows, usedOf } from "./sending/prepare/allowances.ts";
import type { SendingRouteDeps } from "./sending/routes.ts";
import { createSending } from "./sending/sending.ts";
import { figuresBetween, suppressedCounter } from "./stats/stats.ts";
import { findSuppressed } from "./suppressions/suppressions.ts";
import { renderForSend } from "./templates/templates.ts";
import type { WarmingPorts } from "./warming/types.ts";
import { beginWarmed, startOnVerified, warmingAllowances, warmingOf } from "./warming/warming.ts";
import { findWebhooks } from "./webhooks/webhooks.ts";

/**
 * What there is once in a process, for all its roles. The engines are there once their roles run here: delivery with `mta`,
 * receiving with `mx`.
 */
export type Engine = {
  outbound: Outbound | null;
  inbound?: Inbound;
  findLane: FindLane;
  /** Says that mail was queued: to the engine here, and to those of other processes. */
  notify(): void;
  sending: SendingRouteDeps;
  spool: Spool;
  /** The certificate that an ACME server gave; null: none is asked for (POSTERN_ACME). */
  certificates: { issued(): SecureContext | null } | null;
};

/** The keys that a domain's mail is signed with: an organization's own, or the service's. */
export function allSigningKeys(world: World): ReturnType<typeof withMaskedKey> {
  return withMaskedKey(world, signingKeys(world));
}

type Delivering = Pick<Engine, "findLane" | "notify"> & { outbound(): Outbound | null };

/** The sending pipeline with what it borrows of other features. */
export function sendingParts(world: World, delivering: Delivering): SendingRouteDeps {
  const deps = {
    findSender: findSender(world),
    render: renderForSend(world),
    findSuppressed: findSuppressed(world),
    countSuppressed: suppressedCounter(world),
    warmingAllowances: warmingAllowances(world),
    chooseExit: exitChooser(world),
    keepIfLarge: keepSent(world),
    ...delivering,
  };
  return { ...deps, sending: createSending(world, deps), shapeRefusal, refusalBody };
}

/** Blobs of sent mail are kept track of beside those of received mail, since they may be the same. */
function keepSent(world: World) {
  return ({ org_id, id }: { org_id: string; id: string }, mime: Buffer) =>
    keepIfLarge(world, { org_id, owner_id: id, sent_state: "accepting" }, mime);
}

/** What receiving borrows of other features; features to its right plug in here. */
export function inboundPorts(world: World, engine: Engine): InboundPorts {
  const spam = createSpamFilter(world);
  const forward = forwardHandler(world, carryPorts(world), maskedJudging(world, spam.step));
  return {
    findLane: engine.findLane,
    outbound: () => engine.outbound,
    notifyOutbound: engine.notify,
    first: maskedFirst(world, engine, forward),
    exact: [maskedDecider(world, { findReceiver: findReceiver(world) })],
    wide: patternDecider(world),
    own: [reportDecider(world)],
    checks: [
      ...[deferUnproven(), maskedCheck(world), withActivity(world, spam.check)],
      aliasMaker(world, settlingPorts(world, engine)),
    ],
    spam: spam.step,
    findHolder: (domain) => findHolder(world, domain),
    rules: rulesStep(world),
    handlers: new Map<Kind, Handler>([
      ["report", reportHandler(world)],
      ["masked", forward],
      ["reverse", replyHandler(world, carryPorts(world), spam.step)],
    ]),
  };
}

/** Mail of masked addresses that waits in quarantine is shown like any other. */
function maskedJudging(world: World, spam: SpamStep) {
  const findThread = threadFinder(world);
  return { spam, describe: (mail: Mail, report: SpamReport) => describeHeld(world, findThread, mail, report) };
}

/** What masked addresses need to send on what they rewrote. */
function carryPorts(world: World): CarryPorts {
  return {
    findSender: findSender(world),
    keepIfLarge: (owner, bytes) => keepIfLarge(world, owner, bytes),
  };
}

/** What masked addresses need to take bounces and to forget what is over. */
export function settlingPorts(world: World, engine: Engine): TracePorts {
  return {
    ...carryPorts(world),
    findLane: engine.findLane,
    notify: engine.notify,
    forgetReceived: (mails) => forgetReceived(world, mails),
    forgetBlobs: (orgId, ownerId) => forgetBlobs(world, orgId, ownerId),
  };
}

/** Bounces of what left through masked addresses do not count as a customer's bounces. */
function maskedFirst(world: World, engine: Engine, forward: Handler): NonNullable<InboundPorts["first"]> {
  const take = maskedReturnPath(world, settlingPorts(world, engine), forward);
  return async (mail) => ("message_id" in mail.route ? take(mail, mail.route.message_id) : null);
}

/** What the domains feature needs of features to its right. */
export function domainPorts(world: World): DomainPorts {
  return {
    dkim: dkimKeys(world),
    unknownWebhooks: async (tx, orgId, ids) => {
      const known = new Set((await findWebhooks(tx, orgId, ids)).map((webhook) => webhook.id));
      return ids.filter((id) => !known.has(id));
    },
    hasQueuedMail,
    hasAliases: async (tx, orgId, id) => (await hasAliases(tx, orgId, id)) || hasMaskedAliases(tx, orgId, id),
    onSendingVerified: startOnVerified(world),
    beginWarmed: beginWarmed(world),
    warmingOf: warmingOf(world),
    hastenWaiting: (orgId, domainId) => hastenWaiting(world, orgId, domainId),
    ...poolPorts,
  };
}

/** What DMARC needs of features to its left: the addresses mail leaves from. */
export function dmarcPorts(world: World): DmarcPorts {
  return { ourAddresses: async () => [...(await findSources(world)).values()].flatMap(({ ip }) => ip ?? []) };
}

/** What reports on TLS need of features to their right: mail of the service's own domain. */
export function reportPorts(world: World, engine: Engine): ReportPorts {
  const { isReady, sendMade } = serviceMailer(world, engine);
  return { isReady, queue: sendMade };
}

/** What warming needs of features to its right: the figures it judges by, and the windows that sending counts in. */
export function warmingPorts(world: World): WarmingPorts {
  return {
    figures: figuresBetween,
    used: usedOf,
    forgetWindows: (before) => forgetWindows(world, before),
    hastenWaiting: (orgId, domainId) => hastenWaiting(world, orgId, domainId),
  };
}

const REVIEWED_DOMAINS = 20;

/** For operators who review an organization: what it has so far. */
export function reviewFigures(world: World) {
  const first = { limit: 1, offset: 0, below: LAST_ID };
  return async (orgId: string): Promise<ReviewFigures> => {
    const [tests, { domains }] = await Promise.all([
      listEmails(world, orgId, { ...first, environment: "test" }),
      listDomains(world, orgId, { ...first, limit: REVIEWED_DOMAINS }),
    ]);
    return { test_mails: tests.total, domains: domains.map(({ domain, type, status }) => ({ domain, type, status })) };
  };
}
