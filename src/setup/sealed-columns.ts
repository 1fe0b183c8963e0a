// Every column of the database that holds sealed values, of all features.
import { listOrganizations } from "../accounts/accounts.ts";
import { SEALED as ANSWERS } from "../api/creates/creates.ts";
import { SEALED as CERTIFICATES } from "../certificates/certificates.ts";
import { SEALED as DKIM_KEYS } from "../dkim/dkim.ts";
import { SEALED_KEY, SEALED_REPLIES, SEALED_TEXTS } from "../masked/masked.ts";
import { SEALED as RELAYS } from "../outbound/outbound.ts";
import { SEALED as PEOPLE } from "../people/people.ts";
import { countLeft } from "../platform/storage/reseal.ts";
import type { SealedColumn } from "../platform/storage/sealed-columns.ts";
import type { World } from "../platform/world.ts";
import { SEALED as WEBHOOKS } from "../webhooks/webhooks.ts";

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  ...[...DKIM_KEYS, ...WEBHOOKS, ...RELAYS, ...PEOPLE, ...CERTIFICATES, SEALED_KEY],
  ...[...SEALED_TEXTS, SEALED_REPLIES, ...ANSWERS],
];

/** Before the first start nothing is sealed or digested: a key ring may have any root. */
export async function isFresh({ db }: Pick<World, "db">): Promise<boolean> {
  return (await listOrganizations({ db })).length === 0 && (await countLeft(db, SEALED_COLUMNS, 0)) === 0;
}
