// Where reports on a domain go, and what must be in DNS so that they do: the rua entry of its DMARC record, and the record of
// our own zone by which we say that we want them (RFC 7489 §7.1, RFC 9990 §4), without which reporters send nothing.
import { reportAuthorization, reportUri, requireDomain } from "../domains/domains.ts";
import type { DomainRow } from "../domains/types.ts";
import type { World } from "../platform/world.ts";

export const AUTHORIZATION_STATUSES = ["not_required", "ok", "missing", "mismatch", "error"] as const;
const RECORD_LENGTH_MAX = 1_000;

export type Authorization = {
  required: boolean;
  name: string;
  type: "TXT";
  value: string;
  status: (typeof AUTHORIZATION_STATUSES)[number];
};

/** The address, the record to publish and whether ours is published; or 404. */
export async function getReportAddress(
  world: Pick<World, "db" | "config" | "resolver">,
  orgId: string,
  idOrName: string,
) {
  const row = await world.db.asOrg(orgId, (tx) => requireDomain(tx, orgId, idOrName));
  const rua = reportUri(world, row);
  return {
    address: rua.slice("mailto:".length),
    rua,
    suggested_record: { type: "TXT" as const, name: `_dmarc.${row.domain}`, value: suggestRecord(row, rua) },
    external_authorization: await checkAuthorization(world, row),
  };
}

/** The record there is, with our address added; a first one with p=none where there is none. */
function suggestRecord(row: Pick<DomainRow, "checks">, rua: string): string {
  const found = row.checks.find(({ purpose }) => purpose === "dmarc")?.found ?? [];
  const records = found.filter((text) => /^v\s*=\s*DMARC1\s*;/.test(text) && text.length < RECORD_LENGTH_MAX);
  const [record] = records;
  if (record === undefined || records.length > 1) return `v=DMARC1; p=none; rua=${rua}`;
  if (record.toLowerCase().includes(rua)) return record;
  const [, before, addresses] = /^(.*?;\s*rua\s*=)([^;]*)/is.exec(record) ?? [];
  if (before !== undefined && addresses !== undefined) {
    // An empty one, or a comma too many, is a syntax error that reporters answer with silence.
    const others = addresses
      .split(",")
      .map((uri) => uri.trim())
      .filter((uri) => uri !== "");
    return `${before}${[...others, rua].join(",")}${record.slice(before.length + addresses.length)}`;
  }
  return `${record.replace(/(?<![\s;])[\s;]+$/, "")}; rua=${rua}`;
}

async function checkAuthorization(
  world: Pick<World, "config" | "resolver">,
  { domain, org_id }: Pick<DomainRow, "domain" | "org_id">,
): Promise<Authorization> {
  const record = { ...reportAuthorization(world, domain), type: "TXT" as const };
  if (!record.required) return { ...record, status: "not_required" };
  const answer = await world.resolver.txt(record.name, { who: org_id });
  if (answer.kind === "failed") return { ...record, status: "error" };
  if (answer.kind === "absent") return { ...record, status: "missing" };
  const isThere = answer.records.some((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/i.test(text));
  return { ...record, status: isThere ? "ok" : "mismatch" };
}
