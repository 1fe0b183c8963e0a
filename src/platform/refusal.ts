// A request that we understood and decline. Features throw it; only api/errors.ts turns it into an HTTP answer and
// only submission/mx turn it into an SMTP reply.

export type RefusalKind =
  | "validation_error"
  | "invalid_json"
  | "payload_too_large"
  | "template_variable_missing"
  | "template_error"
  | "missing_api_key"
  | "invalid_api_key"
  | "domain_not_ready"
  | "domain_not_owned"
  | "plan_limit_reached"
  | "organization_in_review"
  | "organization_suspended"
  | "test_key_not_allowed"
  | "mask_key_not_allowed"
  | "not_found"
  | "already_exists"
  | "idempotency_conflict"
  | "invalid_state"
  | "all_recipients_suppressed"
  | "rate_limit_exceeded"
  | "not_signed_in"
  | "sign_in_failed"
  | "second_factor_needed"
  | "proof_needed"
  | "role_not_allowed"
  | "request_not_allowed"
  | "unavailable";

export type RefusalDetail = {
  /** Path of the field at fault, such as `attachments[0].filename`. */
  field?: string;
  /** Further fields of the answer's body, such as `suppressed` (422) or the rate-limit body (429). */
  body?: Record<string, unknown>;
  retry_after_seconds?: number;
};

/** Thrown for a request that we understood and decline. `message` is a sentence for people, without personal data. */
export class Refusal extends Error {
  readonly kind: RefusalKind;
  readonly detail: RefusalDetail;
  constructor(kind: RefusalKind, message: string, detail: RefusalDetail = {}) {
    super(message);
    this.kind = kind;
    this.detail = detail;
  }
}

/** A 404: the same words whether the id never existed or belongs to another organization. */
export function notFound(what: string): Refusal {
  return new Refusal("not_found", `there is no such ${what}`);
}

/** A 400 that names the field at fault. */
export function invalid(field: string, message: string): Refusal {
  return new Refusal("validation_error", message, { field });
}
