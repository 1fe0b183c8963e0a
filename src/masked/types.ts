// Masked addresses as the API shows them, and the words their rows use.
import type { Account } from "../http/http.ts";
import type { FindLane } from "../outbound/outbound.ts";
import type { World } from "../platform/world.ts";

export const FORMATS = ["random", "words", "uuid"] as const;
export type Format = (typeof FORMATS)[number];

export const ON_DISABLED = ["drop", "reject"] as const;
export type OnDisabled = (typeof ON_DISABLED)[number];

export const REDACT = ["all", "quoted", "off"] as const;
export type Redact = (typeof REDACT)[number];

/** What becomes of a reply with a file that nobody can look into. */
export const UNOPENED_FILES = ["hold", "send"] as const;
export type UnopenedFiles = (typeof UNOPENED_FILES)[number];

/** What becomes of the owner's name in running text of a reply. */
export const OWN_NAME = ["leave", "replace"] as const;
export type OwnName = (typeof OWN_NAME)[number];

/** When the author of a reply that left is informed what was changed in it. */
export const REPLY_REPORT = ["never", "hidden", "always"] as const;
export type ReplyReport = (typeof REPLY_REPORT)[number];

/** What becomes of pictures in a forward that nobody is to see. */
export const TRACKING_PIXELS = ["leave", "cut"] as const;
export type TrackingPixels = (typeof TRACKING_PIXELS)[number];

/** What List-Unsubscribe of a forward does. */
export const LIST_UNSUBSCRIBE = ["original", "disable_alias", "block_sender"] as const;
export type ListUnsubscribe = (typeof LIST_UNSUBSCRIBE)[number];

export const DESTINATION_STATUSES = ["pending", "verified", "suspended"] as const;
export type DestinationStatus = (typeof DESTINATION_STATUSES)[number];

export const ACTIVITY_TYPES = ["forward", "reply", "block", "bounce", "quarantine", "auto_reply", "config"] as const;
export type ActivityType = (typeof ACTIVITY_TYPES)[number];

export const ACTIVITY_OUTCOMES = ["sent", "deferred", "failed", "dropped", "held"] as const;
export type ActivityOutcome = (typeof ACTIVITY_OUTCOMES)[number];

/** Why an alias is off whose every mailbox bounces. */
export const DESTINATION_BOUNCING = "destination_bouncing";

export const CONTACT_SOURCES = ["inbound", "api"] as const;

export type Environment = "live" | "test";

/** An alias as its row is; destinations stand in their own table. */
export type AliasRow = {
  id: string;
  org_id: string;
  environment: Environment;
  domain_id: string | null;
  domain: string;
  local_part: string;
  masked_description: string | null;
  display_name: string | null;
  metadata: Record<string, unknown>;
  active: boolean;
  disabled_reason: string | null;
  on_disabled: OnDisabled;
  reply_enabled: boolean;
  redact: Redact;
  unopened_files: UnopenedFiles;
  own_name: OwnName;
  reply_report: ReplyReport;
  tracking_pixels: TrackingPixels;
  list_unsubscribe: ListUnsubscribe;
  /** The pattern that made it, as it was written. */
  pattern: string | null;
  emails_received: number;
  emails_forwarded: number;
  emails_replied: number;
  emails_blocked: number;
  last_activity_at: Date | null;
  created_at: Date;
  updated_at: Date;
  deleted_at: Date | null;
};

/** An alias as the API shows it; `email` is the full address, `address` its local part. */
export type AliasRecord = Omit<AliasRow, "local_part" | "deleted_at"> & {
  email: string;
  address: string;
  forward_to: string[];
  action: "forward";
  is_masked: true;
};

export type DestinationRow = {
  id: string;
  org_id: string;
  environment: Environment;
  digest: Buffer;
  sealed: Buffer;
  status: DestinationStatus;
  suspended_reason: string | null;
  confirmation_sent_at: Date | null;
  confirmations_sent: number;
  confirmed_at: Date | null;
  pgp_sealed: Buffer | null;
  pgp_hide_subject: boolean;
  created_at: Date;
  updated_at: Date;
};

/** The OpenPGP key of a mailbox as it is shown; `fingerprint` is empty where it cannot be read any more. */
export type PgpKeyRecord = { fingerprint: string; expires_at: Date | null; hide_subject: boolean };

export type DestinationRecord = {
  id: string;
  email: string;
  environment: Environment;
  status: DestinationStatus;
  suspended_reason: string | null;
  aliases: number;
  confirmation_sent_at: Date | null;
  confirmed_at: Date | null;
  pgp_key: PgpKeyRecord | null;
  created_at: Date;
  updated_at: Date;
};

/** A destination of one alias, opened; `pgp`: what its forwards are encrypted with. */
export type Destination = { id: string; email: string; status: DestinationStatus; pgp?: PgpOfMailbox | null };
export type PgpOfMailbox = { sealed: Buffer; hide_subject: boolean };

export type ContactRow = {
  id: string;
  org_id: string;
  alias_id: string;
  digest: Buffer;
  sealed: Buffer;
  blocked: boolean;
  source: (typeof CONTACT_SOURCES)[number];
  /** A mailbox of the owner that a contact wrote of, and that nobody named among the people of a mail. */
  is_token: boolean;
  received: number;
  sent: number;
  last_seen_at: Date | null;
  created_at: Date;
  updated_at: Date;
};

/** What is sealed of a contact. */
export type ContactSecrets = { email: string; name: string | null; reply_local: string };

export type ContactRecord = {
  id: string;
  alias_id: string;
  email: string;
  name: string | null;
  reply_address: string;
  blocked: boolean;
  source: (typeof CONTACT_SOURCES)[number];
  received: number;
  sent: number;
  last_seen_at: Date | null;
  created_at: Date;
  updated_at: Date;
};

export type ActivityRecord = {
  id: string;
  type: ActivityType;
  outcome: ActivityOutcome;
  reason: string | null;
  detail: string | null;
  contact: string | null;
  destination: string | null;
  message_id: string | null;
  size: number | null;
  spf: string | null;
  dkim: string | null;
  dmarc: string | null;
  spam_score: number | null;
  redactions: number | null;
  timestamp: Date;
};

/** Whose masked addresses they are. */
export type Who = Pick<Account, "org_id" | "environment" | "plan" | "state">;

/** What asking a destination for its consent needs. */
export type ConfirmationWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

/** How our mail is queued. */
export type MaskedPorts = {
  findLane: FindLane;
  /** Mail was queued. */
  notify(): void;
};

/** Where the mail goes, as receiving keeps it. */
export type MaskedRoute = {
  kind: "masked" | "reverse";
  org_id: string;
  domain_id: string | null;
  alias_id: null;
  tag: string | null;
  detail: { alias_id: string; contact_id: string | null; environment: string };
};

/** Where mail goes that a pattern takes, before there is an alias; none is kept so. */
export type PatternRoute = Omit<MaskedRoute, "kind" | "detail"> & {
  kind: "pattern";
  detail: { pattern_id: string; domain: string; local: string; environment: Environment };
};
