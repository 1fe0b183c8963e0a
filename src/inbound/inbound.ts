// Receiving, from the decision at RCPT to the webhook. Face of the feature. One engine a process: it accepts (MX, simulate)
// and processes; any number of processes share a database.
//
// Where other features plug in (app.ts passes them): `exact` and `own` deciders at RCPT, `checks` of the whole message in
// session, a `spam` step and a `rules` step for customers' mail, and `handlers` for the kinds of routes that their
// deciders accept.

import { planFinder, showsAuthResults } from "../accounts/accounts.ts";
import { aliasFinder } from "../aliases/aliases.ts";
import { findReceiver, findSender, hasAnyDomain } from "../domains/domains.ts";
import { anyMaskedAlias } from "../masked/masked.ts";
import type { FindLane, Outbound } from "../outbound/outbound.ts";
import { createParsePool } from "../parsing/parse-pool.ts";
import type { World } from "../platform/world.ts";
import { customerHandler } from "./process/customer.ts";
import { createExamination, type Examinable, type Examined } from "./process/examination.ts";
import { describeHeld, keptVerdicts } from "./process/findings.ts";
import { createFinisher } from "./process/finish.ts";
import { KEPT, putAside } from "./process/outcome.ts";
import { createProcessor, type Processor, type ProcessorParts } from "./process/processor.ts";
import { bytesLoader } from "./process/raw.ts";
import { threadFinder } from "./process/threads.ts";
import type * as queries from "./queries.ts";
import { type Acceptor, createAcceptor } from "./receive/accept.ts";
import { refuseLargeHeads, refuseLoops } from "./receive/checks.ts";
import { createRcptPolicy, ownReceiver } from "./receive/rcpt.ts";
import type { ComplaintPorts } from "./returned/find-complained.ts";
import { relayBounce } from "./returned/relay-bounce.ts";
import { returnedMailHandler } from "./returned/returned-mail.ts";
import type {
  AcceptCheck,
  Handler,
  Incoming,
  Kind,
  Mail,
  Offered,
  Outcome,
  RcptDecider,
  RcptDecision,
  RcptQuestion,
  RulesStep,
  SpamStep,
  WideDecider,
} from "./types.ts";

export { countOf as countReceivedOf, countRules as countRulesNaming } from "./read/address-queries.ts";
export { eraseReceivedOf, listReceivedOf } from "./read/of-address.ts";
export { describeOperatorMail, newestOperatorMail, readOperatorMail } from "./read/operator-mail.ts";
export { InboundEmailRow } from "./read/shape.ts";

/** What other features lend to receiving, wired in app.ts. */
export type InboundPorts = {
  findLane: FindLane;
  outbound(): Outbound | null;
  notifyOutbound(): void;
  exact: readonly RcptDecider[];
  wide?: WideDecider;
  own: readonly RcptDecider[];
  /** True if another Postern behind the same door holds the domain. Null where that cannot be known now. */
  isElsewhere?(domain: string): Promise<boolean | null>;
  checks: readonly AcceptCheck[];
  spam: SpamStep;
  rules: RulesStep;
  handlers: ReadonlyMap<Kind, Handler>;
  /** Asked before the handler of a mail's kind; null: it is for that. */
  first?(mail: Mail): Promise<Outcome | null>;
  /** The organization that holds a domain. */
  findHolder: ComplaintPorts["findHolder"];
};

export type Inbound = {
  decide(question: RcptQuestion): Promise<RcptDecision>;
  /** The same decision for one organization's own domains, verified or not (simulate). */
  deciderOf(orgId: string): (question: RcptQuestion) => Promise<RcptDecision>;
  /** Looks at the whole message, and stores it durably if nothing speaks against it. Rejects when it could not be stored. */
  take(incoming: Incoming): Promise<Offered>;
  processor: Processor;
  /** A stored mail as its handler gets it. */
  toMail(row: queries.MailRow): Mail;
  stop(): Promise<void>;
};

const PARSERS = 2;
const PARSE_PROCESSOR_MS = 10_000;
const PARSE_MEMORY_MIB = 256;

/** Mail for the operator is not judged: what is refused or hidden there is what somebody wanted to complain of. */
const NOT_JUDGED = { score: null, verdict: null, symbols: [] };

export type InboundOptions = Pick<ProcessorParts, "claims" | "quick_ms">;

/** The engine of this process. `claims`: it also works on mail that other processes left behind (role mx). */
export function createInbound(world: World, ports: InboundPorts, options: InboundOptions): Inbound {
  const parser = createParsePool({ size: PARSERS, processor_ms: PARSE_PROCESSOR_MS, memory_mib: PARSE_MEMORY_MIB });
  const examine = (about: Examinable, source: Buffer | (() => Promise<Buffer>)) =>
    createExamination(world, parser, about, source);
  const loadBytes = bytesLoader(world);
  const toMail = (row: queries.MailRow): Mail =>
    fromRow(row, (about) => examine(about, () => loadBytes(row.org_id, row.raw_id)));
  const handlers = allHandlers(world, ports);
  const processor = createProcessor(world, {
    handle: async (mail) => (await ports.first?.(mail)) ?? (await handlers.get(mail.route.kind)?.(mail)) ?? KEPT,
    poison: putAside,
    toMail,
    finisher: createFinisher(world, ports),
    ...options,
  });
  const { exact, own } = ports;
  const asked = { exact, own, ...(ports.wide ? { wide: ports.wide } : {}) };
  const elsewhere = ports.isElsewhere ? { isElsewhere: ports.isElsewhere } : {};
  const findAlias = aliasFinder(world);
  return {
    decide: createRcptPolicy(world, {
      ...{ findReceiver: findReceiver(world), findAlias, ...asked, hasDomains: receivingFinder(world) },
      ...elsewhere,
    }),
    deciderOf: (orgId) =>
      createRcptPolicy(world, { findReceiver: ownReceiver(world, orgId), findAlias, ...asked, environment: "test" }),
    take: taker({
      checks: [refuseLargeHeads, refuseLoops(world), ...ports.checks],
      // Not the incoming mail itself: an examination outlives the bytes of a large one.
      examine: ({ origin, envelope, received_at, bytes }) =>
        examine({ origin, envelope, received_at, verdicts: null }, bytes),
      acceptor: createAcceptor(world, processor, loadBytes),
    }),
    processor,
    toMail,
    async stop() {
      await processor.stop();
      await parser.stop();
    },
  };
}

type TakerParts = { checks: readonly AcceptCheck[]; examine(incoming: Incoming): Examined; acceptor: Acceptor };

function taker({ checks, examine, acceptor }: TakerParts): Inbound["take"] {
  return async (incoming) => {
    const examination = examine(incoming);
    for (const check of checks) {
      const refused = await check(incoming, examination);
      if (refused) return { kind: "refused", refused };
    }
    return { kind: "taken", ...(await acceptor.accept(incoming, examination)) };
  };
}

function allHandlers(world: World, ports: InboundPorts): Map<Kind, Handler> {
  const plans = planFinder(world);
  const findForwarder = findSender(world);
  const returned = returnedMailHandler(world, ports);
  const findThread = threadFinder(world);
  const customer = customerHandler(world, {
    spam: ports.spam,
    rules: ports.rules,
    findThread,
    showsAuth: async (orgId) => showsAuthResults((await plans(orgId)) ?? "free"),
    findSender: findForwarder,
  });
  const describe = (mail: Mail) => describeHeld(world, findThread, mail, NOT_JUDGED);
  return new Map<Kind, Handler>([
    ["alias", customer],
    ["catch_all", customer],
    ["return_path", returned],
    ["feedback", returned],
    ["operator", async (mail) => ({ ...(await returned(mail)), found: await describe(mail) })],
    ["srs", relayBounce(world, { findSender: findForwarder })],
    ...ports.handlers,
  ]);
}

function fromRow(row: queries.MailRow, examine: (about: Examinable) => Examined): Mail {
  const { remote_ip, remote_port, helo, protocol, tls } = row;
  const origin = { remote_ip, remote_port, helo, protocol, tls };
  const envelope = { from: row.envelope_from, smtputf8: row.smtputf8 };
  return {
    org_id: row.org_id,
    id: row.id,
    raw_id: row.raw_id,
    environment: row.environment,
    route: row.route,
    recipient: row.recipient,
    origin,
    envelope,
    received_at: row.received_at,
    size: row.size,
    released: row.released_at !== null,
    replayed: row.processed_at !== null,
    alone: false, // not known any more
    rule_ids: row.rule_ids,
    examination: examine({ origin, envelope, received_at: row.received_at, verdicts: keptVerdicts(row) }),
  };
}

/** True if this installation can receive mail for anybody at all. Once it could, the database is not asked again. */
function receivingFinder({ db }: Pick<World, "db">): () => Promise<boolean> {
  let isFound = false;
  return async () => {
    isFound ||= (await hasAnyDomain(db)) || (await anyMaskedAlias(db));
    return isFound;
  };
}
