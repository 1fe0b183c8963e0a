// Suppressions and import jobs as rows and as the API shows them.
import type { Provider } from "./import/formats.ts";
import type { Reason } from "./import/reasons.ts";
import type { ScopeType } from "./import/scope.ts";

export type { Provider, Reason, ScopeType };

/**
 * How strong each reason is: the stronger of two for one address stays. The same as suppression_rank of the database.
 */
export const STRENGTH: Readonly<Record<Reason, number>> = { manual: 0, unsubscribe: 1, hard_bounce: 2, complaint: 3 };

export type Entry = {
  id: string;
  /** Lower-cased. */
  email: string;
  reason: Reason;
  scope_type: ScopeType;
  /** Null for the scope org. */
  scope_id: string | null;
  /** `manual`, `unsubscribe`, `delivery_event` or `import:<provider>` */
  source: string;
  source_message_id: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  feedback_type: string | null;
  note: string | null;
  expires_at: Date | null;
  created_at: Date;
};

/**
 * What decides whether a scoped entry blocks a mail. `streams`: the mail's class and its tags. `unsubscribable`: false for
 * mail without an unsubscribe link, which goes on after its reader has left the sender domain by such a link.
 */
export type MailScope = {
  domain_id: string | null;
  template_id: string | null;
  list: string | null;
  streams?: readonly string[];
  unsubscribable?: boolean;
};

/** The entry that blocks a mail to an address. */
export type Blocking = Pick<Entry, "id" | "email" | "reason" | "scope_type" | "scope_id">;

export type Filter = {
  query: string | null;
  reason: Reason | null;
  scope_type: ScopeType | null;
  scope_id: string | null;
  source: string | null;
};

/** An entry as it comes from outside: `scope_id` is '' for the scope org. */
export type NewEntry = {
  org_id: string;
  id: string;
  email: string;
  reason: Reason;
  scope_type: ScopeType;
  scope_id: string;
  source: string;
  source_message_id: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  feedback_type: string | null;
  note: string | null;
  expires_at: Date | null;
  created_at: Date;
};

export type JobStatus = "reading" | "previewed" | "committing" | "committed" | "failed" | "expired";
export type JobError = { row: number | null; column: string | null; value: string | null; message: string };
export type JobQuestion = { column: string; message: string };
export type JobSample = {
  row: number;
  email: string;
  reason: Reason;
  scope_type: ScopeType;
  scope_id: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  note: string | null;
};

export type Job = {
  id: string;
  status: JobStatus;
  provider: Provider;
  total_rows: number;
  valid_rows: number;
  invalid_rows: number;
  duplicate_rows: number;
  already_suppressed_rows: number;
  by_reason: Record<Reason, number>;
  sample: JobSample[];
  errors: JobError[];
  questions: JobQuestion[];
  committed_rows: number;
  created_at: Date;
  expires_at: Date;
};
