// The only place that knows how a Refusal, a schema error or a bug becomes an HTTP answer.
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { nearName } from "../http/near-name.ts";
import { Crowded, isDeadlock, isOutOfTime, isUnavailable } from "../platform/database/db.ts";
import type { Log } from "../platform/process/log.ts";
import { Refusal, type RefusalKind } from "../platform/refusal.ts";
import { isStoreTrouble } from "../platform/storage/blobs.ts";
import { bodyTooLarge } from "./body/too-large.ts";

const STATUS: Record<RefusalKind, number> = {
  validation_error: 400,
  invalid_json: 400,
  payload_too_large: 400,
  template_variable_missing: 400,
  template_error: 400,
  missing_api_key: 401,
  invalid_api_key: 401,
  not_signed_in: 401,
  sign_in_failed: 401,
  second_factor_needed: 401,
  proof_needed: 403,
  role_not_allowed: 403,
  request_not_allowed: 403,
  domain_not_ready: 403,
  domain_not_owned: 403,
  plan_limit_reached: 403,
  organization_in_review: 403,
  organization_suspended: 403,
  test_key_not_allowed: 403,
  mask_key_not_allowed: 403,
  not_found: 404,
  already_exists: 409,
  idempotency_conflict: 409,
  invalid_state: 409,
  all_recipients_suppressed: 422,
  rate_limit_exceeded: 429,
  unavailable: 503,
};

/** How to ask with a key (RFC 6750 §3): a request without one gets no error code, RFC 6750 §3.1. */
const CHALLENGES: Partial<Record<RefusalKind, string>> = {
  missing_api_key: 'Bearer realm="postern"',
  invalid_api_key: 'Bearer realm="postern", error="invalid_token"',
};
const SLOW_RETRY_S = 5;
const CROWDED = "too many of your requests are under way; try again shortly";

/** Answers `error` on `reply`: status, `{error, code, field, request_id}`, and Retry-After for 429 and 503. */
export function answerError(log: Log, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = asRefusal(error as FastifyError, request);
  if (isStoreTrouble(error)) log.error({ err: error, request_id: request.id }, "the store of large bodies fails");
  if (!refusal) {
    log.error({ err: error, request_id: request.id, route: request.routeOptions?.url }, "a request failed");
    reply.code(500).send({ error: "an internal error occurred", code: "internal_error", request_id: request.id });
    return;
  }
  const status = STATUS[refusal.kind];
  const wait = refusal.detail.retry_after_seconds ?? (status === 503 ? 1 : undefined);
  if (wait !== undefined) reply.header("retry-after", String(Math.max(1, Math.ceil(wait))));
  const challenge = CHALLENGES[refusal.kind];
  if (challenge) reply.header("www-authenticate", challenge);
  reply.code(status).send(refusalBody(refusal, request.id));
}

/** The error body of a refusal; for 429 the contract's richer one. Also used for the items of a batch. */
export function refusalBody(refusal: Refusal, requestId?: string): Record<string, unknown> {
  const { field, body } = refusal.detail;
  const id = requestId === undefined ? {} : { request_id: requestId };
  if (refusal.kind === "rate_limit_exceeded") {
    return { error: "rate_limit_exceeded", code: "rate_limit_exceeded", message: refusal.message, ...body, ...id };
  }
  return { error: refusal.message, code: refusal.kind, ...(field === undefined ? {} : { field }), ...body, ...id };
}

function asRefusal(
  error: FastifyError & { retry_after_seconds?: number },
  request: Pick<FastifyRequest, "routeOptions">,
): Refusal | null {
  if (error instanceof Refusal) return error;
  if (error.validation) return fromValidation(error);
  if (isNoRoom(error)) return new Refusal("unavailable", "there is no room on the disk at the moment; try again later");
  if (isStoreTrouble(error)) return new Refusal("unavailable", "the store of large bodies fails; try again shortly");
  if (error instanceof Crowded) return new Refusal("unavailable", CROWDED);
  if (isOutOfTime(error)) {
    return new Refusal("unavailable", "the answer took too long; ask for less, or try again later", {
      retry_after_seconds: SLOW_RETRY_S,
    });
  }
  if (isDeadlock(error))
    return new Refusal("unavailable", "another request was changing the same data; try again shortly");
  if (isUnavailable(error)) return new Refusal("unavailable", "the database cannot be reached; try again shortly");
  const vanished = asVanished(error);
  if (vanished) return vanished;
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return bodyTooLarge(request);
    case "FST_REQ_FILE_TOO_LARGE":
      return new Refusal("payload_too_large", "the file is larger than allowed");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Refusal("validation_error", "a request with a body needs Content-Type: application/json");
    case "FST_ERR_BAD_URL":
      return new Refusal("validation_error", "the path is not correctly percent-encoded (RFC 3986 §2.1)");
    default:
      break;
  }
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500) return new Refusal("invalid_json", `the request cannot be read: ${error.message}`);
  return null;
}

/** A full disk under the blobs; PostgreSQL says its own 53100, which is unavailable. */
function isNoRoom(error: { code?: string }): boolean {
  return error.code === "ENOSPC" || error.code === "EDQUOT";
}

/** What a request found was deleted before it could refer to it: a foreign key says so (SQLSTATE 23503), and what it was. */
function asVanished(error: { code?: string; detail?: string }): Refusal | null {
  if (error.code !== "23503") return null;
  const table = /is not present in table "([a-z_]{1,63})"/.exec(error.detail ?? "")?.[1];
  return table === undefined
    ? null
    : new Refusal("not_found", `the ${table.replaceAll("_", " ")} was deleted meanwhile`);
}

/** The refusal for what the validator found wrong with a body; also for the items of a batch. */
export function shapeRefusal(errors: unknown): Refusal {
  return fromValidation({ validation: errors, validationContext: "body" } as FastifyError);
}

type Problem = {
  keyword: string;
  instancePath: string;
  params: Record<string, unknown>;
  message?: string;
  parentSchema?: { properties?: object; additionalProperties?: unknown };
  /** What it was found in. */
  data?: unknown;
};

function fromValidation(error: FastifyError): Refusal {
  const problem = tellingProblem(error.validation as unknown as Problem[]);
  const parent = fieldPath(problem.instancePath);
  const extra = problem.params.missingProperty ?? problem.params.additionalProperty;
  const path = typeof extra === "string" ? join(parent, extra) : parent;
  const field = error.validationContext === "headers" ? headerName(path) : path;
  const where = WHERE.get(error.validationContext ?? "") ?? "field";
  if (field === "" && extra === undefined) {
    return new Refusal("validation_error", "the request body must be a JSON object", { field: "body" });
  }
  return new Refusal("validation_error", `the '${field}' ${where} ${complaint(problem)}`, { field });
}

/**
 * The first one; where a value may have one of several forms, what is wrong with the form that it has, else all the forms
 * there are.
 */
function tellingProblem(problems: Problem[]): Problem {
  const first = problems[0] as Problem;
  const union = problems.find(({ keyword }) => keyword === "anyOf");
  if (!union) return first;
  const inside = problems.filter((problem) => problem !== union && problem.instancePath.startsWith(union.instancePath));
  const isOtherForm = ({ keyword, instancePath }: Problem) => keyword === "type" && instancePath === union.instancePath;
  const own = inside.find((problem) => !isOtherForm(problem));
  if (own) return own;
  const forms = new Set(inside.map(({ params }) => String(params.type)));
  return forms.size > 1 ? { ...first, params: { type: [...forms] } } : first;
}

const WHERE = new Map([
  ["querystring", "query parameter"],
  ["headers", "header"],
]);

/** As people write it: `Idempotency-Key`. */
function headerName(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}

function complaint({ keyword, params, message, parentSchema, data }: Problem): string {
  switch (keyword) {
    case "required":
      return `is required${foreignBeside(String(params.missingProperty), parentSchema, data)}`;
    case "additionalProperties":
      return notKnown(String(params.additionalProperty), Object.keys(parentSchema?.properties ?? {}));
    case "type":
      return `must be ${[params.type].flat().map(String).map(withArticle).join(" or ")}`;
    case "enum":
      return `must be one of: ${(params.allowedValues as unknown[]).map(String).join(", ")}`;
    case "minimum":
      return `must be at least ${params.limit}`;
    case "maximum":
      return `must be at most ${params.limit}`;
    case "minLength":
    case "minItems":
      return params.limit === 1 ? "must not be empty" : `must have at least ${params.limit} ${unitOf(keyword)}`;
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      return `must have at most ${params.limit} ${unitOf(keyword)}`;
    case "format":
      return `must be ${FORMATS.get(String(params.format)) ?? `in the form '${params.format}'`}`;
    case "uniqueItems":
      return "must not hold the same value twice";
    case "anyOf":
    case "oneOf":
      return "has a form that is not allowed here";
    default:
      return message ?? "is not valid";
  }
}

function notKnown(name: string, known: string[]): string {
  const near = nearName(name, known);
  return near === null ? "is not known" : `is not known; did you mean \`${near}\`?`;
}

/** A field is often missing because it goes by another name here. */
function foreignBeside(missing: string, parent: Problem["parentSchema"], data: unknown): string {
  if (parent?.additionalProperties !== false) return "";
  const known = Object.keys(parent.properties ?? {});
  const foreign = Object.keys(Object(data))
    .filter((name) => !known.includes(name))
    .slice(0, FOREIGN_MAX);
  const meant = foreign.find((name) => nearName(name, known) === missing) ?? foreign[0];
  return meant === undefined ? "" : `; '${meant.slice(0, NAME_SHOWN_MAX)}' ${notKnown(meant, known)}`;
}

const NAME_SHOWN_MAX = 100;
/** Each is compared with all that are known, letter by letter: 25 µs. A body may hold thousands. */
const FOREIGN_MAX = 20;

const FORMATS = new Map([
  ["uuid", "a UUID"],
  ["date-time", "a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z"],
  ["date", "a date such as 2026-01-31"],
]);

function unitOf(keyword: string): string {
  if (keyword.endsWith("Length")) return "characters";
  return keyword.endsWith("Items") ? "entries" : "keys";
}

function withArticle(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}

/** `/attachments/0/filename` → `attachments[0].filename` (JSON pointer, RFC 6901). */
function fieldPath(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : join(path, part)), "");
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
