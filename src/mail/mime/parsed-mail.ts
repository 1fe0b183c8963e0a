// What a received message is once it has been read: plain values that go from the parsing worker to whoever asked.
import type { ParsedAddress } from "./parse-addresses.ts";

/** An answer to more at once is a digest of a machine's. */
export const answeredMax = 10;

/** `value` is one line, its encoded words decoded. */
export type ParsedHeader = { name: string; value: string };

/**
 * `filename` is safe for headers and folders, also where the part had none. `content_id` is without angle brackets.
 * `size` is that of `content`, the decoded bytes.
 */
export type ParsedAttachment = {
  filename: string;
  content_type: string;
  size: number;
  content_id: string | null;
  disposition: "inline" | "attachment" | null;
  content: Buffer;
};

export type ParsedMail = {
  headers: ParsedHeader[];
  from: ParsedAddress[];
  sender: ParsedAddress[];
  to: ParsedAddress[];
  cc: ParsedAddress[];
  reply_to: ParsedAddress[];
  subject: string | null;
  /** RFC 3339 in UTC; null when it is missing or makes no sense. */
  date: string | null;
  /** With angle brackets, as are the ids of `in_reply_to` and `references`. */
  message_id: string | null;
  in_reply_to: string | null;
  /** All ids of In-Reply-To, which may name several; `in_reply_to` is the first. */
  answered: string[];
  references: string[];
  /** Line ends are LF. */
  text: string | null;
  html: string | null;
  attachments: ParsedAttachment[];
  /** A machine wrote it (RFC 3834). */
  auto_submitted: boolean;
  /** What was wrong, each once; empty for a clean message. */
  defects: string[];
};
