// Domains as rows, what the checks saw, and what the feature needs from features to its right (handed in by app.ts).
import type { Tx } from "../platform/database/db.ts";

export const DOMAIN_TYPES = ["inbound", "outbound", "both", "alias"] as const;
export type DomainType = (typeof DOMAIN_TYPES)[number];

export const DOMAIN_STATUSES = ["pending", "verified", "degraded", "failed"] as const;
export type DomainStatus = (typeof DOMAIN_STATUSES)[number];

export const TLS_POLICIES = ["opportunistic", "require"] as const;
export type TlsPolicy = (typeof TLS_POLICIES)[number];

export const PURPOSES = ["ownership", "spf", "dkim", "return_path", "mx", "dmarc", "dmarc_authorization"] as const;
export type Purpose = (typeof PURPOSES)[number];

/** Purposes without which a domain of some type is not verified. */
export type Requirement = "ownership" | "spf" | "dkim" | "mx";

export type DomainRow = {
  org_id: string;
  id: string;
  domain: string;
  /** The environment of the key that added it. */
  environment: "live" | "test";
  type: DomainType;
  status: DomainStatus;
  active: boolean;
  claimed: boolean;
  ownership_token: string;
  dmarc_token: string;
  ownership_verified: boolean;
  mx_verified: boolean;
  spf_verified: boolean;
  dkim_verified: boolean;
  dmarc_verified: boolean;
  return_path_verified: boolean;
  has_active_key: boolean;
  catch_all_enabled: boolean;
  catch_all_webhook_ids: string[];
  inbound_mx_acknowledged: boolean;
  tls_policy: TlsPolicy;
  ip_pool: string | null;
  checks: RecordCheck[];
  /** When a required record that had been there was first seen gone (ISO time). */
  lost: Partial<Record<Requirement, string>>;
  unverified_since: Date | null;
  watch_since: Date;
  next_check_at: Date;
  last_dns_check: Date | null;
  verified_at: Date | null;
  created_at: Date;
  updated_at: Date;
};

export const CHECK_STATUSES = ["ok", "missing", "mismatch", "error", "unchecked"] as const;

/** `error`: the name servers could not be asked, which says nothing about the record. */
export type CheckStatus = Exclude<(typeof CHECK_STATUSES)[number], "unchecked">;

/** What one look at one record saw; kept in `domain.checks` as it is. */
export type RecordCheck = {
  purpose: Purpose;
  name: string;
  status: CheckStatus;
  found: string[];
  hint: string | null;
  checked_at: string;
};

/** A record the customer is to publish. */
export type ExpectedRecord = {
  purpose: Purpose;
  type: "TXT" | "MX" | "CNAME";
  name: string;
  value: string;
  priority: number | null;
  ttl: number;
  required: boolean;
  /** Shown while nothing is wrong with the record. */
  note: string | null;
};

/** A record to publish and what the last look at it saw, as the API shows it. */
export type DnsRecord = Omit<ExpectedRecord, "note"> & {
  status: (typeof CHECK_STATUSES)[number];
  found: string[];
  hint: string | null;
  checked_at: string | null;
};

export type DkimRecord = Pick<ExpectedRecord, "name" | "value" | "required" | "note">;

/** `conclusive`: every active key's record was really asked for. */
export type DkimVerdict = { verified: boolean; active: boolean; conclusive: boolean };

type NamedDomain = Pick<DomainRow, "id" | "domain">;

/** What domains need to know and to tell of DKIM keys; the dkim feature makes it. */
export type DkimKeys = {
  /** Makes a first key outside any transaction; the function returned stores it unless the domain has a key by then. */
  prepareFirstKey(orgId: string): Promise<(tx: Tx, domain: NamedDomain) => Promise<void>>;
  /** The TXT records of the keys in use. */
  records(tx: Tx, orgId: string, domain: NamedDomain): Promise<DkimRecord[]>;
  /** Tells what the look-ups saw, which moves keys on; returns how the domain stands. The domain's row is locked. */
  noteChecks(
    tx: Tx,
    orgId: string,
    domain: NamedDomain,
    seen: { checks: RecordCheck[]; at: Date },
  ): Promise<DkimVerdict>;
  /** Resolves once no process begins to sign with a key whose end was committed before the call. */
  untilForgotten(): Promise<void>;
  /** Ends the keys whose time of retirement is over, in all organizations. */
  endRetired(at: Date): Promise<void>;
};

/** Functions of features to the right, handed in by app.ts. */
export type DomainPorts = {
  dkim: DkimKeys;
  /** Those of `ids` that are not webhooks of the organization. */
  unknownWebhooks(tx: Tx, orgId: string, ids: string[]): Promise<string[]>;
  hasQueuedMail(tx: Tx, orgId: string, domainId: string): Promise<boolean>;
  hasAliases(tx: Tx, orgId: string, domainId: string): Promise<boolean>;
  /** 400 `ip_pool` for a name that is no IP pool of the organization. */
  refuseUnknownPool(tx: Tx, orgId: string, name: string): Promise<void>;
  /** The addresses of an IP pool of the organization, as this installation knows them. */
  addressesOfPool(tx: Tx, orgId: string, name: string): Promise<string[]>;
  /** A domain that sends became verified (again); in the same transaction. */
  onSendingVerified(tx: Tx, orgId: string, domainId: string): Promise<void>;
  /** The domain has sent mail before: it begins without limits. */
  beginWarmed(tx: Tx, orgId: string, domainId: string): Promise<void>;
  /** The domain was switched on: mail that waits for that is looked at now. */
  hastenWaiting(orgId: string, domainId: string): Promise<void>;
  /** How much these domains may send now, by id; those that never began are missing. */
  warmingOf(tx: Tx, orgId: string, domainIds: string[]): Promise<Map<string, DomainWarming>>;
  /**
   * True if another Postern behind the same door holds a domain that this one does not. Null where that cannot be known
   * now.
   */
  isElsewhere?(domain: string): Promise<boolean | null>;
};

/** Null limits: none. `hint` says what the limits are and what lifts them; null without limits. */
export type DomainWarming = {
  phase: string;
  daily_limit: number | null;
  hourly_limit: number | null;
  per_minute_limit: number | null;
  hint: string | null;
};

/** What sending needs to know of a sender domain. `not_ready_reason` is a sentence exactly when `ready` is false. */
export type SendingDomain = {
  id: string;
  domain: string;
  type: DomainType;
  active: boolean;
  status: DomainStatus;
  ready: boolean;
  not_ready_reason: string | null;
  return_path_host: string;
  tls_policy: TlsPolicy;
  ip_pool: string | null;
};

/** What incoming mail needs to know of the domain it is for. */
export type ReceivingDomain = Pick<
  DomainRow,
  "org_id" | "id" | "domain" | "environment" | "type" | "active" | "catch_all_enabled" | "catch_all_webhook_ids"
>;
