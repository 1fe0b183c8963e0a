// The Sender Rewriting Scheme: a forwarder's envelope sender that holds the original one, so that SPF passes and bounces
// find their way back. `SRS0=<mac>=<day>=<domain>=<local>`, and `SRS1=…` for one that is rewritten already (guarded
// against being used as a relay: the next hop back is its own maker). 45 bits of MAC, good for ten days.
// Not here: the domain behind the @, and whether a bounce may be sent on.
import { isSame } from "./token-bytes.ts";

export type SrsKey = { mac(text: string): Buffer; now_ms: number };
export type SrsRead = { kind: "sender"; sender: string } | { kind: "forged" | "aged" | "none" };

const DAY_MS = 86_400_000;
const AGE_DAYS_MAX = 10;
/** Two base32 characters: the day comes round after 1,024. */
const DAYS = 1_024;
const MAC_CHARS = 9;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const LOCAL_OCTETS_MAX = 64; // RFC 5321 §4.5.3.1.1
/** RFC 5321 §4.1.2, with letters beyond ASCII (RFC 6531 §3.3). */
const DOT_ATOM = /^[\w!#$%&'*+/=?^`{|}~\u{80}-\u{10ffff}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\u{80}-\u{10ffff}-]+)*$/u;

/** The local part for `sender`; null when it would be too long, or the sender cannot be put in one. */
export function writeSrs(sender: string, key: SrsKey): string | null {
  const at = sender.lastIndexOf("@");
  const local = sender.slice(0, at);
  const domain = sender.slice(at + 1);
  if (at < 1 || domain === "" || /[\s"<>]/.test(sender)) return null;
  const day = writeDay(key.now_ms);
  const [tag, rest] = parts(local, domain);
  const written = `${tag}=${macOf(key, tag, `${day}=${rest}`)}=${day}=${rest}`;
  // Real senders have local parts that need quotes (`a..b@docomo.example`), and those that lack them are no address.
  return Buffer.byteLength(written) <= LOCAL_OCTETS_MAX && DOT_ATOM.test(written) ? written : null;
}

/** What a rewritten sender becomes: a first one names its sender, a rewritten one its maker and what that wrote. */
function parts(local: string, domain: string): [tag: "SRS0" | "SRS1", rest: string] {
  const first = /^SRS0([=+-].*)$/is.exec(local);
  if (first) return ["SRS1", `${domain}=${first[1]}`];
  // The first maker stays named; what stands before it is the last one's: its MAC, and with ours the day.
  const again = /^SRS1[=+-][^=]*=(?:[a-z2-7]{2}=)?([^=]+=.+)$/is.exec(local);
  return again ? ["SRS1", again[1] ?? ""] : ["SRS0", `${domain}=${local}`];
}

/** Reads a local part that `writeSrs` made. The case of the MAC does not matter; mail may fold it. */
export function readSrs(written: string, key: SrsKey): SrsRead {
  const match = /^(SRS[01])=([a-z2-7]{9})=([a-z2-7]{2})=([^=]+)=(.+)$/is.exec(written);
  if (!match) return { kind: "none" };
  const [, tag = "", mac = "", day = "", domain = "", local = ""] = match;
  const expected = macOf(key, tag.toUpperCase(), `${day.toLowerCase()}=${domain}=${local}`);
  if (!isSame(Buffer.from(expected), Buffer.from(mac.toLowerCase()))) return { kind: "forged" };
  if (ageDays(day.toLowerCase(), key.now_ms) > AGE_DAYS_MAX) return { kind: "aged" };
  const sender = tag.toUpperCase() === "SRS0" ? `${local}@${domain}` : `SRS0${local}@${domain}`;
  return { kind: "sender", sender };
}

function macOf(key: SrsKey, tag: string, text: string): string {
  // Local parts and domains may be folded to lower case on the way.
  const bytes = key.mac(`${tag} ${text.toLowerCase()}`);
  let value = 0n;
  for (const byte of bytes.subarray(0, 6)) value = (value << 8n) | BigInt(byte);
  return Array.from({ length: MAC_CHARS }, (_, at) => ALPHABET[Number((value >> BigInt(at * 5)) & 31n)]).join("");
}

function writeDay(nowMs: number): string {
  const day = Math.floor(nowMs / DAY_MS) % DAYS;
  return `${ALPHABET[day >> 5]}${ALPHABET[day & 31]}`;
}

/** A day from the future is as old as can be. */
function ageDays(day: string, nowMs: number): number {
  const written = (ALPHABET.indexOf(day[0] ?? "") << 5) | ALPHABET.indexOf(day[1] ?? "");
  return (Math.floor(nowMs / DAY_MS) - written + 2 * DAYS) % DAYS;
}
