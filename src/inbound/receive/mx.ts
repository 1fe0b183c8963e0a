// The MX: the SMTP server on POSTERN_MX with our decisions. RCPT is decided in session, a message is looked at and stored
// durably before its 250, and whatever is our own fault is answered so that the client keeps the mail and tries again.
import type { SecureContext } from "node:tls";
import { type Reply, reply } from "../../mail/smtp-server/reply.ts";
import { type SmtpServer, startSmtpServer } from "../../mail/smtp-server/server.ts";
import type { Client, RcptAnswer, Receiver, Transaction } from "../../mail/smtp-server/session.ts";
import { sleep } from "../../platform/clock.ts";
import { isUnavailable } from "../../platform/database/db.ts";
import { isLoopbackAddress, isWithin } from "../../platform/net/addresses.ts";
import { noteConnections } from "../../platform/net/smtp-metrics.ts";
import { isStoreTrouble } from "../../platform/storage/blobs.ts";
import type { Spool } from "../../platform/storage/spool.ts";
import type { World } from "../../platform/world.ts";
import type { Inbound } from "../inbound.ts";
import { CLIENTS, SESSION } from "../limits.ts";
import type { Incoming, RcptQuestion, Refused, Route } from "../types.ts";
import { mayPass } from "./greylist.ts";

export type MxParts = Pick<Inbound, "decide" | "take"> & {
  spool: Spool;
  /** True if there is room for mail at all. */
  hasRoom(): boolean;
  tls: (() => SecureContext) | null;
};

const STOP_WITHIN_MS = 30_000;
const NO_ROOM: Reply = reply(452, "4.3.1", "there is no room for mail at the moment, try again later");
const NOT_NOW: Reply = reply(451, "4.3.0", "the mail cannot be taken at the moment, try again later");
const MOVING: Reply = reply(451, "4.3.0", "this mailbox is being moved to another server, try again later");
const GREYLISTED: Reply = reply(451, "4.7.1", "greylisted, try again in a minute");

export type Mx = Pick<SmtpServer, "port" | "connections"> & { stop(): Promise<void> };

/** Listens on the configured address. */
export async function startMx(world: World, parts: MxParts): Promise<Mx> {
  const messages = world.metrics.counter("postern_inbound_messages_total", "Messages at the MX by answer", ["answer"]);
  const answered = (answer: Reply): Reply => {
    messages.inc({ answer: String(answer.code) });
    return answer;
  };
  const server = await startSmtpServer<Route>({
    host: world.config.mx.host,
    port: world.config.mx.port,
    held: world.held(world.config.mx.host, world.config.mx.port),
    name: world.config.mx_host,
    limits: SESSION,
    client_limits: CLIENTS,
    tls: parts.tls,
    isProxy: (ip) => isWithin(ip, world.config.proxy_protocol_from),
    proxies_tell_tls: world.config.cells_door !== null,
    // This machine itself is no stranger: health checks, tests, a content filter beside us.
    isTrusted: isLoopbackAddress,
    now: () => world.clock.monotonic(),
    sleep,
    onFailure: (err) => world.log.error({ err }, "an SMTP session failed on our side"),
    connections: noteConnections(world, "mx"),
    hooks: {
      // What is deferred before its content comes counts as well: in an outage all mail is.
      mail: async () => (parts.hasRoom() ? null : answered(NO_ROOM)),
      rcpt: (client, transaction, path) =>
        decideRcpt({ world, parts, answered }, { client, from: transaction.from, to: path }),
      data: async (client, transaction) => {
        const receiver = receive(world, parts, client, transaction);
        if (receiver === null) return answered(NO_ROOM);
        return { ...receiver, finish: async () => answered(await receiver.finish()) };
      },
    },
  });
  return { port: server.port, connections: server.connections, stop: () => server.stop(STOP_WITHIN_MS) };
}

type Deciding = { world: World; parts: MxParts; answered(answer: Reply): Reply };

async function decideRcpt({ world, parts, answered }: Deciding, question: RcptQuestion): Promise<RcptAnswer<Route>> {
  try {
    const decision = await parts.decide(question);
    if (decision.kind === "refuse") return { kind: "refuse", reply: toReply(decision) };
    if (world.moves.moving.has(decision.route.org_id)) return { kind: "refuse", reply: answered(MOVING) };
    if (world.config.greylisting && !(await passesGreylist(world, question))) {
      return { kind: "refuse", reply: GREYLISTED };
    }
    return { kind: "accept", route: decision.route };
  } catch (error) {
    return { kind: "refuse", reply: answered(failureReply(world, error)) };
  }
}

function passesGreylist(world: World, { client, from, to }: RcptQuestion): Promise<boolean> {
  return mayPass(world, { ip: client.ip, sender: from.text, recipient: to.text });
}

function toReply({ code, enhanced, text }: Refused): Reply {
  return reply(code, enhanced, text);
}

/** Full disks, an absent database and a store in trouble are known troubles; anything else is a bug and surfaces. */
function failureReply(world: Pick<World, "log">, error: unknown): Reply {
  const code = (error as { code?: string })?.code ?? "";
  if (["ENOSPC", "EDQUOT", "53100"].includes(code)) {
    world.log.error({ err: error }, "mail was refused for want of room");
    return NO_ROOM;
  }
  if (!isUnavailable(error) && !isStoreTrouble(error)) throw error;
  world.log.warn({ err: error }, "mail was deferred: the database or the store of large bodies does not answer");
  return NOT_NOW;
}

/** Null when there is no room for it: much may have come since MAIL, and from many at once. */
function receive(world: World, parts: MxParts, client: Client, transaction: Transaction<Route>): Receiver | null {
  const incomer = parts.hasRoom() ? parts.spool.open(transaction.size) : null;
  if (incomer === null) return null;
  return {
    write: (piece) => incomer.write(piece),
    abort: () => incomer.discard(),
    async finish() {
      try {
        const { bytes, giveBack } = await incomer.whole();
        try {
          return await take(world, parts, toIncoming(world, client, transaction, bytes));
        } finally {
          giveBack();
        }
      } catch (error) {
        return failureReply(world, error);
      }
    },
  };
}

function toIncoming(
  world: Pick<World, "clock">,
  client: Client,
  transaction: Transaction<Route>,
  bytes: Buffer,
): Incoming {
  return {
    origin: {
      remote_ip: client.ip,
      remote_port: client.port,
      helo: client.helo,
      protocol: client.protocol,
      tls: client.tls,
    },
    envelope: { from: transaction.from.text, smtputf8: transaction.smtputf8 },
    environment: "live",
    received_at: new Date(world.clock.now()),
    recipients: transaction.recipients.map(({ path, route }) => ({ recipient: path.text, route })),
    bytes,
  };
}

async function take(world: World, parts: MxParts, incoming: Incoming): Promise<Reply> {
  const end = world.moves.begin();
  try {
    const isMoving = incoming.recipients.some(({ route }) => world.moves.moving.has(route.org_id));
    return isMoving ? MOVING : await takeIn(world, parts, incoming);
  } finally {
    end();
  }
}

async function takeIn(world: World, parts: MxParts, incoming: Incoming): Promise<Reply> {
  const offered = await parts.take(incoming);
  if (offered.kind === "refused") return toReply(offered.refused);
  offered.processed?.catch((err) => world.log.error({ err }, "received mail could not be processed"));
  return reply(250, "2.0.0", `taken as ${offered.ids[0]}`);
}
