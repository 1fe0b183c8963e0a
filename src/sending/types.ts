// An e-mail on its way in: the request, what is prepared from it, and the records that are shown.
import type { Static } from "typebox";
import type { ChooseExit, FindLane, Lane, MessageAbout, Outbound } from "../outbound/outbound.ts";
import type { Lru } from "../platform/fair/lru.ts";
import type { InTurn } from "../platform/fair/turns.ts";
import type { World } from "../platform/world.ts";
import type { MailScope } from "../suppressions/types.ts";
import type { SendBody } from "./shape.ts";

export type SendRequest = Static<typeof SendBody>;

export type Rendered = {
  template_id: string;
  version: number;
  subject: string;
  html_body: string | null;
  text_body: string | null;
};

export type Sender = {
  id: string;
  domain: string;
  ready: boolean;
  not_ready_reason: string | null;
  return_path_host: string;
  tls_policy: "opportunistic" | "require";
  ip_pool: string | null;
};

export type FindSender = (orgId: string, domain: string) => Promise<Sender | undefined>;

/** What other features lend to sending, wired in app.ts. */
export type SendingDeps = {
  findSender: FindSender;
  render(
    orgId: string,
    request: { template?: string; template_id?: string; variables: Record<string, unknown> },
  ): Promise<Rendered>;
  findSuppressed(orgId: string, about: MailScope & { emails: string[] }): Promise<Map<string, { reason: string }>>;
  /** Counts recipients of mail that is refused because all of them are suppressed. */
  countSuppressed(count: { org_id: string; domain_id: string; at: Date; recipients: number }): Promise<void>;
  /** The windows that a domain's warming sets; none once it is warm. */
  warmingAllowances(orgId: string, domainId: string, nowMs: number): Promise<Allowance[]>;
  /** Where the mail leaves from; refuses a pool that there is not, or that the plan does not include. */
  chooseExit: ChooseExit;
  findLane: FindLane;
  /** Keeps a message that is too large for its row, in its name, before it is accepted; the blob's key, else null. */
  keepIfLarge(message: { org_id: string; id: string }, mime: Buffer): Promise<string | null>;
  outbound: () => Outbound | null;
  notify: () => void;
};

/** A message as a customer submits it: canonical line ends, envelope recipients without duplicates. */
export type Submitted = {
  bytes: Buffer;
  recipients: { email: string; domain: string }[];
  /** RFC 3848 name for Received. */
  protocol: string;
};

/**
 * What preparing an e-mail works with. `domains`: under which id a sender domain was found last, by organization and name; a
 * guess, with which the look-ups begin while the domain itself is looked up.
 */
export type Preparing = {
  world: World;
  deps: SendingDeps;
  used: UsedReader;
  domains: Pick<Lru<string>, "get" | "set">;
  inTurn: InTurn;
};

/**
 * Counts bytes that a template makes, beside those that the request came with and for as long as it lasts; throws the
 * Refusal to answer with when they are too many.
 */
export type HoldBytes = (bytes: number) => void;

export type Suppressed = { email: string; reason: string };

/** A counted window: raised by `recipients` in the accepting statement, refused beyond `ceiling`. */
export type Allowance = {
  scope_id: string;
  kind: "monthly_quota" | "daily" | "hourly" | "per_minute";
  starts_at: Date;
  ceiling: number;
  /** What is shown as the limit, where a message alone may pass it. */
  limit?: number;
  warming_phase: string;
  /** Seconds until the window opens again. */
  retry_after_seconds: number;
  /** Said instead of the usual sentence when the window is full. */
  explanation?: string;
};

export type PreparedRecipient = {
  position: number;
  email: string;
  kind: "to" | "cc" | "bcc";
  status: "queued" | "scheduled" | "simulated" | "suppressed";
  lane: Lane | null;
  /** An address of the simulator: it counts in no window. */
  isSimulated?: boolean;
};

/** Everything one accepted e-mail puts into the database. */
export type Prepared = {
  org_id: string;
  id: string;
  environment: "live" | "test";
  api_key_id: string | null;
  from_header: string;
  reply_to: string[];
  template_id: string | null;
  template_version: number | null;
  message_class: number;
  status: string;
  ip_pool: string | null;
  unsubscribe_list: string | null;
  origin: string;
  created_at: Date;
  scheduled_at: Date | null;
  expires_at: Date | null;
  return_path_host: string;
  about: MessageAbout;
  mime: Buffer;
  recipients: PreparedRecipient[];
  suppressed: Suppressed[];
  allowances: Allowance[];
  /** How many of its recipients count in them. */
  counted: number;
  /** Recipients of this month, this e-mail's included, as read when it was prepared. */
  quota_used: number;
};

export type SendAnswer = {
  id: string;
  message_id: string;
  status: string;
  environment: "live" | "test";
  suppressed: Suppressed[];
  quota_limit: number;
  quota_used: number;
  quota_remaining: number;
};

/** A ready-made message to one recipient. */
export type RawMessage = {
  org_id: string;
  id: string;
  environment: "live" | "test";
  domain_id: string;
  origin: "forward" | "masked" | "system" | "tls_report";
  /** The Message-ID that it carries, without angle brackets. */
  message_id: string;
  from_address: string;
  from_header: string;
  subject: string;
  metadata: Record<string, unknown>;
  recipient: string;
  /** Null: our own return path; '' is the null reverse-path. */
  envelope_from: string | null;
  return_path_host: string;
  mime: Buffer;
  /** Where `mime` is kept when it is too large for its row. */
  blob_key: string | null;
  created_at: Date;
};

export type UsedReader = (orgId: string, allowance: Allowance) => Promise<number>;
