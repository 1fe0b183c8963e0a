// POST /v1/send/batch: 1–100 e-mails in one call, each judged like a single send, all accepted ones in one durable
// transaction. Permissive: what can be sent is sent, the rest is rejected item by item. Strict: all or nothing.
import { requireLiveSending } from "../../accounts/accounts.ts";
import type { Account } from "../../http/http.ts";
import { nearName } from "../../http/near-name.ts";
import { findUnstorable } from "../../platform/database/storable.ts";
import { invalid, Refusal } from "../../platform/refusal.ts";
import type { Sending } from "../sending.ts";
import type { HoldBytes, Prepared, SendRequest, Suppressed } from "../types.ts";
import type { IdempotencyRow } from "./accept.ts";
import type { Fit } from "./fit.ts";

export const BATCH_MAX = 100;
const NAME_SHOWN_MAX = 100;
export const VALIDATIONS = ["permissive", "strict"] as const;
/** With the largest request it fits into the room that an organization has for its requests (api/load.ts). */
const RENDERED_BYTES_MAX = 24 * 1024 * 1024;
/** Each turn is lost only to somebody who took the rest of a window meanwhile. */
const TURNS_MAX = 20;

export type BatchDeps = {
  sending: Sending;
  /** Judges one item by the schema of a single send; null when it has the shape. */
  shapeProblem(item: unknown): Refusal | null;
  /** The fields of a refusal as the API shows them. */
  refusalBody(refusal: Refusal): Record<string, unknown>;
  /** For what the templates of this call make. */
  hold: HoldBytes;
};

type Outcome = Prepared | Refusal;
type Result = { index: number; status: string } & Record<string, unknown>;

export type BatchAnswer = {
  accepted: number;
  rejected: number;
  environment: "live" | "test";
  results: Result[];
} & Fit["quota"];

type Answer = { status: number; answer: string };
type IdempotencyRowFor = (status: number, answer: string) => IdempotencyRow;

/**
 * Sends what can be sent and resolves after the commit with the answer to give; `duplicate_key` when the Idempotency-Key
 * was taken meanwhile. Throws a Refusal with the `results` when no item is accepted.
 */
export async function sendBatch(
  deps: BatchDeps,
  account: Account,
  body: unknown,
  idempotencyRow: IdempotencyRowFor | null,
): Promise<Answer | "duplicate_key"> {
  const { items, strict } = readBatch(body);
  requireLiveSending(account);
  const bounded = { ...deps, hold: limitRendered(deps.hold) };
  const prepared = await Promise.all(items.map((item) => prepareItem(bounded, account, item)));
  for (let turn = 0; turn < TURNS_MAX; turn += 1) {
    const { outcomes, quota } = await settle(deps, prepared, strict);
    const accepted = outcomes.filter(isSendable);
    if (accepted.length === 0) throw noneAccepted(deps, outcomes);
    const answer = JSON.stringify(toAnswer(deps, account, outcomes, quota));
    const stored = await deps.sending.commit(accepted, idempotencyRow?.(202, answer) ?? null);
    if (stored === "duplicate_key") return stored;
    if (stored === "accepted") return { status: 202, answer };
  }
  throw new Refusal("unavailable", "a sending limit was reached at this moment; try again shortly");
}

/** The call's own shape: an array of items, or an object that holds one and says how to judge them. */
function readBatch(body: unknown): { items: unknown[]; strict: boolean } {
  if (Array.isArray(body)) return { items: limited(body), strict: false };
  if (typeof body !== "object" || body === null) {
    throw invalid("body", "the request body must be an array of e-mails, or an object with the 'emails' field");
  }
  const { emails, validation, ...unknown } = body as Record<string, unknown>;
  const unstorable = findUnstorable(unknown);
  if (unstorable) throw unstorable;
  const [other] = Object.keys(unknown);
  if (emails === undefined) {
    const foreign = other === undefined ? "" : `; '${other.slice(0, NAME_SHOWN_MAX)}' is not known${hint(other)}`;
    throw invalid("emails", `the 'emails' field is required${foreign}`);
  }
  if (other !== undefined) throw invalid(other, `the '${other}' field is not known${hint(other)}`);
  if (!Array.isArray(emails)) throw invalid("emails", "the 'emails' field must be an array");
  if (validation !== undefined && validation !== null && !VALIDATIONS.includes(validation as "strict")) {
    throw invalid("validation", `the 'validation' field must be one of: ${VALIDATIONS.join(", ")}`);
  }
  return { items: limited(emails), strict: validation === "strict" };
}

function hint(name: string): string {
  const near = nearName(name, ["emails", "validation"]);
  return near === null ? "" : `; did you mean \`${near}\`?`;
}

function limited(items: unknown[]): unknown[] {
  if (items.length === 0) throw invalid("emails", "the 'emails' field must not be empty");
  if (items.length <= BATCH_MAX) return items;
  throw invalid("emails", `the 'emails' field holds ${items.length} e-mails; at most ${BATCH_MAX} in one call`);
}

/** A short list of variables may stand for 2 MiB of an e-mail, a hundred times. */
function limitRendered(hold: HoldBytes): HoldBytes {
  let left = RENDERED_BYTES_MAX;
  return (bytes) => {
    if (bytes > left) {
      const most = RENDERED_BYTES_MAX / 1024 / 1024;
      throw new Refusal(
        "payload_too_large",
        `templates make more than ${most} MiB of this call: send fewer e-mails in one`,
      );
    }
    left -= bytes;
    hold(bytes);
  };
}

/** A refusal is this item's result; that the database is away, or a bug, is the whole call's. */
async function prepareItem(
  { sending, shapeProblem, hold }: BatchDeps,
  account: Account,
  item: unknown,
): Promise<Outcome> {
  const problem = isObject(item)
    ? shapeProblem(item)
    : new Refusal("validation_error", "an e-mail of a batch must be a JSON object");
  if (problem) return problem;
  try {
    return await sending.prepare(account, item as SendRequest, hold);
  } catch (error) {
    if (error instanceof Refusal && error.kind !== "unavailable") return error;
    throw error;
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSendable(outcome: Outcome): outcome is Prepared {
  return !(outcome instanceof Refusal);
}

/** What becomes of each item, given what is left of the windows now. */
async function settle(
  { sending }: BatchDeps,
  prepared: Outcome[],
  strict: boolean,
): Promise<{ outcomes: Outcome[]; quota: Fit["quota"] }> {
  const sound = prepared.filter(isSendable);
  const { refusals, quota } = await sending.fit(sound);
  const waiting = refusals[Symbol.iterator]();
  const outcomes = prepared.map((outcome) => {
    if (outcome instanceof Refusal) return outcome;
    return (waiting.next().value as Refusal | null) ?? outcome;
  });
  return { outcomes: strict ? allOrNothing(outcomes, prepared) : outcomes, quota };
}

/**
 * One rejected item takes all others with it. That one is over a limit matters only where nothing else is wrong: waiting
 * would not help the call.
 */
function allOrNothing(outcomes: Outcome[], prepared: Outcome[]): Outcome[] {
  const isFaulty = prepared.some(isFaultyItself);
  const judged = isFaulty ? prepared : outcomes;
  const isRejected = isFaulty ? isFaultyItself : (outcome: Outcome) => !isSendable(outcome);
  const first = judged.findIndex(isRejected);
  if (first === -1) return judged;
  const because = `not sent: item ${first} of this strict batch was rejected`;
  return judged.map((outcome) => (isRejected(outcome) ? outcome : new Withheld(because)));
}

function isFaultyItself(outcome: Outcome): boolean {
  return outcome instanceof Refusal && outcome.kind !== "rate_limit_exceeded";
}

/** Nothing is wrong with this item itself. */
class Withheld extends Refusal {
  constructor(message: string) {
    super("validation_error", message);
  }
}

function toAnswer({ refusalBody }: BatchDeps, account: Account, outcomes: Outcome[], quota: Fit["quota"]): BatchAnswer {
  const results = outcomes.map((outcome, index) => toResult(refusalBody, outcome, index));
  const rejected = outcomes.filter((outcome) => outcome instanceof Refusal).length;
  return { accepted: outcomes.length - rejected, rejected, environment: account.environment, results, ...quota };
}

function toResult(refusalBody: BatchDeps["refusalBody"], outcome: Outcome, index: number): Result {
  if (outcome instanceof Withheld) {
    return { index, status: "rejected", error: outcome.message, code: "batch_rejected" };
  }
  if (outcome instanceof Refusal) return { index, status: "rejected", ...refusalBody(outcome) };
  const { id, about, status, suppressed } = outcome;
  return { index, status, id, message_id: about.rfc_message_id, suppressed };
}

/** 422 when each item was suppressed, 429 when a limit is in the way of one, else 400; each with every result. */
function noneAccepted({ refusalBody }: BatchDeps, outcomes: Outcome[]): Refusal {
  const refusals = outcomes as Refusal[];
  const results = refusals.map((refusal, index) => toResult(refusalBody, refusal, index));
  const counts = { accepted: 0, rejected: results.length, results };
  const own = refusals.filter((refusal) => !(refusal instanceof Withheld));
  if (refusals.every(({ kind }) => kind === "all_recipients_suppressed")) {
    const suppressed = refusals.flatMap(({ detail }) => (detail.body?.suppressed ?? []) as Suppressed[]);
    return new Refusal("all_recipients_suppressed", "all recipients are suppressed; nothing was sent", {
      body: { suppressed, ...counts },
    });
  }
  const over = own.find(({ kind }) => kind === "rate_limit_exceeded");
  if (over) {
    return new Refusal("rate_limit_exceeded", over.message, {
      ...over.detail,
      body: { ...over.detail.body, ...counts },
    });
  }
  const first = refusals.indexOf(own[0] as Refusal);
  return new Refusal("validation_error", `no e-mail of the batch was accepted; item ${first}: ${own[0]?.message}`, {
    body: counts,
  });
}
