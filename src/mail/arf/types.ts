// What a complaint is read into: shapes only.

import type { OriginalMessage } from "../dsn/types.ts";
import type { ComplaintFormat } from "./formats.ts";

/**
 * `complaint`: somebody calls the message abuse. `not_spam`: somebody takes that back. `unsubscribe`: an opt-out report.
 * `auth_failure`: RFC 6591, about our DNS or a forger; no complaint, and nobody is suppressed for it.
 */
export type ComplaintMeaning = "complaint" | "not_spam" | "unsubscribe" | "auth_failure";

export type ComplaintReport = {
  kind: "complaint";
  format: ComplaintFormat;
  meaning: ComplaintMeaning;
  /** As reported, lower-case: abuse, fraud, virus, other, not-spam, auth-failure, opt-out … */
  feedback_type: string;
  user_agent: string | null;
  version: string | null;
  /** Only a valid address. */
  source_ip: string | null;
  /** As the report writes it. */
  arrival_date: string | null;
  original_mail_from: string | null;
  original_rcpt_to: string[];
  /** Who complains, as far as the report tells: Original-Rcpt-To, or the fields and the To of the message. May be redacted. */
  recipients: string[];
  reported_domains: string[];
  reported_uris: string[];
  /** At least 1 (RFC 5965 §3.2). */
  incidents: number;
  authentication_results: string[];
  /** RFC 6591 §3.1: adsp, bodyhash, revoked, signature, spf, dmarc. */
  auth_failure: string | null;
  delivery_result: string | null;
  dkim_domain: string | null;
  reporting_mta: string | null;
  original_envelope_id: string | null;
  /** The CFBL-Feedback-ID of our message (RFC 9477 §3.2). */
  cfbl_feedback_id: string | null;
  original: OriginalMessage;
};
