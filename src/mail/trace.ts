// The trace fields in front of a message that we took (RFC 5321 §4.4): Return-Path and Received. Whatever a client said
// of itself is cut to what may stand in a field.

export type Hop = {
  helo: string;
  ip: string | null;
  by: string;
  /** RFC 3848 and RFC 6531: SMTP, ESMTP, ESMTPS, UTF8SMTP, UTF8SMTPS. */
  protocol: string;
  tls: string | null;
  id: string;
  /** Null when there were several: one must not learn of another. */
  recipient: string | null;
  at_ms: number;
};

const HELO_CHARS_MAX = 255;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `Return-Path: <sender>` with its CRLF; '' is the null reverse-path. */
export function returnPathField(sender: string): string {
  return `Return-Path: <${printable(sender)}>\r\n`;
}

/** The Received field of this hop, folded, with its last CRLF. */
export function receivedField(hop: Hop): string {
  const name =
    printable(hop.helo)
      .replace(/[()<>\\"\s]/g, "?")
      .slice(0, HELO_CHARS_MAX) || "unknown";
  const client = hop.ip === null ? "" : ` (${hop.ip.includes(":") ? `[IPv6:${hop.ip}]` : `[${hop.ip}]`})`;
  const tls = hop.tls === null ? "" : ` (${printable(hop.tls)})`;
  const lines = [
    `Received: from ${name}${client}`,
    `\tby ${hop.by} (Postern) with ${hop.protocol}${tls}`,
    `\tid ${hop.id}${hop.recipient === null ? ";" : ""}`,
    ...(hop.recipient === null ? [] : [`\tfor <${printable(hop.recipient)}>;`]),
    `\t${dateTime(hop.at_ms)}`,
  ];
  return lines.map((line) => `${line}\r\n`).join("");
}

// Fields may hold UTF-8 (RFC 6532), but no control and no line break.
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/gu, "?");
}

/** RFC 5322 §3.3 date-time in UTC. */
export function dateTime(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${DAYS[at.getUTCDay()]}, ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
  return `${day} ${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())} +0000`;
}
