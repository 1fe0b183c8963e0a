// What a bounce mail is read into: shapes only.

import type { ReplyClass } from "../smtp/classify.ts";

/** RFC 3464 §2.3.3. `failed` is final; `delayed` is a warning about mail that is still being tried. */
export type DsnAction = "failed" | "delayed" | "delivered" | "relayed" | "expanded";

export type BounceRecipient = {
  /** The address the report is about (Final-Recipient), null when the report does not name one. */
  email: string | null;
  /** The address as we sent to it (Original-Recipient), when the report says so. */
  original: string | null;
  action: DsnAction;
  /** Enhanced status code (RFC 3463) that the mail carries, null when it carries none; never made up. */
  status: string | null;
  /** SMTP reply code that the mail carries, null when it carries none; never made up. */
  smtp_code: string | null;
  /** What the remote side said, on one line, at most 1,000 characters. */
  diagnostic: string;
  /** null for the actions that are no trouble: delivered, relayed, expanded. */
  bounce_type: "hard" | "soft" | null;
  class: ReplyClass | null;
  /** True only when the report says that the address itself does not work. */
  suppress: boolean;
  /** True when the message will not be delivered to this recipient any more. */
  permanent: boolean;
};

export type ReturnedHeader = { name: string; value: string };

/** What came back of the message that we sent. */
export type OriginalMessage = {
  /** Without its angle brackets. */
  message_id: string | null;
  headers: ReturnedHeader[];
  /** Our own `X-Postern-Id:` token; not verified here. */
  x_postern_id: string | null;
};

export type BounceReport = {
  kind: "bounce";
  recipients: BounceRecipient[];
  original: OriginalMessage;
  reporting_mta: string | null;
  /** As the report writes it. */
  arrival_date: string | null;
};

/** `reason` is a word for the log: which rule decided. */
export type NoBounce = { kind: "auto_reply" | "receipt" | "complaint" | "other"; reason: string };

export type BounceResult = BounceReport | NoBounce;

/** One recipient as a report names it, before it is classified. */
export type Finding = {
  email: string | null;
  original: string | null;
  action: DsnAction | null;
  /** The Status field. */
  status: string | null;
  /** The Diagnostic-Code field without its type. */
  diagnostic: string;
  /** The reporter's own category (PowerMTA) says that the address is bad. */
  isAboutAddress: boolean;
  /** Another address or a program stands behind this one: what failed need not be the address itself. */
  isExpanded: boolean;
  /** What the readable part says about this recipient. */
  text: string;
};
