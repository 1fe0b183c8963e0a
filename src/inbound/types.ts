// A received mail from the decision at RCPT to what became of it: the shapes that the steps hand on, and those that
// features plugged in from app.ts (rules, spam, bounces, reports, masked addresses) are written against.
import type { AliasAction, ForwardMode } from "../aliases/types.ts";
import type { Policy } from "../mail/auth/dmarc-record.ts";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { ReturnedMail } from "../mail/returned-mail.ts";
import type { Path } from "../mail/smtp-server/command.ts";
import type { Client } from "../mail/smtp-server/session.ts";
import type { BuiltReply, ReplyOrder } from "../masked/rewrite/reply.ts";
import type { BuiltForwards, ForwardsOrder } from "../masked/rewrite/write-forwards.ts";
import type { Tx } from "../platform/database/db.ts";
import type { RawMessage } from "../sending/types.ts";
import type { OutgoingEvent } from "../webhooks/types.ts";

/** `pattern`: mail for a masked alias that is yet to be made; before it is stored, it is `masked`. `operator`: postmaster@ and abuse@ of our own hosts, which belong to no organization. */
const KINDS = [
  "alias",
  "catch_all",
  "masked",
  "pattern",
  "reverse",
  "return_path",
  "srs",
  "feedback",
  "report",
  "operator",
] as const;
export type Kind = (typeof KINDS)[number];

/** Kinds that are an organization's own mail, listed at /v1/inbound-emails. */
export const CUSTOMER_KINDS = ["alias", "catch_all"] as const;

type RouteOwner = {
  org_id: string;
  domain_id: string | null;
  alias_id: string | null;
  /** What followed the `+` of the local part. */
  tag: string | null;
};

/** Where an accepted recipient's mail goes. Kept with the mail as it was decided: later changes do not reroute it. */
export type Route = RouteOwner &
  (
    | {
        kind: "alias";
        domain: string;
        action: AliasAction;
        forward_to: string[];
        forward_mode: ForwardMode;
        webhook_ids: string[];
        /** The endpoints of the domain's catch-all, for when no other is named. */
        domain_webhook_ids: string[];
      }
    | { kind: "catch_all"; domain: string; domain_webhook_ids: string[] }
    | { kind: "return_path"; message_id: string; position: number }
    | { kind: "feedback"; message_id: string; position: number }
    | { kind: "operator"; mailbox: string }
    | { kind: "srs"; domain: string; sender: string }
    | { kind: "masked" | "pattern" | "reverse" | "report"; detail: Record<string, unknown> }
  );

export type RouteOf<K extends Kind> = Extract<Route, { kind: K }>;

/** What a decision at RCPT knows. */
export type RcptQuestion = { client: Client; from: Path; to: Path };

export type Refused = { kind: "refuse"; code: number; enhanced: string; text: string };
export type RcptDecision = { kind: "accept"; route: Route } | Refused;

/** Decides about addresses of its own kind; null: not mine, ask the next. `environment`: of the mail, test in a trial. */
export type RcptDecider = (question: RcptQuestion, environment: "live" | "test") => Promise<RcptDecision | null>;

/** Who sent it and how; a simulated mail may have no client. */
export type Origin = {
  remote_ip: string | null;
  remote_port: number | null;
  helo: string;
  protocol: string;
  tls: string | null;
};

export type Envelope = { from: string; smtputf8: boolean };

/** A message that is whole, before it is stored. */
export type Incoming = {
  origin: Origin;
  envelope: Envelope;
  environment: "live" | "test";
  received_at: Date;
  recipients: { recipient: string; route: Route }[];
  bytes: Buffer;
};

/** What can be found out about a message, each once, when somebody asks: in session or later. */
export type Examination = {
  /** Our name in results: what says something under it when it comes is forged. */
  readonly host: string;
  bytes(): Promise<Buffer>;
  /** As of the time of receipt, and those that are kept with the mail once they are. */
  verdicts(): Promise<SenderVerdicts>;
  /** As a server would find them that the mail was handed to now. */
  verdictsNow(): Promise<SenderVerdicts>;
  parsed(): Promise<Parsed>;
  /** Read as what may have come back: a bounce, a complaint, an automatic reply. */
  returned(): Promise<Returned>;
  /** Built as a reply from a masked alias. */
  reply(order: ReplyOrder): Promise<BuiltReply | { kind: "failed"; reason: string }>;
  /** Written as forwards from a masked alias. */
  forwards(order: ForwardsOrder): Promise<BuiltForwards | { kind: "failed"; reason: string }>;
};

export type Parsed = { kind: "parsed"; mail: ParsedMail } | { kind: "failed"; reason: string };
export type Returned = { kind: "parsed"; returned: ReturnedMail } | { kind: "failed"; reason: string };

/** What takes addresses of a domain that are not exact, when it is more exact than a glob with so many fixed characters. */
export type WideDecider = (
  question: RcptQuestion,
  about: { receiver: { id: string; org_id: string }; environment: "live" | "test"; fixed: number | null },
) => Promise<RcptDecision | null>;

/** A look at the whole message before it is taken, which may also settle the route of a recipient; a refusal is the answer to the final dot. */
export type AcceptCheck = (incoming: Incoming, examination: Examination) => Promise<Refused | null>;

/** What became of a message that was offered: refused, or stored durably, with an id for each recipient in their order. */
export type Offered =
  | { kind: "refused"; refused: Refused }
  | { kind: "taken"; ids: string[]; processed: Promise<void> | null };

/** A stored mail for one recipient, on its way to its handler. */
export type Mail = {
  org_id: string;
  id: string;
  raw_id: string;
  environment: "live" | "test";
  route: Route;
  recipient: string;
  origin: Origin;
  envelope: Envelope;
  received_at: Date;
  size: number;
  /** Somebody looked at it in quarantine and wants it. */
  released: boolean;
  /** True if the mail was processed before. */
  replayed: boolean;
  /** Its rows hold all there is of it: it came for nobody else, and nothing lies outside the database. */
  alone: boolean;
  /** What that found to be the rules for it, which counted it. */
  rule_ids: readonly string[];
  examination: Examination;
};

export const STATUSES = ["received", "processing", "delivered", "failed", "quarantined", "dropped"] as const;
export type Status = (typeof STATUSES)[number];

/** Writes that many mails want alike: `write` is called once for all the facts of a transaction. */
export type Shared = { write(tx: Tx, facts: readonly unknown[]): Promise<void>; fact: unknown };

/** What became of a mail; committed as one with its events, forwards, `also` and `shared`. */
export type Outcome = {
  status: Exclude<Status, "received" | "processing">;
  /** A word or sentence on why it is failed, quarantined or dropped. */
  reason: string | null;
  /** Left out: what was known before stays. */
  found?: Found;
  events: OutgoingEvent[];
  forwards: RawMessage[];
  rule_ids: string[];
  /** Nothing of the mail stays; for one that is `alone`. */
  forgets?: boolean;
  /** Further writes in the same transaction, such as the bounce that the mail reports. */
  also?: (tx: Tx) => Promise<void>;
  shared?: Shared;
};

/** What processing found out: the columns of the list, and the rest as the record shows it. */
export type Found = {
  message_id: string | null;
  from_address: string | null;
  subject: string | null;
  has_attachments: boolean;
  thread_id: string | null;
  matched_email_id: string | null;
  spam_score: number | null;
  authentication_results: string | null;
  findings: Findings | null;
};

export type StoredAttachment = {
  id: string;
  filename: string;
  content_type: string;
  size: number;
  content_id: string | null;
  disposition: string | null;
  blob_key: string;
};

/** Kept as JSON: what the event says, except text, html and headers, which are read from the raw message again. */
export type Findings = {
  cc: string[];
  reply_to: string | null;
  date: string | null;
  in_reply_to: string | null;
  references: string[];
  auto_submitted: boolean;
  spam: SpamReport;
  auth: AuthSummary;
  /** Missing in findings of before it was kept. */
  dmarc_policy?: DmarcPolicy;
  attachments: StoredAttachment[];
  defects: string[];
};

/** The contract's `spf`, `dkim` and `auth_results`. */
export type AuthSummary = {
  dkim: {
    result: string;
    domain: string | null;
    selector: string | null;
    passed_domains: string[];
    from_aligned: boolean;
  };
  spf: { result: string; domain: string | null; from_aligned: boolean };
  dmarc: { result: string; from_domain: string | null; dkim_aligned: boolean; spf_aligned: boolean };
};

/** What the author's domain publishes, and what it asks for this mail; null where it is not known. */
export type DmarcPolicy = { policy: Policy | null; applied: Policy | null };

/** What receiving and its features ask of authentication; `header` is the Authentication-Results field. */
export type SenderVerdicts = Pick<AuthSummary, "dkim" | "spf"> & {
  dmarc: AuthSummary["dmarc"] & DmarcPolicy;
  /** Not of mail that was kept. */
  arc?: { result: string; sealers: string[]; vouched_domain?: string };
  header: string;
};

export type SpamSymbol = { name: string; score: number; description?: string };
/** `score` and `verdict` are null when nobody judged. */
export type SpamReport = { score: number | null; verdict: string | null; symbols: SpamSymbol[] };

/** What the spam step says to do with a mail that was taken. */
export type SpamDecision = { report: SpamReport; quarantine: string | null };
export type SpamStep = (mail: Mail) => Promise<SpamDecision>;

/** The first rule that matched, and what it wants done. */
export type RuleHit = {
  rule_id: string;
  action: AliasAction;
  forward_to: string[];
  webhook_ids: string[];
};
export type RulesStep = (mail: Mail, spam: SpamReport) => Promise<RuleHit | null>;

export type Handler = (mail: Mail) => Promise<Outcome>;

/** A claimed mail; `faults`: how many of the attempts before failed although nothing was away. */
export type Job = { mail: Mail; claim_id: string; attempts: number; faults: number };
