// Outgoing SMTP sessions: connect, greeting, EHLO, STARTTLS, AUTH, then up to 100 transactions (RFC 5321, 3207, 4954).
// A small client of our own: docs/decisions/0002-smtp-client.md says why. Remote behaviour is always a value.
// Does not resolve names, choose addresses, check them against the deny-table, pool or retry: the caller does.
import type { DetailedPeerCertificate, TLSSocket } from "node:tls";
import { certificateWords } from "../../text/tls-words.ts";
import { type Credentials, login } from "./login.ts";
import { type RawReply, type Reply, toReply } from "./reply.ts";
import { tlsOptions } from "./tls-options.ts";
import { type Capabilities, type Envelope, runTransaction, type SendHooks, type SendOutcome } from "./transaction.ts";
import { dialWire, type Wire } from "./wire.ts";

const MESSAGES_PER_SESSION_MAX = 100;
/** `detail` of a failure for want of the extension, which reports tell apart from failed handshakes. */
export const NO_STARTTLS = "the server does not offer STARTTLS";
const QUIT_MS = 5_000;

export type SessionTimeouts = {
  connect_ms: number;
  greeting_ms: number;
  mail_rcpt_ms: number;
  data_block_ms: number;
  data_ms: number;
  final_ms: number;
};

// RFC 5321 §4.5.3.2, shortened where the standard's five minutes only hold a slot of a dead server.
const DEFAULT_TIMEOUTS: SessionTimeouts = {
  connect_ms: 30_000,
  greeting_ms: 60_000,
  mail_rcpt_ms: 120_000,
  data_block_ms: 180_000,
  // All of a message, as our own MX gives: 64 KiB in each three minutes would hold a slot for 20 hours.
  data_ms: 1_800_000,
  final_ms: 600_000,
};

export type PeerTls = {
  host: string;
  /** The server's certificate with its chain. */
  certificate: DetailedPeerCertificate;
  /** Whether the public (or given) authorities vouch for it and it names `host`. */
  authorized: boolean;
  authorization_error: string | null;
};

/** DANE or MTA-STS: null if the server is the right one, else why not. Decides alone, instead of the default check. */
export type TlsCheck = (peer: PeerTls) => string | null;

/**
 * none: never TLS (the second try after `tls_failed`). opportunistic: TLS if offered, any certificate. require: TLS or
 * nothing, any certificate. verify: TLS and `check`, or the usual check of chain and name when there is no `check`.
 * `implicit`: TLS from the first byte (port 465). `ca`: PEM of authorities to use instead of the public ones.
 */
export type SessionTls = {
  mode: "none" | "opportunistic" | "require" | "verify";
  check?: TlsCheck;
  implicit?: boolean;
  ca?: string;
};

export type SessionOptions = {
  host: string;
  address: string;
  port: number;
  local_address?: string;
  ehlo_name: string;
  tls: SessionTls;
  auth?: Credentials;
  timeouts?: Partial<SessionTimeouts>;
  signal?: AbortSignal;
};

export type TlsState = { protocol: string; cipher: string; authorized: boolean };

/**
 * No session. `reply` is what the server said at `stage`, if it said anything. `tls_failed`: it failed for TLS (not
 * offered, refused, handshake, certificate); an opportunistic caller may open again with mode `none`.
 */
export type ConnectFailure = {
  kind: "failed";
  stage: "connect" | "banner" | "ehlo" | "starttls" | "auth";
  cause: "network" | "closed" | "timeout" | "protocol" | "tls" | "aborted" | "refused";
  reply: Reply | null;
  detail: string;
  tls_failed: boolean;
};

type Stage = ConnectFailure["stage"];
type Opening = { wire: Wire; options: SessionOptions; timeouts: SessionTimeouts };

/** Opens a session to one address. Never throws for what the server does; throws for an address that is no IP. */
export async function openSession(options: SessionOptions): Promise<Session | ConnectFailure> {
  if (!/^[\x21-\x7e]{1,255}$/.test(options.ehlo_name)) throw new Error("ehlo_name cannot be sent");
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const { address, port, local_address, signal } = options;
  const dialled = await dialWire({ address, port, local_address, signal, timeout_ms: timeouts.connect_ms });
  if ("cause" in dialled) {
    return {
      kind: "failed",
      stage: "connect",
      cause: dialled.cause,
      reply: null,
      detail: dialled.detail,
      tls_failed: false,
    };
  }
  const opening = { wire: dialled, options, timeouts };
  const opened = await greet(opening);
  if ("kind" in opened) {
    dialled.fail("aborted", opened.detail);
    return opened;
  }
  return new Session(opening, opened);
}

type Opened = { capabilities: Capabilities; tls: TlsState | null; banner: Reply };

async function greet(opening: Opening): Promise<Opened | ConnectFailure> {
  const { wire, options, timeouts } = opening;
  let tls: TlsState | null = null;
  if (options.tls.implicit) {
    const secured = await secure(opening, "connect");
    if ("kind" in secured) return secured;
    tls = secured;
  }
  const [banner] = await wire.ask("", 1, timeouts.greeting_ms);
  if (banner?.code !== 220) return failure(wire, "banner", banner);
  let capabilities = await hello(opening);
  if ("kind" in capabilities) return capabilities;
  if (!tls && options.tls.mode !== "none") {
    const started = await startTls(opening, capabilities);
    if (started && "kind" in started) return started;
    if (started) {
      tls = started;
      capabilities = await hello(opening);
      if ("kind" in capabilities) return capabilities;
    }
  }
  const refused = options.auth ? await authenticate(opening, capabilities, tls !== null) : null;
  return refused ?? { capabilities, tls, banner: toReply(banner) };
}

function failure(wire: Wire, stage: Stage, raw: RawReply | undefined): ConnectFailure {
  const lost = wire.failure;
  // A 421 is both a reply and the end of the connection: it is an answer. A 2xx out of place is none.
  const refusal = [raw, lost?.stray].find((said) => said && said.code >= 400);
  const reply = refusal ? toReply(refusal) : null;
  const unexpected = raw ? `unexpected ${raw.code} at ${stage}` : "the connection was lost";
  const detail = reply ? `${reply.code} ${reply.text}`.trim() : (lost?.detail ?? unexpected);
  const cause = reply ? "refused" : (lost?.cause ?? "protocol");
  return { kind: "failed", stage, cause, reply, detail, tls_failed: cause === "tls" };
}

function tlsFailure(stage: Stage, detail: string): ConnectFailure {
  return { kind: "failed", stage, cause: "tls", reply: null, detail, tls_failed: true };
}

const NO_EXTENSIONS: Capabilities = {
  pipelining: false,
  eightbitmime: false,
  smtputf8: false,
  starttls: false,
  enhancedstatuscodes: false,
  requiretls: false,
  size: null,
  auth: [],
};

/** EHLO, or HELO for a server that does not know EHLO (RFC 5321 §3.2); HELO has no extensions, so also no STARTTLS. */
async function hello({ wire, options, timeouts }: Opening): Promise<Capabilities | ConnectFailure> {
  const [reply] = await wire.ask(`EHLO ${options.ehlo_name}\r\n`, 1, timeouts.greeting_ms);
  if (wire.failure || !reply) return failure(wire, "ehlo", reply);
  if (reply.code < 300) return readCapabilities(reply);
  if (![500, 501, 502, 503, 504].includes(reply.code)) return failure(wire, "ehlo", reply);
  const [older] = await wire.ask(`HELO ${options.ehlo_name}\r\n`, 1, timeouts.greeting_ms);
  if (wire.failure || !older || older.code >= 300) return failure(wire, "ehlo", older);
  return NO_EXTENSIONS;
}

/** The extensions of an EHLO reply; unknown ones are ignored, of one given twice the last counts. */
function readCapabilities(reply: RawReply): Capabilities {
  const words = new Map<string, string>();
  for (const line of reply.lines.slice(1)) {
    // Some servers still write AUTH=PLAIN beside or instead of AUTH PLAIN.
    const [keyword = "", ...rest] = line.slice(4).trim().split(/[ =]+/);
    words.set(keyword.toUpperCase(), rest.join(" "));
  }
  const size = words.get("SIZE");
  return {
    pipelining: words.has("PIPELINING"),
    eightbitmime: words.has("8BITMIME"),
    smtputf8: words.has("SMTPUTF8"),
    starttls: words.has("STARTTLS"),
    enhancedstatuscodes: words.has("ENHANCEDSTATUSCODES"),
    requiretls: words.has("REQUIRETLS"),
    size: size === undefined ? null : /^[0-9]{1,15}$/.test(size) ? Number(size) : 0,
    auth: (words.get("AUTH") ?? "").toUpperCase().split(" ").filter(Boolean),
  };
}

/** Null: the session goes on in clear, which only opportunistic mode allows. */
async function startTls(opening: Opening, offered: Capabilities): Promise<TlsState | ConnectFailure | null> {
  const { wire, options, timeouts } = opening;
  const mayStayClear = options.tls.mode === "opportunistic";
  if (!offered.starttls) return mayStayClear ? null : tlsFailure("starttls", NO_STARTTLS);
  const [reply] = await wire.ask("STARTTLS\r\n", 1, timeouts.greeting_ms);
  if (wire.failure || !reply) return { ...failure(wire, "starttls", reply), tls_failed: true };
  if (reply.code >= 300) return mayStayClear ? null : { ...failure(wire, "starttls", reply), tls_failed: true };
  return secure(opening, "starttls");
}

/** The handshake, and the judgement of the certificate before another byte is sent. */
async function secure({ wire, options, timeouts }: Opening, stage: Stage): Promise<TlsState | ConnectFailure> {
  const { tls, host } = options;
  const secured = await wire.upgrade(tlsOptions(tls, host), timeouts.greeting_ms);
  if (!secured) return { ...failure(wire, stage, undefined), tls_failed: true };
  const objection = tls.mode === "verify" ? judgePeer(secured, tls, host) : null;
  if (objection) return tlsFailure(stage, objection);
  return {
    protocol: secured.getProtocol() ?? "unknown",
    cipher: secured.getCipher().standardName,
    authorized: secured.authorized,
  };
}

function judgePeer(secured: TLSSocket, tls: SessionTls, host: string): string | null {
  const reason = secured.authorizationError;
  const error = secured.authorized ? null : String(reason instanceof Error ? reason.message : (reason ?? "unknown"));
  const certificate = secured.getPeerCertificate(true);
  if (tls.check) return tls.check({ host, certificate, authorized: secured.authorized, authorization_error: error });
  if (error === null) return null;
  return `the certificate is not valid for ${host}: ${certificateWords(error, certificate.subjectaltname)}`;
}

async function authenticate(
  { wire, options, timeouts }: Opening,
  offered: Capabilities,
  isSecure: boolean,
): Promise<ConnectFailure | null> {
  // Credentials never travel in clear, whatever the server offers (RFC 4954 §4).
  if (!isSecure) return tlsFailure("auth", "login is only done over TLS");
  const result = await login(wire, options.auth!, { mechanisms: offered.auth, timeout_ms: timeouts.greeting_ms });
  if (result === "accepted") return null;
  if (result === "unsupported") {
    const detail = `no login mechanism in common (offered: ${offered.auth.join(" ").slice(0, 200) || "none"})`;
    return { kind: "failed", stage: "auth", cause: "protocol", reply: null, detail, tls_failed: false };
  }
  return failure(wire, "auth", result ?? undefined);
}

/** An open session. `send` one message at a time; when `usable` is false it is of no more use. */
export class Session {
  readonly kind = "session";
  readonly capabilities: Capabilities;
  readonly tls: TlsState | null;
  readonly banner: Reply;
  readonly #wire: Wire;
  readonly #timeouts: SessionTimeouts;
  #sent = 0;
  #isBusy = false;
  #needsReset = false;

  constructor({ wire, timeouts }: Opening, { capabilities, tls, banner }: Opened) {
    this.#wire = wire;
    this.#timeouts = timeouts;
    this.capabilities = capabilities;
    this.tls = tls;
    this.banner = banner;
  }

  /** Transactions begun on this session, whatever came of them. */
  get sent(): number {
    return this.#sent;
  }

  get usable(): boolean {
    return this.#wire.failure === null && !this.#isBusy && this.#sent < MESSAGES_PER_SESSION_MAX;
  }

  /**
   * Sends one message to one recipient. `parts` are the message's bytes in order (signature first, then the rest), CRLF
   * line ends. The outcome says exactly how far it came. Throws when called while busy or no longer usable.
   */
  async send(envelope: Envelope, parts: readonly Buffer[], hooks: SendHooks = {}): Promise<SendOutcome> {
    if (this.#isBusy) throw new Error("session is busy");
    if (this.#wire.failure) return { kind: "broken", stage: "mail", detail: this.#wire.failure.detail };
    if (!this.usable) throw new Error(`session has sent its ${MESSAGES_PER_SESSION_MAX} messages`);
    this.#isBusy = true;
    const { capabilities } = this;
    const job = { envelope, parts, hooks, capabilities, timeouts: this.#timeouts, needs_reset: this.#needsReset };
    const outcome = await runTransaction(this.#wire, job).catch((error) => {
      // Only the caller's hook throws. Where the transaction stands is unknown then: nothing more may be sent on it.
      this.close();
      throw error;
    });
    this.#isBusy = false;
    if (outcome.kind === "unsendable") return outcome;
    this.#sent++;
    // After the final reply no transaction is open; any earlier refusal leaves one, which RSET discards.
    this.#needsReset = outcome.kind === "refused" && outcome.stage !== "final";
    return outcome;
  }

  /** Says QUIT, waits up to five seconds for the answer, and closes. A session in the middle of a message just closes. */
  async quit(): Promise<void> {
    if (!this.#isBusy && !this.#wire.failure) await this.#wire.ask("QUIT\r\n", 1, QUIT_MS);
    this.close();
  }

  /** Closes at once. A message in flight ends as broken or ambiguous. */
  close(): void {
    this.#wire.fail("closed", "closed by us");
  }
}
