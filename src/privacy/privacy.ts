// What an organization answers when a person asks for what is stored of an e-mail address, or wants it erased (GDPR articles 15 and
// 17). Each feature finds and erases what it stores; here it is put together. Face of the feature. What is kept, and why: decision 0045.
import { countForwardingTo } from "../aliases/aliases.ts";
import { countNamed } from "../audit/audit.ts";
import type { Account } from "../http/http.ts";
import { addressPattern, asciiNeedle, exactPattern, mentionPattern } from "../http/like.ts";
import { countReceivedOf, countRulesNaming, eraseReceivedOf, listReceivedOf } from "../inbound/inbound.ts";
import { parseAddress } from "../mail/address.ts";
import { erasePerson, exportPerson } from "../masked/masked.ts";
import type { Tx } from "../platform/database/db.ts";
import { allowTime } from "../platform/database/session-settings.ts";
import { invalid } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import {
  countSentFrom,
  countSentTo,
  type ErasePorts,
  eraseSentTo,
  listSentTo,
  type OfAddress,
} from "../sending/sending.ts";
import { entriesOf, eraseFromImports, removeEntriesOf } from "../suppressions/suppressions.ts";
import { countWebhooksNaming } from "../webhooks/webhooks.ts";

export type PrivacyPorts = ErasePorts;
type PrivacyWorld = Pick<World, "db" | "blobs" | "clock" | "random" | "seal">;

/** No index has addresses: a pass over 1,000,000 e-mails takes some 1.1 s. */
const STATEMENT_S = 25;

/** What is stored of an address in the key's environment: a page of its mail, and all else. */
export async function exportAddress(
  world: PrivacyWorld,
  account: Account,
  email: string,
  page: { limit: number; below: string },
) {
  const of = readAddress(account, email);
  const { org_id } = account;
  const found = await world.db.asOrg(org_id, async (tx) => {
    await allowTime(tx, STATEMENT_S);
    const [sent, received] = [await listSentTo(tx, org_id, of, page), await listReceivedOf(tx, org_id, of, page)];
    const suppressions = await entriesOf(world, tx, org_id, of.email);
    const total = await countAll(tx, org_id, of, suppressions);
    return { ...cut(sent, received, page.limit), suppressions, total };
  });
  return { email: of.email, ...found, masked: await exportPerson(world, account, of.email) };
}

/** The newest of both together, and where the next page goes on; null: this was the last. */
function cut<S extends { id: string }, R extends { id: string }>(sent: S[], received: R[], limit: number) {
  const ids = [...sent, ...received]
    .map(({ id }) => id)
    .sort()
    .reverse();
  const last = ids[limit - 1];
  const isOn = (mail: { id: string }) => last === undefined || mail.id >= last;
  const isFull =
    last !== undefined && (sent.length + received.length > limit || [sent, received].some((of) => of.length === limit));
  return { sent: sent.filter(isOn), received: received.filter(isOn), next_after: isFull ? last : null };
}

/**
 * How much is stored of it. Besides its mail and its suppressions: where it stands in what the organization set up, and in who did what;
 * erasing leaves those.
 */
async function countAll(tx: Tx, orgId: string, of: OfAddress, suppressions: readonly unknown[]) {
  return {
    sent: await countSentTo(tx, orgId, of),
    received: await countReceivedOf(tx, orgId, of),
    suppressions: suppressions.length,
    sent_from: await countSentFrom(tx, orgId, of),
    aliases: await countForwardingTo(tx, orgId, of),
    rules: (await countRulesNaming(tx, orgId, of)) + (await countWebhooksNaming(tx, orgId, inPatterns(of))),
    audit_entries: await countNamed(tx, orgId, of.email.toLowerCase()),
  };
}

/** As expressions are written: a backslash may stand before a point or a plus. */
function inPatterns({ pattern, environment }: OfAddress) {
  return { address: pattern.replace(/\\([^\w\s])/g, "\\\\?\\$1"), environment };
}

export type EraseRequest = { email: string; suppressions?: boolean | undefined };

/**
 * Erases what is stored of an address in the key's environment. Idempotent; what is more than one call does, and mail that is on
 * its way at this moment, is counted in `left`: call again.
 */
export async function eraseAddress(world: PrivacyWorld, ports: PrivacyPorts, account: Account, request: EraseRequest) {
  const of = readAddress(account, request.email);
  const { org_id } = account;
  const received = await eraseReceivedOf(world, ports, org_id, of);
  const sent = await eraseSentTo(world, ports, org_id, of);
  const masked = await erasePerson(world, account, of.email);
  await eraseFromImports(world, org_id, of);
  const suppressions = request.suppressions ? await removeEntriesOf(world, org_id, of.email) : 0;
  const left = await world.db.asOrg(org_id, async (tx) => {
    await allowTime(tx, STATEMENT_S);
    return countAll(tx, org_id, of, await entriesOf(world, tx, org_id, of.email));
  });
  return { email: of.email, ...sent, received, suppressions, masked, left };
}

function readAddress({ environment }: Account, given: string): OfAddress {
  // In a query string `+` is a blank to many (HTML forms) and a plus to others (RFC 3986). Blanks stand in quotes only.
  const trimmed = given.trim();
  const parsed = parseAddress(trimmed.startsWith('"') ? trimmed : trimmed.replaceAll(" ", "+"));
  if (!parsed.ok) throw invalid("email", `the 'email' parameter is not an e-mail address: ${parsed.reason}`);
  const { email } = parsed.address;
  const patterns = { exact: exactPattern(email), pattern: addressPattern(email), mention: mentionPattern(email) };
  return { email, needle: asciiNeedle(email), ...patterns, environment };
}
