// The author's domain: what DMARC is about (RFC 9989 §5.3.1). One From field, whose mailboxes all have one domain; anything
// else has no author, because what a reader sees and what was signed may then be two things.
import { isUtf8 } from "node:buffer";
import { domainToASCII } from "node:url";
import { addressesMax, parseAddressList } from "../mime/parse-addresses.ts";

/**
 * `domains`: every domain found in From fields, for reports; `domain` is null when there is no single author. `exceeds`: From
 * holds more than is looked at, so that somebody may stand there who is not among them.
 */
export type Author = { domain: string | null; domains: string[]; reason: string; exceeds?: boolean };

const domainsMax = 50;
// A From field is a line or two; its reading costs time in the process that takes the mail.
const fromOctetsMax = 16 * 1_024;
const fromFieldsMax = 10;
// Names that mail can come from (RFC 5321 §2.3.5, and underscores, which exist): `bank.example(x)` has no policy, but
// a reader sees bank.example.
const dnsName = /^(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$/;

/** Finds the author in the bytes of the From fields (names included). */
export function findAuthor(fromFields: Buffer[]): Author {
  if (fromFields.some((field) => field.length > fromOctetsMax)) {
    return { domain: null, domains: [], reason: "the From field is too large", exceeds: true };
  }
  const emails = fromFields
    .slice(0, fromFieldsMax)
    .flatMap((field) => parseAddressList(unfoldedValue(field)).map(({ email }) => email));
  const parsed = emails.map((email) => (email === null ? null : dnsDomainOf(email)));
  const domains = [...new Set(parsed.filter((domain) => domain !== null))].slice(0, domainsMax);
  const exceeds = fromFields.length > fromFieldsMax || emails.length >= addressesMax;
  const author = (reason: string) => ({ domain: null, domains, reason, exceeds });
  if (fromFields.length === 0) return author("no From field");
  if (fromFields.length > 1) return author("more than one From field");
  if (exceeds) return author("From holds too many addresses");
  if (domains.length === 0) return author("From holds no address");
  if (parsed.includes(null)) return author("From holds something that is not an address");
  if (domains.length > 1) return author("From holds more than one domain");
  return { domain: domains[0]!, domains, reason: "" };
}

function unfoldedValue(field: Buffer): string {
  const octets = field.subarray(field.indexOf(0x3a) + 1);
  // RFC 6532 §3.2: UTF-8 and nothing else. In another charset a reader may see another domain; where one octet is no UTF-8,
  // all beyond ASCII become U+FFFD here, which is in no domain name.
  const text = isUtf8(octets) ? octets.toString("utf8") : octets.toString("latin1").replace(/[\x80-\xff]/g, "\ufffd");
  return text.replace(/\r?\n/g, "");
}

/** The domain of an address in the form of the DNS; null when there is not exactly one. */
function dnsDomainOf(email: string): string | null {
  const unquoted = email.replace(/"(?:[^"\\]|\\.)*"/gsu, "q");
  const at = unquoted.indexOf("@");
  if (at < 1 || unquoted.includes("@", at + 1)) return null;
  const domain = toDnsName(unquoted.slice(at + 1));
  return dnsName.test(domain) ? domain : null;
}

/** Lower case, A-labels, no final dot; "" for what cannot be converted. */
export function toDnsName(text: string): string {
  const isAscii = /^[\x00-\x7f]*$/.test(text);
  const ascii = isAscii ? text : /^[\p{L}\p{M}\p{N}._-]+$/u.test(text) ? domainToASCII(text) : "";
  return ascii.toLowerCase().replace(/\.$/, "");
}
