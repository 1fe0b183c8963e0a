// Where a domain wants reports on TLS (RFC 8460 §3): the TXT record `_smtp._tls.<domain>` as text. Not here: asking for it.
import { parseAddress } from "../address.ts";

export type ReportDestinations = {
  /** Mail addresses, domains in lower case. */
  addresses: string[];
  urls: string[];
};

const RECORD_LENGTH_MAX = 4_096;
const URL_LENGTH_MAX = 2_048;
/** The most destinations of each kind; RFC 8460 §3 lets a sender deliver to one of them. */
const DESTINATIONS_MAX = 3;
const VERSION = /^v=TLSRPTv1[ \t]*;/;

/** Null: the domain wants no report, or its records are not as they must be. URIs of other schemes are passed over. */
export function readReportRecord(texts: readonly string[]): ReportDestinations | null {
  const records = texts.filter((text) => text.length <= RECORD_LENGTH_MAX && VERSION.test(text));
  const [record] = records;
  // RFC 8460 §3: senders take more than one record for none.
  if (record === undefined || records.length > 1) return null;
  const fields = record.split(";").slice(1);
  const [rua, ...more] = fields.flatMap((field) => /^[ \t]*rua=(.*)$/s.exec(field)?.[1] ?? []);
  if (rua === undefined || more.length > 0) return null;
  const uris = rua.split(",").map((uri) => uri.trim());
  const addresses = [...new Set(uris.flatMap((uri) => readAddress(uri) ?? []))].slice(0, DESTINATIONS_MAX);
  const urls = [...new Set(uris.flatMap((uri) => readUrl(uri) ?? []))].slice(0, DESTINATIONS_MAX);
  return addresses.length + urls.length === 0 ? null : { addresses, urls };
}

/** RFC 6068; what stands behind a `?` is not ours to follow. */
function readAddress(uri: string): string | null {
  const [, encoded] = /^mailto:([^?]+)/i.exec(uri) ?? [];
  if (encoded === undefined) return null;
  const read = parseAddress(decoded(encoded));
  return read.ok && !read.address.smtputf8 ? read.address.email : null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function readUrl(uri: string): string | null {
  if (uri.length > URL_LENGTH_MAX || !/^https:\/\//i.test(uri) || !URL.canParse(uri)) return null;
  const url = new URL(uri);
  if (url.username !== "" || url.password !== "") return null;
  url.hash = "";
  return url.href;
}
