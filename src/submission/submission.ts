// SMTP submission (RFC 6409): programs and people send through SMTP with an API key, and their mail takes the way of the
// API: the same rules, suppressions, limits and timeline. Ports of its own, with STARTTLS and, where configured, with TLS
// from the first byte (RFC 8314). Face of the feature.
import type { SecureContext } from "node:tls";
import { refuseMoving } from "../accounts/accounts.ts";
import type { Account } from "../http/http.ts";
import { parseAddress } from "../mail/address.ts";
import type { Path } from "../mail/smtp-server/command.ts";
import { type Reply, reply } from "../mail/smtp-server/reply.ts";
import { type SmtpServer, type SmtpServerOptions, startSmtpServer } from "../mail/smtp-server/server.ts";
import type { Client, Hooks, RcptAnswer, Receiver, Transaction } from "../mail/smtp-server/session.ts";
import { sleep } from "../platform/clock.ts";
import { isUnavailable } from "../platform/database/db.ts";
import { isLoopbackAddress, isWithin } from "../platform/net/addresses.ts";
import { noteConnections } from "../platform/net/smtp-metrics.ts";
import { Refusal } from "../platform/refusal.ts";
import { isStoreTrouble } from "../platform/storage/blobs.ts";
import type { Spool } from "../platform/storage/spool.ts";
import type { World } from "../platform/world.ts";
import type { Sending } from "../sending/sending.ts";
import type { Prepared } from "../sending/types.ts";
import { CLIENTS, SESSION, SLOW_LOGIN_MS } from "./limits.ts";
import { createLogins, LOGIN_GONE, type Logins } from "./logins.ts";
import { toReply } from "./replies.ts";

export type SubmissionParts = {
  sending: Sending;
  tls: () => SecureContext;
  spool: Spool;
  /** True if there is room for mail at all. */
  hasRoom(): boolean;
};

type Recipient = { email: string; domain: string };
type Context = { world: World; parts: SubmissionParts; logins: Logins; answered(answer: Reply): void };

export type Submission = {
  port: number;
  /** The port with TLS from the first byte; null when it is not configured. */
  implicit_port: number | null;
  stop(): Promise<void>;
};

const STOP_WITHIN_MS = 30_000;
const NO_ROOM: Reply = reply(452, "4.3.1", "there is no room for mail at the moment, try again later");
const NOT_NOW: Reply = reply(451, "4.3.0", "the mail cannot be taken at the moment, try again later");

/** Listens on the configured addresses. */
export async function startSubmission(world: World, parts: SubmissionParts): Promise<Submission> {
  const messages = world.metrics.counter("postern_submission_messages_total", "Messages at submission by answer", [
    "answer",
  ]);
  const context: Context = {
    world,
    parts,
    logins: createLogins(world),
    answered: ({ code }) => messages.inc({ answer: String(code) }),
  };
  const { submission, submissions } = world.config;
  const servers: SmtpServer[] = [await startSmtpServer(optionsFor(context, submission, false))];
  if (submissions) servers.push(await startSmtpServer(optionsFor(context, submissions, true)));
  const [first, second] = servers;
  return {
    port: (first as SmtpServer).port,
    implicit_port: second?.port ?? null,
    async stop() {
      await Promise.all(servers.map((server) => server.stop(STOP_WITHIN_MS)));
    },
  };
}

function optionsFor(
  context: Context,
  { host, port }: { host: string; port: number },
  implicit_tls: boolean,
): SmtpServerOptions<Recipient> {
  const { world, parts } = context;
  return {
    host,
    port,
    held: world.held(host, port),
    name: world.config.hostname,
    limits: SESSION,
    client_limits: CLIENTS,
    hooks: hooksOf(context),
    tls: parts.tls,
    implicit_tls,
    slow_login_ms: SLOW_LOGIN_MS,
    isProxy: (ip) => isWithin(ip, world.config.proxy_protocol_from),
    proxies_end_tls: world.config.proxies_end_tls,
    // Programs beside us on this machine.
    isTrusted: isLoopbackAddress,
    now: () => world.clock.monotonic(),
    sleep,
    onFailure: (err) => world.log.error({ err }, "a submission session failed on our side"),
    connections: noteConnections(world, "submission"),
  };
}

function hooksOf(context: Context): Hooks<Recipient> {
  const { logins } = context;
  return {
    login: (client, login) => logins.check(client, login),
    async mail(client, from) {
      const answer = await answering(context, () => checkSender(context, client, from));
      // What is deferred before its content comes counts as well: in an outage all mail is.
      if (answer === NO_ROOM || answer === NOT_NOW) context.answered(answer);
      return answer;
    },
    rcpt: async (_client, _transaction, path) => readRecipient(path),
    data: async (client, transaction) => {
      const receiver = receive(context, client, transaction);
      if (receiver === null) context.answered(NO_ROOM);
      return receiver ?? NO_ROOM;
    },
  };
}

/** The envelope sender must be the organization's own; the null reverse-path names nobody. */
async function checkSender(context: Context, client: Client, from: Path): Promise<Reply | null> {
  const { world, parts, logins } = context;
  if (!parts.hasRoom()) return NO_ROOM;
  const account = await logins.current(client);
  if (!account) return LOGIN_GONE;
  refuseMoving(account);
  await logins.countMessage(account);
  if (from.text === "") return null;
  if (from.domain === null) return reply(550, "5.7.1", "the sender's address has no domain of yours");
  await parts.sending.checkSender(account, from.domain);
  world.log.debug({ org_id: account.org_id, domain: from.domain }, "submission begins");
  return null;
}

/** Strict, as for the API: what is no address cannot be delivered to, and its program should know now. */
function readRecipient(path: Path): RcptAnswer<Recipient> {
  const parsed = parseAddress(path.text);
  if (!parsed.ok) return { kind: "refuse", reply: reply(553, "5.1.3", `this is not an address: ${parsed.reason}`) };
  return { kind: "accept", route: { email: parsed.address.email, domain: parsed.address.domain } };
}

/** Null when there is no room for it: much may have come since MAIL, and from many at once. */
function receive(context: Context, client: Client, transaction: Transaction<Recipient>): Receiver | null {
  const { spool, hasRoom } = context.parts;
  const incomer = hasRoom() ? spool.open(transaction.size) : null;
  if (incomer === null) return null;
  return {
    write: (piece) => incomer.write(piece),
    abort: () => incomer.discard(),
    async finish() {
      const answer = await answering(context, async () => {
        const { bytes, giveBack } = await incomer.whole();
        try {
          return await take(context, client, { recipients: distinct(transaction), bytes });
        } finally {
          giveBack();
        }
      });
      context.answered(answer as Reply);
      return answer as Reply;
    },
  };
}

/** The same mailbox twice counts once, in its first place. */
function distinct({ recipients }: Transaction<Recipient>): Recipient[] {
  const found = new Map<string, Recipient>();
  for (const { route } of recipients) {
    const key = route.email.toLowerCase();
    if (!found.has(key)) found.set(key, route);
  }
  return [...found.values()];
}

/** The 250 leaves after the commit. */
async function take(
  { world, parts, logins }: Context,
  client: Client,
  message: { recipients: Recipient[]; bytes: Buffer },
): Promise<Reply> {
  const end = world.moves.begin();
  try {
    const account = await logins.current(client);
    if (!account) return LOGIN_GONE;
    const prepared = await prepare(parts.sending, account, client, message);
    await parts.sending.accept([prepared], null);
    return reply(250, "2.0.0", `${prepared.status} as ${prepared.id}${suppressedNote(prepared)}`);
  } finally {
    end();
  }
}

function prepare(
  sending: Sending,
  account: Account,
  client: Client,
  { recipients, bytes }: { recipients: Recipient[]; bytes: Buffer },
): Promise<Prepared> {
  return sending.prepareSubmitted(account, { recipients, bytes, protocol: client.protocol });
}

function suppressedNote({ suppressed }: Prepared): string {
  return suppressed.length === 0 ? "" : `; left out as suppressed: ${suppressed.length}`;
}

/** Refusals, full disks, an absent database and a store in trouble are answers; anything else is a bug and surfaces. */
async function answering({ world }: Pick<Context, "world">, work: () => Promise<Reply | null>): Promise<Reply | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return toReply(error);
    if (["ENOSPC", "EDQUOT", "53100"].includes((error as { code?: string })?.code ?? "")) {
      world.log.error({ err: error }, "a submission was refused for want of room");
      return NO_ROOM;
    }
    if (!isUnavailable(error) && !isStoreTrouble(error)) throw error;
    world.log.warn(
      { err: error },
      "a submission was deferred: the database or the store of large bodies does not answer",
    );
    return NOT_NOW;
  }
}
