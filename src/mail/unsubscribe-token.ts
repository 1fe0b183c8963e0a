// The token in a List-Unsubscribe link (RFC 8058): says by itself who leaves what, so that links work for as long as the
// keys last, also when the message is no longer stored. Base64url of: version (1 byte), organization (16), message (16),
// sender domain (16), length of the address (1), address, list, HMAC (16). Signed, not secret: its readers are the
// recipient and those who may read the recipient's mail.
import { isSame, uuidBytes, uuidText } from "./token-bytes.ts";

/** `list` null: all mail of the sender domain that can be unsubscribed from. */
export type Leave = { org_id: string; message_id: string; domain_id: string; email: string; list: string | null };

/** What the path of a link begins with; the token follows. */
export const UNSUBSCRIBE_PATH = "/unsubscribe/";
/** Purpose of the keyed hash. */
export const UNSUBSCRIBE_CONTEXT = "unsubscribe";

const VERSION = 1;
const IDS_BYTES = 48;
const HEAD_BYTES = 1 + IDS_BYTES + 1;
const MAC_BYTES = 16;
const EMAIL_OCTETS_MAX = 254;
const TOKEN = /^[A-Za-z0-9_-]{80,1000}$/;

/** Deterministic: the same leave has the same link in every attempt. `mac` is a keyed hash of at least 16 bytes. */
export function makeUnsubscribeToken(leave: Leave, mac: (text: string) => Buffer): string {
  const ids = [leave.org_id, leave.message_id, leave.domain_id].map(uuidBytes);
  const email = Buffer.from(leave.email);
  if (email.length > EMAIL_OCTETS_MAX) throw new RangeError("an address has at most 254 octets");
  const head = Buffer.concat([Buffer.from([VERSION]), ...ids, Buffer.from([email.length])]);
  const payload = Buffer.concat([head, email, Buffer.from(leave.list ?? "")]);
  return Buffer.concat([payload, macOf(payload, mac)]).toString("base64url");
}

/** What a token says, or null when it is not ours (wrong form or forged). */
export function readUnsubscribeToken(token: string, mac: (text: string) => Buffer): Leave | null {
  if (!TOKEN.test(token)) return null;
  const bytes = Buffer.from(token, "base64url");
  const payload = bytes.subarray(0, -MAC_BYTES);
  if (payload.length < HEAD_BYTES || payload[0] !== VERSION) return null;
  if (!isSame(macOf(payload, mac), bytes.subarray(-MAC_BYTES))) return null;
  const emailEnd = HEAD_BYTES + (payload[HEAD_BYTES - 1] as number);
  return {
    org_id: uuidAt(payload, 1),
    message_id: uuidAt(payload, 17),
    domain_id: uuidAt(payload, 33),
    email: payload.toString("utf8", HEAD_BYTES, emailEnd),
    list: payload.toString("utf8", emailEnd) || null,
  };
}

function macOf(payload: Buffer, mac: (text: string) => Buffer): Buffer {
  return mac(payload.toString("base64")).subarray(0, MAC_BYTES);
}

function uuidAt(bytes: Buffer, at: number): string {
  return uuidText(bytes.toString("hex", at, at + 16));
}
