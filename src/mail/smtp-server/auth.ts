// Logging in (RFC 4954) with the mechanisms every client has: PLAIN (RFC 4616) and LOGIN (never standardized; Outlook and
// old devices know nothing else). Offered under TLS only. Who a login is, the hook decides; a password is never logged.
import { type Reply, reply } from "./reply.ts";

export type Login = { user: string; password: string };

/** `user` is handed to the other hooks with the client. A refusal that is `slow` waits before the client hears it. */
export type LoginAnswer = { kind: "known"; user: unknown } | { kind: "refused"; reply: Reply; slow?: boolean };

export type LoginOutcome = { kind: "login"; login: Login } | { kind: "refused"; reply: Reply } | { kind: "ended" };

/** Sends a challenge and gives the client's next line; null when it went away. */
export type Ask = (challenge: string) => Promise<Buffer | null>;

export const MECHANISMS = "AUTH PLAIN LOGIN";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const USERNAME = Buffer.from("Username:").toString("base64");
const PASSWORD = Buffer.from("Password:").toString("base64");

export const NEEDS_TLS: Reply = reply(538, "5.7.11", "encryption is required: say STARTTLS first");
export const NEEDS_STARTTLS: Reply = reply(530, "5.7.0", "must issue a STARTTLS command first");
export const NEEDS_LOGIN: Reply = reply(530, "5.7.0", "authentication required");
export const ACCEPTED: Reply = reply(235, "2.7.0", "authentication succeeded");
export const INVALID: Reply = reply(535, "5.7.8", "authentication credentials invalid");
const NOT_BASE64: Reply = reply(501, "5.5.2", "this is not base64");
const CANCELED: Reply = reply(501, "5.7.0", "authentication canceled");
const UNKNOWN_MECHANISM: Reply = reply(504, "5.5.4", "this mechanism is not offered; there are PLAIN and LOGIN");

/** RFC 4954 §4: a connection may end after failed attempts, though not before the third. */
export const FAILURES_MAX = 3;

/**
 * True if the reply is about a login that failed. An unknown mechanism and a login that was given up are no such
 * failure.
 */
export function isFailure({ code, enhanced }: Reply): boolean {
  return code === INVALID.code || enhanced === NOT_BASE64.enhanced;
}

/** Reads `mechanism [initial-response]` and asks for what is missing. Decides nothing about the login itself. */
export async function readLogin(rest: string, ask: Ask): Promise<LoginOutcome> {
  const [mechanism = "", initial = null, ...more] = rest.split(" ").filter((word) => word !== "");
  if (mechanism === "" || more.length > 0) return refused(reply(501, "5.5.4", "the syntax is AUTH mechanism"));
  switch (mechanism.toUpperCase()) {
    case "PLAIN":
      return readPlain(initial, ask);
    case "LOGIN":
      return readUserAndPassword(initial, ask);
    default:
      return refused(UNKNOWN_MECHANISM);
  }
}

/** RFC 4616: authorization identity (which we do not have), user and password, apart by NUL. */
async function readPlain(initial: string | null, ask: Ask): Promise<LoginOutcome> {
  const given = await response(initial, "", ask);
  if (!Buffer.isBuffer(given)) return given;
  const [identity = "", user, password, ...more] = given.toString("utf8").split("\0");
  if (user === undefined || password === undefined || more.length > 0) return refused(NOT_BASE64);
  if (identity !== "" && identity !== user) return refused(INVALID);
  return { kind: "login", login: { user, password } };
}

async function readUserAndPassword(initial: string | null, ask: Ask): Promise<LoginOutcome> {
  const user = await response(initial, USERNAME, ask);
  if (!Buffer.isBuffer(user)) return user;
  const password = await response(null, PASSWORD, ask);
  if (!Buffer.isBuffer(password)) return password;
  return { kind: "login", login: { user: user.toString("utf8"), password: password.toString("utf8") } };
}

/** The octets of a response; `=` as the initial one is empty (RFC 4954 §4), `*` cancels. */
async function response(initial: string | null, challenge: string, ask: Ask): Promise<Buffer | LoginOutcome> {
  if (initial === "=") return Buffer.alloc(0);
  const line = initial ?? (await ask(challenge))?.toString("latin1");
  if (line === undefined) return { kind: "ended" };
  if (line === "*") return refused(CANCELED);
  return BASE64.test(line) ? Buffer.from(line, "base64") : refused(NOT_BASE64);
}

function refused(answer: Reply): LoginOutcome {
  return { kind: "refused", reply: answer };
}
