// How a command ends: with data on standard output, or with a sentence on standard error and a status that says what kind of
// thing went wrong.
import {
  ApiError,
  AuthenticationError,
  ConnectionError,
  NotFoundError,
  PermissionError,
  PosternError,
  RateLimitError,
  ServerError,
  ValidationError,
} from "../node/src/postern.ts";

export const STATUS = { ok: 0, failed: 1, usage: 2, not_allowed: 3, not_found: 4, later: 5, interrupted: 130 } as const;

/** The command line asks for something that cannot be: a sentence that says what. */
export class CliError extends Error {
  override name = "CliError";
  readonly status: number;

  constructor(message: string, status: number = STATUS.usage) {
    super(message);
    this.status = status;
  }
}

/** The person wants out (Ctrl-C): nothing is said. */
export class Interrupted extends CliError {
  override name = "Interrupted";

  constructor() {
    super("interrupted", STATUS.interrupted);
  }
}

/** The exit status for what a command threw. */
export function statusOf(error: unknown): number {
  if (error instanceof CliError) return error.status;
  if (error instanceof ValidationError) return STATUS.usage;
  if (error instanceof AuthenticationError || error instanceof PermissionError) return STATUS.not_allowed;
  if (error instanceof NotFoundError) return STATUS.not_found;
  if (error instanceof RateLimitError || error instanceof ServerError || error instanceof ConnectionError)
    return STATUS.later;
  // Nothing was asked: what was given cannot be sent.
  if (error instanceof PosternError && !(error instanceof ApiError)) return STATUS.usage;
  return STATUS.failed;
}

/** What went wrong, in sentences. Never the key. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof ApiError)) return (error as Error).message;
  if (error.code === "" && typeof error.body === "string")
    return `${error.message}, and not as a Postern answers: is the address right (--base-url, POSTERN_BASE_URL)?`;
  const more = [error.field ? `field: ${error.field}` : "", error.request_id ? `request ${error.request_id}` : ""];
  const details = more.filter((text) => text !== "").join(", ");
  return details === "" ? error.message : `${error.message} (${details})`;
}
