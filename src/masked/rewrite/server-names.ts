// The names of the machines a mail passed on its way to us, as its Received fields tell them: where its author is at home.
// Names of the great mailbox providers tell nothing, and people write about them.
import { anyOf } from "../../mail/any-of.ts";
import { headerValues, splitMessage } from "../../mail/mime/parse-head.ts";

const FIELDS_MAX = 30;
const NAMES_MAX = 60;
const PROVIDER = anyOf([
  /google|gmail|googlemail|outlook|hotmail|office365|microsoft|live|icloud|apple|me|yahoo|yahoodns|aol/,
  /proton|protonmail|pm|gmx|web|fastmail|messagingengine|zoho|mail|yandex|t-online|orange|free/,
]);
const PROVIDERS = new RegExp(`(?:^|\\.)(?:${PROVIDER})\\.(?:com|net|org|me|ch|de|fr|ru|uk|co\\.uk)$`);
const NAME = /(?<![\w.@-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,10}[a-z][a-z0-9-]{0,62}(?![\w-])/g;
const ADDRESS = /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])/g;
/** Not routed on the Internet, and written about everywhere (RFC 6890). */
const PRIVATE = /^(?:0|10|127|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168|22[4-9]|2[3-5]\d)\./;

/** `given`: addresses that the recipients see anyhow; a name that stands in one of them tells nothing. */
export type Origin = { helo: string; remote_ip: string | null; ours: readonly string[]; given: readonly string[] };

/** Host names and public IPv4 addresses of earlier hops and of `helo`, without those of `ours` and of `given`. */
export function serverNames(bytes: Buffer, { helo, remote_ip, ours, given }: Origin): string[] {
  const hops = headerValues(splitMessage(bytes).headers, "received").slice(0, FIELDS_MAX);
  const names = new Set<string>();
  for (const text of [...hops.map(pathOf), helo, remote_ip ?? ""]) {
    const lower = text.toLowerCase();
    for (const [name] of lower.matchAll(NAME)) if (isTelling(name)) names.add(name);
    for (const [ip] of lower.matchAll(ADDRESS)) if (!PRIVATE.test(ip)) names.add(ip);
  }
  const seen = given.map((address) => address.toLowerCase());
  const telling = [...names].filter((name) => !ours.includes(name) && !seen.some((address) => address.includes(name)));
  return telling.slice(0, NAMES_MAX);
}

/** `from … by …`, without the recipient and the date behind it. */
function pathOf(value: string): string {
  return value.slice(0, 1_000).replace(/\b(?:for|id|with)\b.*$/is, "");
}

function isTelling(name: string): boolean {
  return name.length >= 8 && !/(?:^|\.)(?:localhost|localdomain)$/.test(name) && !PROVIDERS.test(name);
}
