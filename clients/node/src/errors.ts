// What goes wrong, by kind: an answer that is no success (ApiError and what it is made into), no answer (ConnectionError,
// TimeoutError), and a webhook that cannot be trusted (WebhookSignatureError). No message ever holds the API key.

/** Everything that this library throws. */
export class PosternError extends Error {
  override name = "PosternError";
}

/** No answer came: the connection could not be made, or it broke. */
export class ConnectionError extends PosternError {
  override name = "ConnectionError";
}

/** No answer came in time. */
export class TimeoutError extends ConnectionError {
  override name = "TimeoutError";
}

/** What is known of an answer besides its body. */
export type ResponseMeta = {
  status: number;
  headers: Headers;
  request_id: string | null;
  rate_limit: { limit: number; remaining: number; reset: number | null } | null;
};

/** An answer that is no success. `code` is stable and for programs, the message is for people. */
export class ApiError extends PosternError {
  override name = "ApiError";
  readonly status: number;
  /** The server's `code`; empty where the answer was no error of the API's (a proxy's page, for example). */
  readonly code: string;
  /** The field at fault, such as `attachments[0].filename`. */
  readonly field: string | null;
  readonly request_id: string | null;
  /** The whole body: an object, or the text where it was no JSON. */
  readonly body: unknown;
  readonly response: ResponseMeta;

  constructor(message: string, response: ResponseMeta, body: unknown) {
    super(message);
    const fields = isRecord(body) ? body : {};
    this.status = response.status;
    this.code = typeof fields.code === "string" ? fields.code : "";
    this.field = typeof fields.field === "string" ? fields.field : null;
    this.request_id = response.request_id ?? (typeof fields.request_id === "string" ? fields.request_id : null);
    this.body = body;
    this.response = response;
  }
}

/** 400: the request is not right; `field` says where. */
export class ValidationError extends ApiError {
  override name = "ValidationError";
}

/** 401: no key, or one that is not valid (any more). */
export class AuthenticationError extends ApiError {
  override name = "AuthenticationError";
}

/** 403: the key, the plan or the state of the organization or domain does not allow it. */
export class PermissionError extends ApiError {
  override name = "PermissionError";
}

/** 404. */
export class NotFoundError extends ApiError {
  override name = "NotFoundError";
}

/** 409: it exists already, or its state does not allow it. */
export class ConflictError extends ApiError {
  override name = "ConflictError";
}

/** 422: each recipient is on a suppression list. */
export class AllSuppressedError extends ApiError {
  override name = "AllSuppressedError";
  readonly suppressed: { email: string; reason: string }[];

  constructor(message: string, response: ResponseMeta, body: unknown) {
    super(message, response, body);
    const list = isRecord(body) ? body.suppressed : null;
    this.suppressed = Array.isArray(list) ? (list as { email: string; reason: string }[]) : [];
  }
}

/** 429: which limit, and when to try again. */
export class RateLimitError extends ApiError {
  override name = "RateLimitError";
  readonly limit_type: string;
  readonly limit: number | null;
  readonly used: number | null;
  /** Seconds. */
  readonly retry_after: number | null;
  readonly warming_phase: string;

  constructor(message: string, response: ResponseMeta, body: unknown) {
    super(message, response, body);
    const fields = isRecord(body) ? body : {};
    this.limit_type = typeof fields.limit_type === "string" ? fields.limit_type : "";
    this.limit = numberOf(fields.limit);
    this.used = numberOf(fields.used);
    this.retry_after = numberOf(fields.retry_after_seconds) ?? retryAfterOf(response.headers);
    this.warming_phase = typeof fields.warming_phase === "string" ? fields.warming_phase : "";
  }
}

/** 5xx. */
export class ServerError extends ApiError {
  override name = "ServerError";
}

/** Why a webhook was not accepted. */
export type SignatureFailure =
  | "missing_header"
  | "malformed_header"
  | "timestamp_too_old"
  | "timestamp_in_future"
  | "no_match"
  | "malformed_body"
  | "missing_secret";

/** A webhook that cannot be trusted. Answer it with 400. */
export class WebhookSignatureError extends PosternError {
  override name = "WebhookSignatureError";
  readonly reason: SignatureFailure;

  constructor(reason: SignatureFailure, message: string) {
    super(message);
    this.reason = reason;
  }
}

const BY_STATUS: { [status: number]: typeof ApiError } = {
  400: ValidationError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  422: AllSuppressedError,
  429: RateLimitError,
};

/** The error of its kind for an answer that is no success. `body` is parsed JSON, or text. */
export function errorOf(response: ResponseMeta, body: unknown): ApiError {
  const Kind = BY_STATUS[response.status] ?? (response.status >= 500 ? ServerError : ApiError);
  return new Kind(messageOf(response.status, body), response, body);
}

/** The sentence of an error: that of a 429 stands in `message`, as its `error` is a word for programs. */
function messageOf(status: number, body: unknown): string {
  if (isRecord(body)) {
    for (const said of [body.message, body.error]) if (typeof said === "string" && said !== "") return said;
  }
  return `the server answered ${status}`;
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Seconds of a Retry-After field (RFC 9110 §10.2.3): the server writes them, a proxy before it may write a date. */
export function retryAfterOf(headers: Headers): number | null {
  const value = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value);
  const at = HTTP_DATE.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
