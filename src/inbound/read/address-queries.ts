// SQL on received mail of one address: from it, to it, or with a copy to it. Rows are passed over, some 0.4 s for 200,000.

import { holds } from "../../http/like.ts";
import type { Query, Tx } from "../../platform/database/db.ts";
import type { OfAddress } from "../../sending/sending.ts";
import { type EmailListRow, LISTED, SHOWN } from "./list-queries.ts";

export type { OfAddress };

/** Mail that holds the address. The findings are looked at last: they may be long. */
const FOUND = `inbound_email e
  where e.org_id = $1 and e.environment = $4 and ${SHOWN}
    and (${holds("concat_ws(' ', e.from_address, e.envelope_from, e.recipient)", "$2", "$3")}
         or strpos(lower(e.findings::text), lower($2)) > 0
            and concat_ws(' ', e.findings ->> 'cc', e.findings ->> 'reply_to') ~* $3)`;

const valuesOf = (orgId: string, { needle, pattern, environment }: OfAddress) => [orgId, needle, pattern, environment];

export type OfAddressRow = EmailListRow & { forward_ids: string[] };

/** A page, the newest first. */
export function listOf(tx: Tx, orgId: string, of: OfAddress, { below, limit }: { below: string; limit: number }) {
  return tx.query<OfAddressRow>(
    `select ${LISTED}, e.forward_ids from ${FOUND} and e.id < $5 order by e.id desc limit $6`,
    [...valuesOf(orgId, of), below, limit],
  );
}

export async function countOf(tx: Query, orgId: string, of: OfAddress): Promise<number> {
  const rows = await tx.query<{ n: number }>(`select count(*) as n from ${FOUND}`, valuesOf(orgId, of));
  return rows[0]?.n ?? 0;
}

/** Routing rules, and lists of domains for and against spam, that name the address. */
export async function countRules(
  tx: Query,
  orgId: string,
  { pattern, environment }: Pick<OfAddress, "pattern" | "environment">,
) {
  const rows = await tx.query<{ n: number }>(
    `select (select count(*) from inbound_rule i
              where i.org_id = $1 and i.environment = $3 and concat_ws(' ', i.match::text, array_to_string(i.forward_to, ' ')) ~* $2)
          + (select count(*) from domain_spam s where s.org_id = $1 and array_to_string(s.allow || s.block, ' ') ~* $2) as n`,
    [orgId, pattern, environment],
  );
  return rows[0]?.n ?? 0;
}
