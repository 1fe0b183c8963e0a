// One attempt: signed with the secrets valid now, posted, judged. Any 2xx is success; nothing else is, redirects included.
// What the receiver does is a value, never an exception. Not here: when, and what follows from it.
import { createLru, type Lru } from "../platform/fair/lru.ts";
import { failureText } from "../platform/net/safe-fetch.ts";
import type { SealedColumn } from "../platform/storage/sealed-columns.ts";
import type { World } from "../platform/world.ts";
import { signatureHeader, standardHeaders } from "./sign.ts";
import type { AttemptResult, EndpointRow, WebhookEventType } from "./types.ts";

/** DNS, TLS and the answer together. */
export const ATTEMPT_TIMEOUT_MS = 15_000;
/** The answer's body is read to keep the connection usable, and not looked at. */
const RESPONSE_BYTES_MAX = 4_096;
const ERROR_LENGTH_MAX = 300;
const USER_AGENT = "Postern-Webhooks/1";

export type AttemptWorld = Pick<World, "clock" | "random" | "seal" | "fetch" | "log">;

export type Attempt = {
  event: WebhookEventType;
  event_id: string;
  body: Buffer;
  /** 1-indexed. */
  attempt: number;
  timeout_ms?: number;
};

/** Posts the event once. */
export async function makeAttempt(world: AttemptWorld, endpoint: EndpointRow, what: Attempt): Promise<AttemptResult> {
  const attempt_id = world.random.uuid();
  const secrets = validSecrets(world, endpoint);
  if (secrets === null) {
    const error = "the signing secret cannot be opened with this master key; rotate it";
    return { attempt_id, status_code: null, error, duration_ms: 0 };
  }
  const result = await world.fetch({
    method: "POST",
    url: endpoint.webhook_url,
    headers: headersOf(world, secrets, what, attempt_id),
    body: what.body,
    timeout_ms: what.timeout_ms ?? ATTEMPT_TIMEOUT_MS,
    response_bytes_max: RESPONSE_BYTES_MAX,
    when_cut_short: "keep",
    to_customer: true,
  });
  const duration_ms = Math.round(result.duration_ms);
  if (result.kind === "failed")
    return { attempt_id, status_code: null, error: failureText(result).slice(0, ERROR_LENGTH_MAX), duration_ms };
  const { status } = result;
  const error = status >= 200 && status <= 299 ? null : `the receiver answered ${status}`;
  return { attempt_id, status_code: status, error, duration_ms };
}

function headersOf(world: AttemptWorld, secrets: string[], what: Attempt, attemptId: string): Record<string, string> {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": USER_AGENT,
    "X-Service-Event": what.event,
    "X-Service-Event-ID": what.event_id,
    "X-Service-Delivery-ID": attemptId,
    "X-Service-Attempt": String(what.attempt),
  };
  if (secrets.length > 0) {
    const unixSeconds = Math.floor(world.clock.now() / 1000);
    headers["X-Service-Signature"] = signatureHeader(secrets, unixSeconds, what.body);
    Object.assign(headers, standardHeaders(secrets, { id: what.event_id, unixSeconds, body: what.body }));
  }
  return headers;
}

/** The secrets that sign now, newest first; none if the endpoint has none; null when its current one cannot be opened. */
function validSecrets(world: Pick<World, "clock" | "seal" | "log">, endpoint: EndpointRow): string[] | null {
  if (endpoint.secret === null) return [];
  try {
    return [openSecret(world, endpoint, endpoint.secret), ...previousSecret(world, endpoint)];
  } catch (err) {
    world.log.error({ err, webhook_id: endpoint.id }, "a webhook's signing secret cannot be opened");
    return null;
  }
}

/** While its grace lasts. One that cannot be opened signs nothing: it was rotated away because its master key is lost. */
function previousSecret(world: Pick<World, "clock" | "seal">, endpoint: EndpointRow): string[] {
  const { previous_secret: previous, previous_secret_expires_at: until } = endpoint;
  if (!previous || !until || world.clock.now() >= until.getTime()) return [];
  try {
    return [openSecret(world, endpoint, previous)];
  } catch {
    return [];
  }
}

const OPENED_MAX = 5_000;
const opened = new WeakMap<World["seal"], Lru<string>>();

export const SEALED: readonly SealedColumn[] = ["secret", "previous_secret"].map((column) => ({
  ...{ table: "webhook", column, key: ["org_id", "id"] },
  context: ({ org_id, id }) => secretContext(org_id!, id!),
}));

/** What a webhook's secret is sealed for: its organization and itself, so that it opens in no other row. */
export function secretContext(orgId: string, webhookId: string): string {
  return `webhook-secret:${orgId}:${webhookId}`;
}

// Opening takes a key derivation and a decryption; the sealed bytes are unique, so what they open to may be remembered.
function openSecret(world: Pick<World, "seal">, endpoint: EndpointRow, sealed: Buffer): string {
  const known = openedOf(world.seal);
  const key = `${endpoint.id}:${sealed.toString("base64")}`;
  let secret = known.get(key);
  if (secret === undefined) {
    secret = world.seal.open(sealed, secretContext(endpoint.org_id, endpoint.id)).toString("utf8");
    known.set(key, secret);
  }
  return secret;
}

function openedOf(seal: World["seal"]): Lru<string> {
  let known = opened.get(seal);
  if (!known) {
    known = createLru(OPENED_MAX);
    opened.set(seal, known);
  }
  return known;
}
