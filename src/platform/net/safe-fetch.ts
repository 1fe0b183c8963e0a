// HTTPS to places strangers name (webhooks, MTA-STS policies): resolved by our resolver, every address checked against
// the deny-table, connected to the very address checked, and everything limited. Follows no redirect, decompresses
// nothing, retries nothing. Not here: signing and retries (webhooks/), the table itself (addresses.ts).
import { isIP } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import type { Agent } from "undici";
import { tlsFailureWords } from "../../text/tls-words.ts";
import type { Answer, Resolver } from "../dns/resolver.ts";
import { type Inside, literalAddressHost, mayConnect } from "./addresses.ts";

export type FetchRequest = {
  method: "GET" | "POST" | "PUT" | "HEAD";
  url: string;
  headers: Record<string, string>;
  body?: Buffer | string;
  /** For the whole request: DNS, connection, TLS, headers and body. */
  timeout_ms: number;
  response_bytes_max: number;
  /**
   * What it means that the body is longer than that, breaks off or does not end in time: `fail` (the default) is no answer,
   * with `keep` the status is the answer, with as much of the body as came.
   */
  when_cut_short?: "fail" | "keep";
  /** To a receiver of a customer's own, which may stand in a network that the operator allows; default false. */
  to_customer?: boolean;
};

export type FetchFailure = "blocked" | "dns" | "connect" | "tls" | "timeout" | "too_large" | "protocol";

export type FetchResult =
  /** Header names in lower case; repeated ones are joined with ", ". */
  | { kind: "answered"; status: number; headers: Map<string, string>; body: Buffer; duration_ms: number }
  | { kind: "failed"; reason: string; code: FetchFailure; duration_ms: number };

export type SafeFetch = ((request: FetchRequest) => Promise<FetchResult>) & { close(): Promise<void> };

export type SafeFetchOptions = {
  resolver: Pick<Resolver, "a" | "aaaa">;
  /** What may be reached beside public addresses: networks only by requests to a customer's own receiver. */
  inside: Inside;
};

/** A failure in words for a customer, who learns the same of an absent name as of one that leads inside. */
export function failureText({ code, reason }: { code: string; reason: string }): string {
  return `${reason === UNREACHABLE ? "dns" : code}: ${reason}`;
}

const URL_LENGTH_MAX = 2_048;
/** RFC 1035 §2.3.4, written out. */
const NAME_LENGTH_MAX = 253;
const RESPONSE_HEADER_BYTES_MAX = 16_384;
const KEEP_ALIVE_MS = 4_000;
const KEEP_ALIVE_MS_MAX = 10_000;
const CONNECTIONS_PER_ORIGIN_MAX = 64;
/** A request has its own limit; this one ends connections whose request has gone. */
const CONNECT_TOTAL_MS_MAX = 15_000;
const ADDRESSES_TRIED_MAX = 4;
/** Mail, shells, databases: servers that read lines or frames and might act on what a TLS handshake looks like to them. */
const REFUSED_PORTS = new Set([
  ...[0, 21, 22, 23, 25, 53, 110, 111, 135, 139, 143, 389, 445, 465, 587, 636, 993, 995, 2525],
  ...[1433, 1521, 2375, 3306, 5432, 6379, 9042, 9092, 11211, 27017],
]);

const STOPPING = "the program is stopping";

/** Makes the one way out to strangers' HTTPS servers. It never throws for what the other side does; see FetchResult. */
export function createSafeFetch(options: SafeFetchOptions): SafeFetch {
  const dialling = new Set<TLSSocket>();
  // Connections are kept for each apart: what a customer may reach is no way for a policy's host.
  const outside = { ...options, inside: { loopback: options.inside.loopback } };
  const agents = new Map<SafeFetchOptions, Agent>();
  let isClosed = false;
  const run = async (request: FetchRequest): Promise<FetchResult> => {
    const undici = await loadUndici();
    if (isClosed) return { kind: "failed", reason: STOPPING, code: "protocol", duration_ms: 0 };
    const reach = request.to_customer ? options : outside;
    const agent = agents.get(reach) ?? agentFor(undici, reach, dialling);
    agents.set(reach, agent);
    return await fetchOnce({ undici, agent }, reach, request);
  };
  const close = async () => {
    isClosed = true;
    for (const socket of dialling) socket.destroy(new FetchError("protocol", STOPPING));
    await Promise.all(agents.values().map((agent) => agent.destroy()));
  };
  return Object.assign(run, { close });
}

type Undici = typeof import("undici");
/** With the first request: it takes some 20 MiB, which who asks nobody need not spend. */
const loadUndici = (): Promise<Undici> => import("undici");
type Loaded = { undici: Undici; agent: Agent };

function agentFor({ Agent }: Undici, options: SafeFetchOptions, dialling: Set<TLSSocket>): Agent {
  return new Agent({
    connect: connector(options, dialling),
    allowH2: false,
    pipelining: 1,
    connections: CONNECTIONS_PER_ORIGIN_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS_MAX,
    maxHeaderSize: RESPONSE_HEADER_BYTES_MAX,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/**
 * Whether a customer may give this URL: null, or a sentence that says why not. Looks at the text alone; a name that
 * resolves to a forbidden address is found when connecting.
 */
export function checkUrl(url: string, inside: Inside): string | null {
  if (url.length > URL_LENGTH_MAX) return `The URL is longer than ${URL_LENGTH_MAX} characters.`;
  if (/[\s\x00-\x1f\x7f]/.test(url)) return "The URL must not contain spaces or control characters.";
  const parsed = URL.parse(url);
  if (parsed === null) return "This is not a URL; write https://example.com/path.";
  // The standard for browsers mends `https:host` and `https:\\host`; other programs read them otherwise.
  if (!/^https:\/\/[^/\\]/i.test(url)) return "The URL must begin with https://.";
  if (parsed.username !== "" || parsed.password !== "") return "The URL must not contain a user name or password.";
  if (REFUSED_PORTS.has(Number(parsed.port || 443))) return `Port ${parsed.port} is not allowed.`;
  return checkHost(parsed.hostname, inside);
}

function checkHost(hostname: string, inside: Inside): string | null {
  const literal = literalAddressHost(hostname);
  if (literal !== null)
    return mayConnect(literal, inside)
      ? null
      : "The URL must not lead to a private, loopback, link-local or otherwise internal address.";
  const isName = hostname.includes(".") && hostname !== "." && hostname.length <= NAME_LENGTH_MAX;
  return isName ? null : "The URL's host must be a full domain name.";
}

// --- one request -----------------------------------------------------------------------------------------------------

class FetchError extends Error {
  readonly code: FetchFailure;
  constructor(code: FetchFailure, message: string) {
    super(message);
    this.code = code;
  }
}

async function fetchOnce(
  { undici, agent }: Loaded,
  options: SafeFetchOptions,
  request: FetchRequest,
): Promise<FetchResult> {
  const started = performance.now();
  const took = () => Math.round(performance.now() - started);
  const refusal = checkUrl(request.url, options.inside);
  if (refusal !== null) return { kind: "failed", reason: refusal, code: "blocked", duration_ms: took() };
  const limit = timeLimit(request.timeout_ms);
  try {
    const answer = await exchange(agent, request, limit);
    return { kind: "answered", ...answer, duration_ms: took() };
  } catch (error) {
    return { kind: "failed", ...explain(undici, error), duration_ms: took() };
  } finally {
    limit.end();
  }
}

type TimeLimit = { reached: Promise<never>; signal: AbortSignal; end(): void };

// undici follows the signal only once a request has a connection, hence the promise beside it: it covers waiting for DNS,
// for TLS and for a free connection.
function timeLimit(ms: number): TimeLimit {
  const abort = new AbortController();
  const { promise: reached, reject } = Promise.withResolvers<never>();
  reached.catch(() => undefined);
  const timer = setTimeout(() => {
    const error = new FetchError("timeout", `no complete answer within ${ms} ms`);
    reject(error);
    abort.abort(error);
  }, ms);
  return { reached, signal: abort.signal, end: () => clearTimeout(timer) };
}

type Answered = { status: number; headers: Map<string, string>; body: Buffer };

async function exchange(agent: Agent, request: FetchRequest, { reached, signal }: TimeLimit): Promise<Answered> {
  const url = new URL(request.url);
  const asked = agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: request.method,
    headers: request.headers,
    body: request.body ?? null,
    signal,
  });
  const response = await Promise.race([reached, asked]);
  // Reading may end early, and then the stream's own error has nobody waiting for it.
  response.body.on("error", () => {});
  const reading = readLimited(response.body, request);
  // What is kept as it comes ends with the signal.
  const body = await (request.when_cut_short === "keep" ? reading : Promise.race([reached, reading]));
  return { status: response.statusCode, headers: headerMap(response.headers), body };
}

async function readLimited(stream: AsyncIterable<Buffer>, request: FetchRequest): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // Leaving the loop early destroys the stream and with it the connection.
    for await (const chunk of stream) {
      chunks.push(chunk.subarray(0, request.response_bytes_max - length));
      length += chunk.length;
      if (length <= request.response_bytes_max) continue;
      throw new FetchError("too_large", `the response is longer than ${request.response_bytes_max} bytes`);
    }
  } catch (error) {
    if (request.when_cut_short !== "keep") throw error;
  }
  return Buffer.concat(chunks);
}

function headerMap(headers: Record<string, string | string[] | undefined>): Map<string, string> {
  const map = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) map.set(name.toLowerCase(), Array.isArray(value) ? value.join(", ") : value);
  }
  return map;
}

function explain({ errors }: Undici, error: unknown): { code: FetchFailure; reason: string } {
  if (error instanceof FetchError) return { code: error.code, reason: error.message };
  if (error instanceof errors.HeadersOverflowError)
    return { code: "too_large", reason: "the response's headers are too large" };
  // What undici says of our own arguments is a bug of Postern, not an answer.
  if (error instanceof errors.InvalidArgumentError || error instanceof TypeError) throw error;
  const { message } = error as Error;
  return { code: "protocol", reason: cleanReason(message) };
}

function cleanReason(message: string): string {
  return message.replace(/[^ -~]/g, "?").slice(0, 200) || "the connection ended without an answer";
}

// --- one connection --------------------------------------------------------------------------------------------------

type ConnectOptions = { hostname: string; port: string };
/** Connections that are not ready yet: undici does not know them, so closing must end them here. */
type Dialling = Set<TLSSocket>;
type ConnectCallback = (...result: [null, TLSSocket] | [Error, null]) => void;

// undici calls this whenever an origin needs a new connection, so that a name's address is judged each time.
function connector(
  options: SafeFetchOptions,
  dialling: Dialling,
): (target: ConnectOptions, callback: ConnectCallback) => void {
  return (target, callback) => {
    connectChecked(options, target, dialling).then(
      (socket) => callback(null, socket),
      (error) => callback(error, null),
    );
  };
}

async function connectChecked(
  options: SafeFetchOptions,
  target: ConnectOptions,
  dialling: Dialling,
): Promise<TLSSocket> {
  const deadline = performance.now() + CONNECT_TOTAL_MS_MAX;
  const hostname = target.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const addresses = (await allowedAddresses(options, hostname)).slice(0, ADDRESSES_TRIED_MAX);
  let failure: Error = new FetchError("connect", "no address to connect to");
  for (const [index, address] of addresses.entries()) {
    const timeoutMs = Math.max(1, (deadline - performance.now()) / (addresses.length - index));
    try {
      return await connectTo(address, { hostname, port: Number(target.port || 443), timeoutMs }, dialling);
    } catch (error) {
      failure = error as Error;
      // A bad certificate is the host's, and the end of the program is everybody's: no other address will do better.
      if (error instanceof FetchError && (error.code === "tls" || error.code === "protocol")) break;
    }
  }
  throw failure;
}

/**
 * Said of a name that is absent and of one that leads inside: nobody else may learn which names an operator's own
 * network has.
 */
const UNREACHABLE = "the host has no address on the public internet";

// One forbidden address forbids the name: a mixed answer is how a name is turned from outside to inside.
async function allowedAddresses(options: SafeFetchOptions, hostname: string): Promise<string[]> {
  const literal = literalAddressHost(hostname);
  const addresses = literal === null ? await resolveHost(options.resolver, hostname) : [literal];
  const forbidden = addresses.find((address) => !mayConnect(address, options.inside));
  if (forbidden !== undefined) throw new FetchError("blocked", UNREACHABLE);
  return addresses;
}

// IPv4 first: a machine without IPv6 routes is common, and a web host without IPv4 is not.
async function resolveHost(resolver: SafeFetchOptions["resolver"], hostname: string): Promise<string[]> {
  const answers = await Promise.all([resolver.a(hostname), resolver.aaaa(hostname)]);
  const addresses = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
  if (addresses.length === 0) throw new FetchError("dns", whyUnresolved(answers));
  return addresses;
}

function whyUnresolved(answers: Answer<string>[]): string {
  const failed = answers.find((answer) => answer.kind === "failed");
  if (failed) return `the host could not be looked up: ${failed.reason}`;
  return UNREACHABLE;
}

type TlsTarget = { hostname: string; port: number; timeoutMs: number };

function connectTo(address: string, target: TlsTarget, dialling: Dialling): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: address,
      port: target.port,
      // RFC 6066 §3: no server name for an address; the certificate is then checked against `host`.
      servername: isIP(target.hostname) ? "" : target.hostname,
      ALPNProtocols: ["http/1.1"],
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
    });
    dialling.add(socket);
    let connected = false;
    const settle = () => {
      clearTimeout(timer);
      dialling.delete(socket);
    };
    const fail = (error: FetchError) => {
      settle();
      socket.destroy();
      reject(error);
    };
    const late = () => fail(new FetchError("timeout", "the connection was not ready in time"));
    const timer = setTimeout(late, target.timeoutMs);
    socket.once("connect", () => {
      connected = true;
      socket.setNoDelay(true);
    });
    // Stays for the socket's life: an error after the promise is settled is undici's to report.
    socket.on("error", (error) => fail(connectFailure(error, connected)));
    socket.once("secureConnect", () => {
      settle();
      resolve(socket);
    });
  });
}

function connectFailure(error: NodeJS.ErrnoException | FetchError, connected: boolean): FetchError {
  if (error instanceof FetchError) return error;
  if (connected) return new FetchError("tls", cleanReason(tlsFailureWords(error)));
  return new FetchError("connect", cleanReason(error.code ? `${error.code}: ${error.message}` : error.message));
}
