// What the queue holds and what an attempt yields.

/** One recipient of one message on its way; `mime` is there when the accepting process handed it over in memory. */
export type Job = {
  org_id: string;
  message_id: string;
  position: number;
  lane_id: number;
  email: string;
  attempts: number;
  created_at: Date;
  expires_at: Date;
  deferred_event_at: Date | null;
  absent_since: Date | null;
  return_path_host: string;
  /** When it was counted in its domain's windows; null where it is when it leaves. */
  charged_at?: Date | null;
  /** The node that holds it: the fence of every write about it. */
  owner: number;
  mime: Buffer | null;
  about: MessageAbout;
  /** Where this attempt is counted already; absent where its lane's source has no limit. */
  counted?: Counted | undefined;
};

/** An attempt that was set aside: among those of which source, on which day (UTC). */
export type Counted = { source_id: string; day: string };

/** A delivery under the node id it was taken under: a process that was declared dead may meet it again under another. */
export type Owned = Pick<Job, "message_id" | "position" | "owner">;

/** Its name in this process's books. */
export function ownedName({ message_id, position, owner }: Owned): string {
  return `${owner}/${message_id}/${position}`;
}

/** What an attempt and its events need to know of the message. */
export type MessageAbout = {
  domain_id: string;
  rfc_message_id: string;
  from_address: string;
  subject: string;
  tags: string[];
  metadata: Record<string, unknown>;
  size: number;
  recipient_count: number;
  require_tls: boolean;
  /** True if the sender set `expires_at`. */
  has_expiry: boolean;
  environment: "live" | "test";
  blob_key: string | null;
  /** What it was made from; absent where nothing is asked of it. */
  template_id?: string | null;
  /** Not null: each copy gets a link to leave this list, or the sender domain when ''. */
  unsubscribe_list?: string | null;
  /** Which part of Postern made the message; absent for what customers send. */
  origin?: string;
  /** Instead of our return path; '' is the null reverse-path. */
  envelope_from?: string | null;
};

/** A lane: the mail of one organization from one source to one destination domain in one class by one way. */
export type Lane = {
  id: number;
  org_id: string;
  source_id: string;
  slot: number;
  domain: string;
  class: number;
  /** The sender domain whose relay this mail takes; null for mail that goes directly. */
  relay_domain_id: string | null;
};

export type OutcomeKind = "delivered" | "deferred" | "bounced" | "failed" | "expired" | "suppressed";

/** How an attempt ended, as the timeline shows it. `ambiguous`: the final answer was lost after the message was sent. */
export type Outcome = {
  kind: OutcomeKind;
  ambiguous: boolean;
  class: string | null;
  bounce_type: "hard" | "soft" | null;
  suppress: boolean;
  smtp_code: string | null;
  enhanced_code: string | null;
  message: string;
  mx_host: string | null;
  mx_ip: string | null;
  source_ip: string | null;
  tls: string | null;
  isp: string | null;
  duration_ms: number;
  /** Least minutes before the next try, for greylisting and slow-down answers. */
  retry_after_min?: number;
  /** The delivery waits for Postern's own reasons, and is not tried before then. */
  retry_at?: Date;
  /** Nothing speaks against trying again now. */
  retry_at_once?: boolean;
  /** It ended without another attempt: nothing is counted as one, and what servers said before stays said. */
  unattempted?: boolean;
  /** True if the recipient's domain was absent (NXDOMAIN). Final only when seen twice, an hour apart. */
  absent?: boolean;
};

export const DEFAULT_SOURCE_ID = "00000000-0000-7000-8000-000000000001";
export const CLASS_TRANSACTIONAL = 0;
export const CLASS_BULK = 1;

/** The `origin` of our reports on TLS: they leave under no TLS policy. */
export const TLS_REPORT_ORIGIN = "tls_report";

/** How far this process has seen its database come: it claims from no other, and from none that is behind. */
export type Mark = {
  id: string;
  beats: number;
  /** True if the database was looked at lately. After an outage nothing is claimed before the next look. */
  isFresh(): boolean;
  /** A message may leave now: the next look counts one further. */
  sending(): void;
};
