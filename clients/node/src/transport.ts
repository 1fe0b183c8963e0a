// One request and its repetitions: URL, headers, body, time limit, what is worth another try and when. Not here: which
// operations there are (generated/), pages (pages.ts).
import { randomUUID } from "node:crypto";
import { ConnectionError, errorOf, PosternError, type ResponseMeta, retryAfterOf, TimeoutError } from "./errors.ts";

export const VERSION = "0.1.0";

export type ClientOptions = {
  /** Default: the environment's `POSTERN_API_KEY`. */
  apiKey?: string;
  /** Where your Postern is; a path before `/v1` is kept. Default: the environment's `POSTERN_BASE_URL`. */
  baseUrl?: string;
  /** Milliseconds for one try. Default: 30,000. */
  timeoutMs?: number;
  /** Tries after the first. Default: 2. */
  maxRetries?: number;
  /** Sent with every request. */
  headers?: Record<string, string>;
  /** In place of the global one. */
  fetch?: typeof globalThis.fetch;
  /** Hears of each try: method, path, status or error, milliseconds. Never of keys or bodies. */
  logger?: (line: TryRecord) => void;
};

export type TryRecord = {
  method: string;
  path: string;
  attempt: number;
  status: number | null;
  error: string | null;
  ms: number;
};

export type RequestOptions = {
  /** Makes repeating safe: the same key gets the stored answer. Made for you where it is not given. */
  idempotencyKey?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
  maxRetries?: number;
  headers?: Record<string, string>;
};

/** What is asked. Values of `query` that are undefined are left out. */
export type Call = {
  method: string;
  /** Encoded, from `/v1`. */
  path: string;
  query?: object;
  body?: { json: unknown } | { bytes: Uint8Array };
  answer: "json" | "text" | "bytes";
  /** It takes an Idempotency-Key. */
  idempotent: boolean;
};

export type Transport = { request(call: Call, options?: RequestOptions): Promise<unknown> };

/** What a test puts in the place of time. */
export type Timing = { sleep(ms: number, signal?: AbortSignal): Promise<void>; random(): number };

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const BACKOFF_MS = 500;
const BACKOFF_MS_MAX = 8_000;
/** The longest that setTimeout knows. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** All waits of one call together. */
const WAIT_MS_MAX = 60_000;
/** Statuses that say "later", not "no". */
const WORTH_RETRYING = new Set([500, 503]);
/** The limits of a 429 that are over soon; the others last for hours. */
const SHORT_LIMITS = new Set(["requests_per_second", "per_minute"]);
/** Statuses of answers that never have a body. */
const WITHOUT_BODY = new Set([204, 205]);
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);

const metas = new WeakMap<object, ResponseMeta>();

/** Status, headers, request id and rate limit of the answer that a result came from. */
export function responseOf(result: object): ResponseMeta | undefined {
  return metas.get(result);
}

/** Throws where the key or the URL is missing or wrong. */
export function createTransport(options: ClientOptions, timing: Timing = REAL_TIME): Transport {
  const settings = settingsOf(options);
  return {
    async request(call, given = {}) {
      checkPath(call.path);
      const body = bodyOf(call);
      const headers = headersOf(settings, call, given);
      const isRepeatable = REPEATABLE.has(call.method) || headers.has("idempotency-key");
      const tries = isRepeatable ? 1 + Math.max(0, given.maxRetries ?? settings.maxRetries) : 1;
      let waitedMs = 0;
      for (let attempt = 1; ; attempt += 1) {
        const outcome = await tryOnce(settings, call, { headers, body, given, attempt });
        if (outcome.kind === "answer") return outcome.result;
        const waitMs = outcome.isWorthRetrying && attempt < tries ? backoffMs(outcome, attempt, timing) : null;
        if (waitMs === null || waitedMs + waitMs > WAIT_MS_MAX) throw outcome.error;
        waitedMs += waitMs;
        await timing.sleep(waitMs, given.signal);
      }
    },
  };
}

type Settings = {
  apiKey: string;
  baseUrl: string;
  timeoutMs: number;
  maxRetries: number;
  headers: Record<string, string>;
  fetch: typeof globalThis.fetch;
  logger: ((line: TryRecord) => void) | undefined;
};

function settingsOf(options: ClientOptions): Settings {
  const apiKey = options.apiKey ?? process.env.POSTERN_API_KEY ?? "";
  if (apiKey === "") throw new PosternError("no API key: give one, or set POSTERN_API_KEY");
  if (/[^\x21-\x7e]/.test(apiKey)) throw new PosternError("the API key holds a character that no key has");
  const baseUrl = options.baseUrl ?? process.env.POSTERN_BASE_URL ?? "";
  if (!/^https?:\/\/[^/?#\s]+[^?#\s]*$/.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new PosternError("no address: give baseUrl, or set POSTERN_BASE_URL, such as https://mail.example.eu");
  }
  return {
    apiKey,
    baseUrl: baseUrl.replace(/\/+$/, ""),
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    maxRetries: options.maxRetries ?? RETRIES,
    headers: options.headers ?? {},
    fetch: options.fetch ?? globalThis.fetch,
    logger: options.logger,
  };
}

function headersOf(
  { apiKey, headers: own }: Settings,
  { body, answer, idempotent }: Call,
  given: RequestOptions,
): Headers {
  const headers = new Headers();
  for (const from of [own, given.headers ?? {}]) {
    for (const [name, value] of Object.entries(from)) headers.set(name, checkedHeader(name, value));
  }
  headers.set("authorization", `Bearer ${apiKey}`);
  headers.set("user-agent", `postern-node/${VERSION} node/${process.versions.node}`);
  if (answer === "json") headers.set("accept", "application/json");
  if (body) headers.set("content-type", "json" in body ? "application/json" : "application/octet-stream");
  if (idempotent) headers.set("idempotency-key", idempotencyKeyOf(given));
  return headers;
}

/** Once for all tries. Throws what JSON throws where the input cannot be written as JSON. */
function bodyOf({ body }: Call): string | Uint8Array | undefined {
  return body && ("json" in body ? JSON.stringify(body.json) : body.bytes);
}

/** The option, else the header of this call, else one made for it. An empty one would protect from nothing. */
function idempotencyKeyOf({ idempotencyKey, headers = {} }: RequestOptions): string {
  const [, ofHeader] = Object.entries(headers).find(([name]) => name.toLowerCase() === "idempotency-key") ?? [];
  const key = checkedHeader("Idempotency-Key", idempotencyKey ?? ofHeader ?? `auto_${randomUUID()}`);
  if (key.trim() === "") throw new PosternError("the idempotency key is empty");
  return key;
}

/** A line end would begin another header (RFC 9110 §5.5). */
function checkedHeader(name: string, value: unknown): string {
  const text = String(value);
  if (/[^\t\x20-\x7e]/.test(text))
    throw new PosternError(`the header ${name} may hold printable characters of ASCII only`);
  return text;
}

/** `..` as an id would make another path of it, on the way or at the server (RFC 3986 §5.2.4). */
function checkPath(path: string): void {
  const segments = path.split(/[?#]/, 1).join("").split("/");
  if (segments.some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    throw new PosternError(`an id cannot be '.' or '..': ${path}`);
}

// One try ------------------------------------------------------------------------------------------------------------

type Outcome =
  | { kind: "answer"; result: unknown }
  | { kind: "failure"; error: Error; isWorthRetrying: boolean; retryAfterS: number | null };

type Try = { headers: Headers; body: string | Uint8Array | undefined; given: RequestOptions; attempt: number };

async function tryOnce(settings: Settings, call: Call, { headers, body, given, attempt }: Try): Promise<Outcome> {
  const startedAt = performance.now();
  const record = (status: number | null, error: string | null): void => {
    const ms = Math.round(performance.now() - startedAt);
    settings.logger?.({ method: call.method, path: call.path, attempt, status, error, ms });
  };
  const limit = limitOf(given.timeoutMs ?? settings.timeoutMs + longPollMs(call));
  const broken = (error: unknown): unknown => brokenBy(error, { settings, given, limit });
  const signal = given.signal ? AbortSignal.any([given.signal, limit.signal]) : limit.signal;
  let isDownload = false;
  try {
    const response = await settings.fetch(urlOf(settings, call), {
      method: call.method,
      headers,
      signal,
      redirect: "manual",
      ...(body === undefined ? {} : { body: body as never }),
    });
    isDownload = call.answer === "bytes" && response.ok;
    const outcome = isDownload ? downloadOf(response, limit, broken) : await readAnswer(response, call);
    record(response.status, null);
    return outcome;
  } catch (error) {
    const failure = broken(error);
    if (!(failure instanceof ConnectionError)) throw failure;
    record(null, failure.message);
    return { kind: "failure", error: failure, isWorthRetrying: true, retryAfterS: null };
  } finally {
    if (!isDownload) limit.stop();
  }
}

/** What the server was asked to wait for before it answers (GET /v1/events). */
function longPollMs({ query }: Call): number {
  const seconds = Number((query as { wait?: unknown } | undefined)?.wait ?? 0);
  return seconds > 0 ? seconds * 1000 : 0;
}

/** The time that one try may take, and each piece of a download. */
type Limit = { ms: number; signal: AbortSignal; start(): void; stop(): void };

function limitOf(ms: number): Limit {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const limit: Limit = {
    ms,
    signal: over.signal,
    start() {
      clearTimeout(timer);
      timer = setTimeout(() => over.abort(), Math.min(ms, TIMER_MS_MAX));
    },
    stop: () => clearTimeout(timer),
  };
  limit.start();
  return limit;
}

/** What the caller hears: its own signal's reason, or which way there was no answer. */
function brokenBy(
  error: unknown,
  { settings, given, limit }: { settings: Settings; given: RequestOptions; limit: Limit },
): unknown {
  if (given.signal?.aborted) return given.signal.reason;
  if (limit.signal.aborted) return new TimeoutError(`no answer within ${limit.ms} ms`, { cause: error });
  return new ConnectionError(`the connection failed: ${reasonOf(settings, error)}`, { cause: error });
}

/** What OpenSSL makes of bytes that are not TLS, such as a plain HTTP answer. */
const NO_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL)$/;

/** fetch says only "fetch failed"; the reason stands in its cause. */
function reasonOf({ baseUrl }: Settings, error: unknown): string {
  const { message, cause } = error as Error;
  if (NO_TLS.test(String((cause as { code?: string } | undefined)?.code))) {
    const { host } = new URL(baseUrl);
    return `the server at ${host} does not speak TLS: is its address http://${host}?`;
  }
  return cause instanceof Error ? cause.message || String((cause as { code?: string }).code) : message;
}

async function readAnswer(response: Response, call: Call): Promise<Outcome> {
  const meta = metaOf(response);
  if (!response.ok) return failureOf(meta, await response.text());
  switch (call.answer) {
    case "text":
      return { kind: "answer", result: await response.text() };
    default:
      if (call.method === "HEAD" || WITHOUT_BODY.has(response.status)) return { kind: "answer", result: null };
      return answerOf(meta, await response.text());
  }
}

/** Its bytes as they come. Each piece has the whole time again, so that a long one is not cut where a short one is not. */
function downloadOf(response: Response, limit: Limit, broken: (error: unknown) => unknown): Outcome {
  const from = (response.body ?? new Blob([]).stream()).getReader();
  limit.stop();
  const pieces = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        limit.start();
        try {
          const { done, value } = await from.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(broken(error));
        } finally {
          limit.stop();
        }
      },
      cancel: (reason) => from.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return { kind: "answer", result: withMeta(pieces, metaOf(response)) };
}

/** A success whose body is not JSON did not come from Postern, or not whole. */
function answerOf(meta: ResponseMeta, text: string): Outcome {
  const value = jsonOf(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const error = new ConnectionError(`the answer (${meta.status}) is not JSON`);
    return { kind: "failure", error, isWorthRetrying: true, retryAfterS: null };
  }
  return { kind: "answer", result: withMeta(value, meta) };
}

function failureOf(meta: ResponseMeta, text: string): Outcome {
  const body = jsonOf(text) ?? text;
  const error = errorOf(meta, body);
  const limitType = (body as { limit_type?: unknown }).limit_type;
  const isShort = meta.status === 429 && typeof limitType === "string" && SHORT_LIMITS.has(limitType);
  const isWorthRetrying = isShort || WORTH_RETRYING.has(meta.status);
  return { kind: "failure", error, isWorthRetrying, retryAfterS: retryAfterOf(meta.headers) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function metaOf(response: Response): ResponseMeta {
  const { headers, status } = response;
  const number = (name: string): number | null => (headers.has(name) ? Number(headers.get(name)) : null);
  const [limit, remaining] = [number("ratelimit-limit"), number("ratelimit-remaining")];
  return {
    status,
    headers,
    request_id: headers.get("x-request-id"),
    rate_limit: limit === null || remaining === null ? null : { limit, remaining, reset: number("ratelimit-reset") },
  };
}

function withMeta<T extends object>(value: T, meta: ResponseMeta): T {
  metas.set(value, meta);
  return value;
}

/** The record inside an answer, with the meta of the whole. An answer without it did not come from Postern. */
export function recordIn(whole: object, name: string): object {
  const meta = metas.get(whole);
  const record = (whole as Record<string, unknown>)[name];
  if (typeof record !== "object" || record === null) throw new ConnectionError(`the answer has no '${name}'`);
  if (meta) metas.set(record, meta);
  return record;
}

function urlOf({ baseUrl }: Settings, { path, query = {} }: Call): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) pairs.append(name, textOf(value));
  }
  const search = pairs.toString();
  return search === "" ? baseUrl + path : `${baseUrl}${path}?${search}`;
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

// Waiting ------------------------------------------------------------------------------------------------------------

/** As the server asks; else half a second, doubled with each try, and some of it by chance so that clients spread. */
function backoffMs({ retryAfterS }: { retryAfterS: number | null }, attempt: number, { random }: Timing): number {
  if (retryAfterS !== null) return retryAfterS * 1000;
  const most = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** (attempt - 1));
  return Math.round(most * (0.75 + 0.25 * random()));
}

const REAL_TIME: Timing = {
  random: Math.random,
  sleep: (ms, signal) =>
    new Promise((done, fail) => {
      const stop = (): void => {
        clearTimeout(timer);
        fail(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        done();
      }, ms);
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    }),
};
