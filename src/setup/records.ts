// Which records of the service's own zone others see by now.
import type { ZoneRecord } from "../doctor/zone.ts";
import type { Resolver } from "../platform/dns/resolver.ts";

export type RecordResolver = Pick<Resolver, "a" | "aaaa" | "mx" | "txt">;

/** Those of `records` that are not in DNS, or could not be asked for. */
export async function missingRecords(records: readonly ZoneRecord[], resolver: RecordResolver): Promise<ZoneRecord[]> {
  const seen = await Promise.all(records.map((record) => isSeen(record, resolver)));
  return records.filter((_, at) => !seen[at]);
}

async function isSeen({ name, type, value }: ZoneRecord, resolver: RecordResolver): Promise<boolean> {
  // Any name below it is answered.
  const asked = name.replace(/^\*\./, "any.");
  if (type === "MX") {
    const answer = await resolver.mx(asked);
    return answer.kind === "found" && answer.records.some(({ exchange }) => exchange.toLowerCase() === value);
  }
  const answer = await (type === "A"
    ? resolver.a(asked)
    : type === "AAAA"
      ? resolver.aaaa(asked)
      : resolver.txt(asked));
  if (answer.kind !== "found") return false;
  return answer.records.some((record) => (type === "TXT" ? holds(record, value) : record === value));
}

/** A DKIM key may be written with other spaces; an SPF record may have more terms than ours. */
function holds(found: string, wanted: string): boolean {
  if (tight(found) === tight(wanted)) return true;
  if (!wanted.startsWith("v=spf1 ")) return false;
  const terms = found.split(/\s+/);
  return wanted.split(" ").every((term) => /^[-~?]all$/.test(term) || terms.includes(term));
}

function tight(text: string): string {
  return text.replace(/\s+/g, "").replace(/;$/, "");
}
