// The dialogue of an incoming SMTP connection (RFC 5321, 1870, 2920, 3207, 4954, 6152, 6531): greeting to QUIT, one transaction
// after another. Every end of a transaction discards it, whatever ended it. What a recipient and a message are worth is
// decided by the hooks. A server of our own: docs/decisions/0008-smtp-server.md says why.
import type { SecureContext } from "node:tls";
import * as auth from "./auth.ts";
import { type Command, couldReturn, type Path, parseCommand, parseHelo, parsePathCommand } from "./command.ts";
import type { InputFault } from "./input.ts";
import * as replies from "./reply.ts";
import { formatReply, type Reply, reply } from "./reply.ts";
import type { DataLimits, Ended, ServerWire, Sink } from "./wire.ts";
import { readDoorTls } from "./xclient.ts";

export type Client = {
  ip: string;
  port: number;
  helo: string;
  /** RFC 3848 and RFC 6531 names for Received: SMTP, ESMTP, ESMTPS, ESMTPSA, UTF8SMTP, UTF8SMTPS, UTF8SMTPSA. */
  protocol: string;
  tls: string | null;
  /** What the hook for logins made of the client; null without a login. */
  user?: unknown;
};

/** A transaction under way. `Route` is what the hook for RCPT made of each recipient. */
export type Transaction<Route> = {
  from: Path;
  smtputf8: boolean;
  size: number | null;
  recipients: { path: Path; route: Route }[];
};

export type RcptAnswer<Route> = { kind: "accept"; route: Route } | { kind: "refuse"; reply: Reply };

/** Where a message goes while it comes in. Exactly one of `finish` and `abort` is called. */
export type Receiver = {
  write: Sink;
  /** The message is whole: the answer to it, which promises what it says. */
  finish(): Promise<Reply>;
  abort(): void;
};

export type Hooks<Route> = {
  /** When it is there, clients must log in, under TLS, before MAIL. */
  login?(client: Client, login: auth.Login): Promise<auth.LoginAnswer>;
  mail?(client: Client, from: Path): Promise<Reply | null>;
  rcpt(client: Client, transaction: Transaction<Route>, path: Path): Promise<RcptAnswer<Route>>;
  /** Called before 354; a reply refuses DATA. */
  data(client: Client, transaction: Transaction<Route>): Promise<Receiver | Reply>;
};

export type SessionLimits = {
  command_ms: number;
  /** Instead of `command_ms` while the server is short of connections. */
  command_under_load_ms: number;
  handshake_ms: number;
  data: DataLimits;
  data_under_load: DataLimits;
  size_max: number;
  recipients_max: number;
  messages_max: number;
  /** Commands in a row that brought no message. */
  commands_max: number;
  /** Without a message taken between them. */
  errors_max: number;
  /** From this many errors on each further one is answered late. */
  errors_free: number;
  tarpit_ms: number;
};

export type SessionOptions<Route> = {
  name: string;
  client: Pick<Client, "ip" | "port">;
  /** The client speaks through a proxy that says how, before its first MAIL and once (xclient.ts). */
  has_door: boolean;
  limits: SessionLimits;
  hooks: Hooks<Route>;
  /** Null: no STARTTLS. */
  tls: (() => SecureContext) | null;
  isUnderLoad(): boolean;
  isStopping(): boolean;
  sleep(ms: number): Promise<void>;
  /** A bug in a hook: it is answered with 451, and passed on here. */
  onFailure(error: unknown): void;
  /** Keeps a wrong login waiting; false when the connection had to give up its place meanwhile. */
  slowDown(): Promise<boolean>;
};

/** RCPTs beyond a transaction's limit that count as nobody's error; above it they count like any other. */
const EXCESS_MAX = 10_000;

type State<Route> = {
  wire: ServerWire;
  options: SessionOptions<Route>;
  helo: string | null;
  esmtp: boolean;
  /** What the proxy said of the client's TLS with it. */
  door_tls: string | null;
  may_tell: boolean;
  user: unknown;
  mail: Transaction<Route> | null;
  errors: number;
  /** Those of them that time mends: answered late like all, but no reason to show a client the door. */
  deferred: number;
  commands: number;
  failed_logins: number;
  /** Recipients deferred to another transaction since the last message. */
  excess: number;
  messages: number;
  done: boolean;
};

type Handler = <Route>(state: State<Route>, command: Command) => Promise<Reply | null> | Reply | null;

const HANDLERS = new Map<string, Handler>([
  ["HELO", (state, command) => hello(state, command, false)],
  ["EHLO", (state, command) => hello(state, command, true)],
  ["MAIL", mail],
  ["RCPT", rcpt],
  ["DATA", data],
  ["RSET", rset],
  ["NOOP", () => reply(250, "2.0.0", "OK")],
  ["QUIT", quit],
  ["STARTTLS", startTls],
  ["XCLIENT", xclient],
  ["AUTH", logIn],
  ["VRFY", () => reply(252, "2.1.5", "cannot verify, but will take mail and try")],
  ["HELP", () => reply(214, "2.0.0", "RFC 5321")],
]);
const NOT_OFFERED = reply(502, "5.5.1", "this command is not offered");
const KNOWN_BUT_ABSENT = new Set(["EXPN", "BDAT", "ETRN", "TURN", "SEND", "SOML", "SAML", "XFORWARD"]);

/** Holds the conversation until either side ends it. Never throws. */
export async function serveSession<Route>(wire: ServerWire, options: SessionOptions<Route>): Promise<void> {
  const state: State<Route> = {
    ...{ wire, options, helo: null, esmtp: false, user: null, mail: null },
    ...{ door_tls: null, may_tell: options.has_door },
    ...{ errors: 0, deferred: 0, commands: 0, failed_logins: 0, excess: 0, messages: 0, done: false },
  };
  say(state, greeting(state));
  while (!state.done) {
    const answer = await nextAnswer(state);
    if (answer) await give(state, answer);
  }
  wire.close();
}

function greeting<Route>({ options }: State<Route>): Reply {
  return reply(220, null, `${options.name} ESMTP Postern`);
}

async function nextAnswer<Route>(state: State<Route>): Promise<Reply | null> {
  const { wire, options } = state;
  if (options.isStopping() && !wire.hasInput()) return leave(state, replies.STOPPING);
  const { command_ms, command_under_load_ms, commands_max } = options.limits;
  const line = await wire.nextLine(options.isUnderLoad() ? command_under_load_ms : command_ms);
  if (line.kind === "ended") return endedBy(state, line.why);
  if (line.kind === "fault") return leave(state, faultReply(line.fault));
  const command = parseCommand(line.bytes);
  if (!command) return replies.SYNTAX;
  state.commands += 1;
  if (state.commands > commands_max) return leave(state, replies.TOO_MANY_COMMANDS);
  const handler = HANDLERS.get(command.verb);
  if (handler) return handler(state, command);
  if (KNOWN_BUT_ABSENT.has(command.verb)) return NOT_OFFERED;
  return reply(500, "5.5.2", "unknown command");
}

function endedBy<Route>(state: State<Route>, why: Ended["why"]): Reply | null {
  state.done = true;
  if (why === "timeout") return replies.TOO_SLOW;
  return why === "interrupted" ? replies.STOPPING : null;
}

function faultReply(fault: InputFault): Reply {
  return fault === "line_too_long" ? replies.LINE_TOO_LONG : replies.NEEDS_CRLF;
}

/** The last word on this connection. */
function leave<Route>(state: State<Route>, last: Reply): Reply {
  state.done = true;
  return last;
}

/** Sends an answer; a client that errs too often waits for it, and in the end is shown the door. */
async function give<Route>(state: State<Route>, answer: Reply): Promise<void> {
  const { limits, sleep } = state.options;
  const isError = answer.code >= 400 && !state.done;
  if (!isError || isExcess(state, answer)) return say(state, answer);
  state.errors += 1;
  if (isDeferral(state, answer)) state.deferred += 1;
  if (state.errors > limits.errors_free && limits.tarpit_ms > 0) {
    state.wire.flush();
    await sleep(limits.tarpit_ms);
  }
  say(state, answer);
  if (state.errors - state.deferred >= limits.errors_max) say(state, leave(state, replies.TOO_MANY_ERRORS));
}

/**
 * Greylisting, a mailbox that is not confirmed, trouble on our side: the client did nothing wrong, and those of its recipients
 * that were taken are to get the mail.
 */
function isDeferral<Route>({ mail }: State<Route>, { code }: Reply): boolean {
  return code < 500 && mail !== null;
}

/** RFC 5321 §4.5.3.1.10: recipients too many are deferred, and those taken before get the mail; it is no fault to offer them. */
function isExcess<Route>(state: State<Route>, answer: Reply): boolean {
  if (answer.enhanced !== "4.5.3" || state.excess >= EXCESS_MAX) return false;
  state.excess += 1;
  state.commands -= 1;
  return true;
}

function say<Route>(state: State<Route>, answer: Reply): void {
  state.wire.send(formatReply(answer));
}

function clientOf<Route>(state: State<Route>): Client {
  const { user, door_tls } = state;
  const tls = state.wire.tls ?? door_tls;
  const utf8 = state.mail?.smtputf8 ? "UTF8SMTP" : state.esmtp ? "ESMTP" : "SMTP";
  const protocol = `${utf8}${tls ? "S" : ""}${user === null ? "" : "A"}`;
  return { ...state.options.client, helo: state.helo ?? "", protocol, tls, user };
}

function hello<Route>(state: State<Route>, { rest }: Command, esmtp: boolean): Reply {
  const name = parseHelo(rest);
  if (name === null) return reply(501, "5.5.4", `${esmtp ? "EHLO" : "HELO"} needs the name of your host`);
  state.mail = null;
  state.helo = name;
  state.esmtp = esmtp;
  const { options, wire } = state;
  if (!esmtp) return reply(250, null, options.name);
  const offers = [options.name, "PIPELINING", `SIZE ${options.limits.size_max}`, "8BITMIME", "SMTPUTF8"];
  if (options.tls && wire.tls === null) offers.push("STARTTLS");
  if (options.hooks.login && wire.tls !== null) offers.push(auth.MECHANISMS);
  return reply(250, null, [...offers, "ENHANCEDSTATUSCODES", "HELP"]);
}

async function mail<Route>(state: State<Route>, { rest }: Command): Promise<Reply> {
  const { limits, hooks } = state.options;
  if (state.helo === null) return reply(503, "5.5.1", "say EHLO first");
  if (hooks.login && state.user === null) return state.wire.tls ? auth.NEEDS_LOGIN : auth.NEEDS_STARTTLS;
  if (state.mail) return reply(503, "5.5.1", "a transaction is under way; end it or say RSET");
  if (state.messages >= limits.messages_max) return leave(state, replies.TOO_MANY_MESSAGES);
  const parsed = parsePathCommand(rest, "FROM");
  if (!parsed) return reply(501, "5.5.4", "the syntax is MAIL FROM:<address>");
  const { path, params } = parsed;
  if (path.text !== "" && !path.text.includes("@")) return reply(501, "5.1.7", "the sender's address has no domain");
  if (!couldReturn(path)) return reply(501, "5.1.7", "the sender's address has no domain that could exist");
  // RFC 4954 §5: whoever offers AUTH takes this parameter; we trust nobody's word on who somebody else is.
  if (hooks.login) params.delete("AUTH");
  const problem = paramProblem(params, limits.size_max);
  if (problem) return problem;
  const smtputf8 = params.has("SMTPUTF8");
  if (path.smtputf8 && !smtputf8) return reply(553, "5.6.7", "an address in UTF-8 needs the SMTPUTF8 parameter");
  const size = params.get("SIZE");
  const transaction: Transaction<Route> = { from: path, smtputf8, size: size ? Number(size) : null, recipients: [] };
  const refused = await guarded(state, async () => (await hooks.mail?.(clientOf(state), path)) ?? null);
  if (refused) return refused;
  state.mail = transaction;
  // From here on the proxy passes on what the client says.
  state.may_tell = false;
  return reply(250, "2.1.0", "sender OK");
}

const BODY_TYPES = new Set(["7BIT", "8BITMIME"]);

function paramProblem(params: Map<string, string | null>, sizeMax: number): Reply | null {
  for (const [key, value] of params) {
    if (key === "SIZE") {
      if (!/^\d{1,20}$/.test(value ?? "")) return reply(501, "5.5.4", "SIZE needs a number");
      if (Number(value) > sizeMax) return tooLarge(sizeMax);
    } else if (key === "BODY") {
      if (!BODY_TYPES.has((value ?? "").toUpperCase())) return reply(501, "5.5.4", "BODY is 7BIT or 8BITMIME");
    } else if (key !== "SMTPUTF8" || value !== null) {
      return reply(555, "5.5.4", "a parameter is not known here");
    }
  }
  return null;
}

function tooLarge(sizeMax: number): Reply {
  return reply(552, "5.3.4", `the message is larger than ${sizeMax} bytes`);
}

async function rcpt<Route>(state: State<Route>, { rest }: Command): Promise<Reply> {
  const { limits, hooks } = state.options;
  const transaction = state.mail;
  if (!transaction) return reply(503, "5.5.1", "say MAIL first");
  const parsed = parsePathCommand(rest, "TO");
  if (!parsed || parsed.path.text === "") return reply(501, "5.5.4", "the syntax is RCPT TO:<address>");
  const { path, params } = parsed;
  if (params.size > 0) return reply(555, "5.5.4", "a parameter is not known here");
  if (path.smtputf8 && !transaction.smtputf8) {
    return reply(553, "5.6.7", "an address in UTF-8 needs the SMTPUTF8 parameter");
  }
  if (transaction.recipients.some((known) => known.path.text === path.text)) return recipientOk();
  if (transaction.recipients.length >= limits.recipients_max) {
    return reply(452, "4.5.3", "too many recipients, send to the others separately");
  }
  return guarded(state, async () => {
    const answer = await hooks.rcpt(clientOf(state), transaction, path);
    if (answer.kind === "refuse") return answer.reply;
    transaction.recipients.push({ path, route: answer.route });
    return recipientOk();
  });
}

function recipientOk(): Reply {
  return reply(250, "2.1.5", "recipient OK");
}

async function data<Route>(state: State<Route>, { rest }: Command): Promise<Reply | null> {
  const transaction = state.mail;
  if (!transaction) return reply(503, "5.5.1", "say MAIL first");
  if (rest !== "") return reply(501, "5.5.4", "DATA takes no argument");
  if (transaction.recipients.length === 0) return reply(554, "5.5.1", "no valid recipients");
  const client = clientOf(state);
  const opened = await guarded(state, () => state.options.hooks.data(client, transaction));
  if ("code" in opened) {
    state.mail = null;
    return opened;
  }
  say(state, reply(354, null, "end the message with CRLF.CRLF"));
  const answer = await receive(state, opened);
  state.mail = null;
  return answer;
}

async function receive<Route>(state: State<Route>, receiver: Receiver): Promise<Reply | null> {
  const { limits, isUnderLoad } = state.options;
  let size = 0;
  let failure: unknown = null;
  const sink: Sink = (piece) => {
    size += piece.length;
    if (size > limits.size_max || failure !== null) return;
    const hold = receiver.write(piece);
    return hold?.catch((error) => {
      failure = error ?? new Error("a message could not be kept");
    });
  };
  const pace = isUnderLoad() ? limits.data_under_load : limits.data;
  // Who logged in says what the message is, and what leaves is built from it: nobody else's reading of a line end counts.
  const end = await state.wire.readData(sink, pace, state.user === null ? "strict" : "mended");
  if (end.kind !== "end" || size > limits.size_max || failure !== null) {
    receiver.abort();
    if (end.kind === "ended") return endedBy(state, end.why);
    if (end.kind === "fault") return leave(state, faultReply(end.fault));
    if (end.kind === "flood") return leave(state, tooLarge(limits.size_max));
    if (failure !== null) return failed(state, failure);
    return tooLarge(limits.size_max);
  }
  const answer = await guarded(state, () => receiver.finish());
  if (answer.code < 300) {
    state.messages += 1;
    state.commands = 0;
    state.errors = 0;
    state.deferred = 0;
    state.excess = 0;
  }
  return answer;
}

function rset<Route>(state: State<Route>): Reply {
  state.mail = null;
  return reply(250, "2.0.0", "OK");
}

function quit<Route>(state: State<Route>): Reply {
  return leave(state, reply(221, "2.0.0", "bye"));
}

async function startTls<Route>(state: State<Route>, { rest }: Command): Promise<Reply | null> {
  const { wire, options } = state;
  if (!options.tls) return NOT_OFFERED;
  if (wire.tls !== null) return reply(503, "5.5.1", "TLS is on already");
  if (rest !== "") return reply(501, "5.5.4", "STARTTLS takes no argument");
  const goAhead = formatReply(reply(220, "2.0.0", "go ahead"));
  const done = await wire.startTls(options.tls(), goAhead, options.limits.handshake_ms);
  // RFC 3207 §4.2: all that was said before is forgotten.
  state.mail = null;
  state.helo = null;
  state.esmtp = false;
  if (!done) state.done = true;
  return null;
}

/** The session begins again with its greeting, as in Postfix. */
function xclient<Route>(state: State<Route>, { rest }: Command): Reply {
  if (!state.may_tell) return NOT_OFFERED;
  Object.assign(state, { may_tell: false, door_tls: readDoorTls(rest), helo: null, esmtp: false });
  return greeting(state);
}

async function logIn<Route>(state: State<Route>, command: Command): Promise<Reply | null> {
  const answer = await tryLogin(state, command);
  if (!answer || !auth.isFailure(answer)) return answer;
  state.failed_logins += 1;
  return state.failed_logins < auth.FAILURES_MAX ? answer : leave(state, replies.TOO_MANY_LOGINS);
}

/** RFC 4954 §4. */
async function tryLogin<Route>(state: State<Route>, { rest }: Command): Promise<Reply | null> {
  const { wire, options } = state;
  const { login: hook } = options.hooks;
  if (!hook) return NOT_OFFERED;
  if (wire.tls === null) return auth.NEEDS_TLS;
  if (!state.esmtp) return reply(503, "5.5.1", "say EHLO first");
  if (state.user !== null) return reply(503, "5.5.1", "you are logged in already");
  if (state.mail) return reply(503, "5.5.1", "a transaction is under way");
  let last: Reply | null = null;
  const outcome = await auth.readLogin(rest, async (challenge) => {
    say(state, reply(334, null, challenge));
    const line = await wire.nextLine(options.limits.command_ms);
    if (line.kind === "line") return line.bytes;
    last = line.kind === "ended" ? endedBy(state, line.why) : leave(state, faultReply(line.fault));
    return null;
  });
  if (outcome.kind === "ended") return last;
  if (outcome.kind === "refused") return outcome.reply;
  const answer = await guarded(state, () => hook(clientOf(state), outcome.login));
  if ("code" in answer) return answer;
  if (answer.kind === "refused") return answer.slow ? answerLate(state, answer.reply) : answer.reply;
  state.user = answer.user;
  return auth.ACCEPTED;
}

/** The next try needs a new connection where this one had to make room for another. */
async function answerLate<Route>(state: State<Route>, answer: Reply): Promise<Reply> {
  return (await state.options.slowDown()) ? answer : leave(state, replies.TOO_MANY_LOGINS);
}

/** A hook that throws is our fault: the client may try again. */
async function guarded<Route, T>(state: State<Route>, work: () => Promise<T>): Promise<T | Reply> {
  try {
    return await work();
  } catch (error) {
    return failed(state, error);
  }
}

function failed<Route>(state: State<Route>, error: unknown): Reply {
  state.options.onFailure(error);
  return reply(451, "4.3.0", "a fault on our side, try again later");
}
