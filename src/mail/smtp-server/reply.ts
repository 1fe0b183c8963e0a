// Replies of an SMTP server (RFC 5321 §4.2) with enhanced status codes (RFC 2034, RFC 3463). Texts are made one line of
// printable ASCII, so that nothing a client or a lookup said can split a reply.

export type Reply = { code: number; enhanced: string | null; text: string | readonly string[] };

const TEXT_MAX = 400;

/** A reply; `enhanced` is left out only where RFC 2034 §4 says so (greeting, EHLO, 354). */
export function reply(code: number, enhanced: string | null, text: string | readonly string[]): Reply {
  return { code, enhanced, text };
}

/** The reply's bytes: each line has the codes. */
export function formatReply({ code, enhanced, text }: Reply): string {
  const lines = typeof text === "string" ? [text] : text;
  const prefix = enhanced === null ? "" : `${enhanced} `;
  return lines
    .map((line, index) => `${code}${index < lines.length - 1 ? "-" : " "}${prefix}${clean(line)}\r\n`)
    .join("");
}

function clean(text: string): string {
  return text.slice(0, TEXT_MAX).replace(/[^\x20-\x7e]/g, "?");
}

/** To every address that takes nothing, whatever the reason and whoever is asked: it tells nobody what else there is. */
export const NO_SUCH_MAILBOX = { code: 550, enhanced: "5.1.1", text: "no such mailbox here" } as const;
export const TOO_SLOW: Reply = reply(421, "4.4.2", "too slow, closing the connection");
export const STOPPING: Reply = reply(421, "4.3.2", "the service is restarting, try again shortly");
export const TOO_MANY_ERRORS: Reply = reply(421, "4.7.0", "too many errors, closing the connection");
export const TOO_MANY_LOGINS: Reply = reply(421, "4.7.0", "too many failed logins, closing the connection");
export const TOO_MANY_COMMANDS: Reply = reply(421, "4.7.0", "too many commands, closing the connection");
export const TOO_MANY_MESSAGES: Reply = reply(421, "4.7.0", "enough messages on this connection, open another");
export const SYNTAX: Reply = reply(500, "5.5.2", "this command cannot be read");
export const LINE_TOO_LONG: Reply = reply(500, "5.5.2", "line too long, closing the connection");
export const NEEDS_CRLF: Reply = reply(
  554,
  "5.5.2",
  "lines must end in CRLF; a CR or LF alone and NUL are refused; closing the connection",
);
