// Who must not be mailed, and who says so: bounces and complaints (automatic, for the whole organization), recipients
// (unsubscribe, for a list or a sender domain), customers (by hand or import). Face of the feature.
//
// What an entry blocks: scope `org` every mail; `domain` mail from that sender domain (one that the recipient made by an
// unsubscribe link: only mail that has such a link, so that nobody loses the way back to a password); `template` mail
// rendered with it;
// `list` mail sent with that `unsubscribe.list`; `stream` mail of that class (`transactional`, `bulk`) or with that tag.
// No entry, whatever its reason, blocks mail outside its scope.

import { findDomain } from "../domains/domains.ts";
import { parseAddress } from "../mail/address.ts";
import { isOutOfTime, isUuid, type Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { allowTime } from "../platform/database/session-settings.ts";
import type { Total } from "../platform/database/totals.ts";
import { coalesce } from "../platform/fair/coalesce.ts";
import { invalid, notFound } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { hasTemplate } from "../templates/templates.ts";
import { isLonger } from "../text/is-longer.ts";
import { ORG_SCOPE, readScope, type Scope } from "./import/scope.ts";
import { eraseShown } from "./import-queries.ts";
import * as queries from "./queries.ts";
import {
  type Blocking,
  type Entry,
  type Filter,
  type MailScope,
  type NewEntry,
  type Reason,
  type ScopeType,
  STRENGTH,
} from "./types.ts";

export { scopeOf } from "./scope.ts";
export { Suppression } from "./shape.ts";

const LOOKUPS_MAX = 1_000;
const LOOKUP_LANES = 2;
const ENTRIES_SHOWN_MAX = 100;
/** One for each scope: more than an organization has. */
const ENTRIES_OF_ADDRESS_MAX = 10_000;
const SEARCH_KEYS_MAX = 1_000;
const INSERT_MAX = 1_000;
/** For each statement of a search; a part of an address among 10 million takes some ten (1.3 µs an entry on a busy machine). */
const SEARCH_SECONDS = 25;
const NOTE_CHARS_MAX = 1_000;

/**
 * The look-up of the send path: which of these addresses must not get this mail, and why. Addresses in any case; the map
 * has them as given. Look-ups of concurrent requests share statements.
 */
export function findSuppressed(
  world: Pick<World, "db" | "clock">,
): (orgId: string, mail: MailScope & { emails: readonly string[] }) => Promise<Map<string, Blocking>> {
  const lookUp = coalesce<string, Blocking>({
    keys_max: LOOKUPS_MAX,
    lanes: LOOKUP_LANES,
    load: (keys) => loadBlocking(world, keys),
  });
  return async (orgId, { emails, ...mail }) => {
    const found = await Promise.all(emails.map((email) => lookUp(lookUpKey(orgId, email.toLowerCase(), mail))));
    const blocked = new Map<string, Blocking>();
    for (const [index, entry] of found.entries()) if (entry) blocked.set(emails[index] as string, entry);
    return blocked;
  };
}

function lookUpKey(orgId: string, email: string, mail: MailScope): string {
  const { domain_id, template_id, list, unsubscribable = true } = mail;
  return JSON.stringify([orgId, email, domain_id, template_id, list, streamsOf(mail), unsubscribable]);
}

// A tag with a NUL is in no entry, and jsonb could not hold it.
function streamsOf(mail: MailScope): string {
  return JSON.stringify(
    (mail.streams ?? []).filter((stream) => !stream.includes("\0")).map((stream) => stream.toWellFormed()),
  );
}

async function loadBlocking(world: Pick<World, "db" | "clock">, keys: string[]): Promise<Map<string, Blocking>> {
  const wanted = keys.map((key) => {
    const [org_id, email, domain_id, template_id, list, streams, unsubscribable] = JSON.parse(key);
    return { org_id, email, domain_id, template_id, list, streams, unsubscribable } as queries.Wanted;
  });
  const rows = await queries.findBlocking(world.db, wanted, new Date(world.clock.now()));
  const strongest = new Map<string, Blocking>();
  for (const { position, ...entry } of rows) {
    const key = keys[position] as string;
    if (isStronger(entry, strongest.get(key))) strongest.set(key, entry);
  }
  return strongest;
}

function isStronger(entry: Blocking, than: Blocking | undefined): boolean {
  return than === undefined || STRENGTH[entry.reason] > STRENGTH[than.reason];
}

export type AutomaticEntry = {
  org_id: string;
  email: string;
  reason: "hard_bounce" | "complaint";
  source_message_id: string | null;
  bounce_code: string | null;
  diag_code: string | null;
  feedback_type: string | null;
};

/**
 * Suppresses addresses for their whole organization because of what happened to mail for them; in the transaction that
 * records the event. Idempotent: an entry that is there only ever gets stronger. Any number of entries, any order.
 */
export async function suppress(
  world: Pick<World, "clock" | "random">,
  tx: Tx,
  entries: readonly AutomaticEntry[],
): Promise<void> {
  const strongest = new Map<string, AutomaticEntry>();
  for (const entry of entries) {
    const key = `${entry.org_id} ${entry.email.toLowerCase()}`;
    const known = strongest.get(key);
    if (!known || STRENGTH[entry.reason] > STRENGTH[known.reason]) strongest.set(key, entry);
  }
  // Over all statements of the transaction, not only within each, rows are locked in one order.
  const rows = [...strongest]
    .sort(([key], [other]) => (key < other ? -1 : 1))
    .map(([, entry]) => newEntry(world, { ...entry, ...ORG_SCOPE, source: "delivery_event" }));
  for (let at = 0; at < rows.length; at += INSERT_MAX) {
    await queries.mergeEntries(tx, new Date(world.clock.now()), rows.slice(at, at + INSERT_MAX));
  }
}

/**
 * A recipient's own unsubscribe (RFC 8058 one-click, or the link): from the list that the mail named, else from the
 * sender domain. Idempotent. Other mail to the address goes on.
 */
export async function unsubscribe(
  world: Pick<World, "clock" | "random">,
  tx: Tx,
  request: { org_id: string; email: string; list: string | null; domain_id: string; source_message_id: string | null },
): Promise<void> {
  const { org_id, email, source_message_id } = request;
  const scope: Scope = request.list
    ? { scope_type: "list", scope_id: request.list }
    : { scope_type: "domain", scope_id: request.domain_id };
  const entry = newEntry(world, {
    org_id,
    email,
    reason: "unsubscribe",
    source: "unsubscribe",
    source_message_id,
    ...scope,
  });
  await queries.mergeEntries(tx, new Date(world.clock.now()), [entry]);
}

type Known = Pick<NewEntry, "org_id" | "email" | "reason" | "scope_type" | "scope_id" | "source"> & Partial<NewEntry>;

function newEntry(world: Pick<World, "clock" | "random">, known: Known): NewEntry {
  return {
    source_message_id: null,
    bounce_code: null,
    diag_code: null,
    feedback_type: null,
    note: null,
    expires_at: null,
    ...known,
    id: world.random.uuid(),
    email: known.email.toLowerCase(),
    created_at: new Date(world.clock.now()),
  };
}

export type AddRequest = {
  email: string;
  reason?: "manual" | "unsubscribe";
  scope_type?: ScopeType;
  scope_id?: string | null;
  note?: string | null;
  expires_at?: string | null;
};

/** Adds an entry by hand. `created` is false where the address was suppressed in that scope already. */
export async function addSuppression(
  world: Pick<World, "db" | "clock" | "random">,
  orgId: string,
  request: AddRequest,
): Promise<{ suppression: Entry; created: boolean }> {
  const scope = readScope(request.scope_type ?? "org", request.scope_id ?? "");
  if (!scope.ok) throw invalid("scope_id", `the 'scope_id' field ${scope.problem}`);
  const now = new Date(world.clock.now());
  const entry = newEntry(world, {
    org_id: orgId,
    email: readEmail(request.email, "email"),
    reason: request.reason ?? "manual",
    source: "manual",
    note: readNote(request.note),
    expires_at: readExpiry(request.expires_at, now),
    ...scope.scope,
  });
  const rows = await world.db.asOrg(orgId, async (tx) => {
    await requireScope(tx, orgId, scope.scope);
    return queries.putEntry(tx, now, entry);
  });
  const suppression = rows[0] as Entry;
  return { suppression, created: suppression.id === entry.id };
}

async function requireScope(tx: Tx, orgId: string, scope: Scope): Promise<void> {
  if (await isKnownScope(tx, orgId, scope)) return;
  throw invalid("scope_id", `the 'scope_id' field must be the id of a ${scope.scope_type} of yours`);
}

/** A domain or template that is not there blocks nothing: most likely it was meant to be another. */
export async function isKnownScope(tx: Tx, orgId: string, { scope_type, scope_id }: Scope): Promise<boolean> {
  if (scope_type === "domain") return (await findDomain(tx, orgId, scope_id)) !== undefined;
  return scope_type !== "template" || hasTemplate(tx, orgId, scope_id);
}

function readEmail(text: string, field: string): string {
  const parsed = parseAddress(text.trim());
  if (!parsed.ok) throw invalid(field, `the '${field}' field is not a valid address: ${parsed.reason}`);
  return parsed.address.email.toLowerCase();
}

function readNote(note: string | null | undefined): string | null {
  if (note === null || note === undefined || note === "") return null;
  if (isLonger(note, NOTE_CHARS_MAX))
    throw invalid("note", `the 'note' field must have at most ${NOTE_CHARS_MAX} characters`);
  if (note.includes("\0")) throw invalid("note", "the 'note' field must not hold a NUL character");
  return note.toWellFormed();
}

function readExpiry(text: string | null | undefined, now: Date): Date | null {
  if (text === null || text === undefined) return null;
  const at = new Date(text);
  if (at <= now) throw invalid("expires_at", "the 'expires_at' field must be in the future");
  return at;
}

/**
 * Finds whether a mail to this address, with this domain, template, list and stream, is suppressed. `entry` is what
 * blocks it.
 */
export async function checkSuppression(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  request: { email: string; domain_id?: string; template_id?: string; list?: string; stream?: string },
): Promise<{ suppressed: boolean; entry: Entry | null; entries: Entry[] }> {
  // In a query string `+` is a blank to many (HTML forms) and a plus to others (RFC 3986). Blanks stand in quotes only.
  const given = request.email.trim();
  const email = readEmail(given.startsWith('"') ? given : given.replaceAll(" ", "+"), "email");
  const mail: MailScope = {
    domain_id: request.domain_id?.toLowerCase() ?? null,
    template_id: request.template_id?.toLowerCase() ?? null,
    list: plain(request.list, "list"),
    streams: request.stream === undefined ? [] : [plain(request.stream, "stream") as string],
  };
  const now = new Date(world.clock.now());
  const wanted = { org_id: orgId, email, ...mail, streams: streamsOf(mail), unsubscribable: true };
  return world.db.asOrg(orgId, async (tx) => {
    const blocking = await queries.findBlocking(tx, [wanted], now);
    const entries = await queries.listOfAddress(tx, orgId, now, { email, limit: ENTRIES_SHOWN_MAX });
    const strongest = blocking.reduce<Blocking | undefined>(
      (best, entry) => (isStronger(entry, best) ? entry : best),
      undefined,
    );
    const entry = strongest ? await entryOf(tx, orgId, now, { strongest, entries }) : null;
    return { suppressed: entry !== null, entry, entries };
  });
}

async function entryOf(
  tx: Tx,
  orgId: string,
  now: Date,
  { strongest, entries }: { strongest: Blocking; entries: Entry[] },
): Promise<Entry | null> {
  const shown = entries.find(({ id }) => id === strongest.id);
  return shown ?? (await queries.findEntry(tx, orgId, now, strongest.id))[0] ?? null;
}

function plain(text: string | undefined, field: string): string | null {
  if (text?.includes("\0")) throw invalid(field, `the '${field}' query parameter must not hold a NUL character`);
  return text ?? null;
}

export type ListRequest = {
  query?: string;
  reason?: Reason;
  scope_type?: ScopeType;
  scope_id?: string;
  source?: string;
};

/** The filter of a list or export; texts that no entry can hold are refused. */
export function readFilter(request: ListRequest): Filter {
  const { scope_type = null } = request;
  const scopeId = plain(request.scope_id, "scope_id") || null;
  const isOfRecord = scope_type === "domain" || scope_type === "template";
  return {
    query: plain(request.query, "query")?.trim().toLowerCase() || null,
    reason: request.reason ?? null,
    scope_type,
    // An id may be written in any case; the name of a list or stream is as it is.
    scope_id: isOfRecord ? (scopeId?.toLowerCase() ?? null) : scopeId,
    source: plain(request.source, "source") || null,
  };
}

/** Entries, the newest first, with their number: exact where it is kept by kind. */
export async function listSuppressions(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  request: ListRequest,
  page: Page,
) {
  const filter = readFilter(request);
  const now = new Date(world.clock.now());
  const listing: queries.Listing = { now, filter, page };
  const { rows, ...total } = await world.db.asOrg(orgId, (tx) => {
    if (filter.query !== null) return search(tx, orgId, listing);
    return filter.scope_id !== null ? listOfScope(tx, orgId, listing) : listOfKind(tx, orgId, listing);
  });
  return { suppressions: rows, ...total, ...page };
}

type Listed = { rows: Entry[] } & Total;

async function listOfKind(tx: Tx, orgId: string, listing: queries.Listing): Promise<Listed> {
  const { filter, page } = listing;
  const total = await queries.countByKind(tx, orgId, listing);
  if (page.offset >= total) return { rows: [], total };
  const all = filter.reason === null && filter.scope_type === null && filter.source === null;
  const rows = await (all ? queries.listNewest : queries.listByKind)(tx, orgId, listing);
  return { rows, total };
}

async function listOfScope(tx: Tx, orgId: string, listing: queries.Listing): Promise<Listed> {
  const counted = await queries.countByScope(tx, orgId, listing);
  if (isBehind(listing, counted)) return { rows: [], ...counted };
  return { rows: await queries.listByScope(tx, orgId, listing), ...counted };
}

// The beginning of an address is found by the index. A text within is found by a pass over the organization's part of it,
// not by an index of its own: that would double the cost of every import.
async function search(tx: Tx, orgId: string, listing: queries.Listing): Promise<Listed> {
  await allowTime(tx, SEARCH_SECONDS);
  try {
    return await searchInTime(tx, orgId, listing);
  } catch (error) {
    if (!isOutOfTime(error)) throw error;
    throw invalid("query", "the 'query' field takes too long in a list of this size; give the beginning of an address");
  }
}

async function searchInTime(tx: Tx, orgId: string, listing: queries.Listing): Promise<Listed> {
  const { limit, offset, below } = listing.page;
  const few = await queries.searchFew(tx, orgId, listing, SEARCH_KEYS_MAX + 1);
  if (few.hits <= SEARCH_KEYS_MAX) {
    const behind = few.rows.filter(({ id }) => id < below);
    return { rows: behind.slice(offset, offset + limit), total: few.rows.length };
  }
  const counted = await queries.countSearch(tx, orgId, listing);
  if (isBehind(listing, counted)) return { rows: [], ...counted };
  return { rows: await queries.searchMany(tx, orgId, listing), ...counted };
}

/**
 * True if the page lies behind the last entry. Where not all were counted that is not known, and the answer is false.
 */
function isBehind({ page }: queries.Listing, { total, total_is_at_least }: Total): boolean {
  return page.offset >= total && !total_is_at_least;
}

/** Removes by id (any scope) or by address (its org-wide entry only); answers the id of what was removed. */
export async function removeSuppression(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  identifier: string,
): Promise<string> {
  const now = new Date(world.clock.now());
  const id = identifier.toLowerCase();
  if (isUuid(id)) return removed(await world.db.asOrg(orgId, (tx) => queries.deleteById(tx, orgId, now, id)));
  const parsed = parseAddress(identifier.trim());
  if (!parsed.ok) throw notFound("suppression");
  const email = parsed.address.email.toLowerCase();
  return removed(await world.db.asOrg(orgId, (tx) => queries.deleteByAddress(tx, orgId, now, email)));
}

function removed(rows: { id: string }[]): string {
  const row = rows[0];
  if (!row) throw notFound("suppression");
  return row.id;
}

/** All entries of an address, whatever their scope. */
export async function entriesOf(world: Pick<World, "clock">, tx: Tx, orgId: string, email: string): Promise<Entry[]> {
  const now = new Date(world.clock.now());
  return queries.listOfAddress(tx, orgId, now, { email: email.toLowerCase(), limit: ENTRIES_OF_ADDRESS_MAX });
}

/** Removes all entries of an address, whatever their scope; how many. */
export async function removeEntriesOf(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  email: string,
): Promise<number> {
  let removedSoFar = 0;
  for (;;) {
    const count = await world.db.asOrg(orgId, async (tx) => {
      const entries = await entriesOf(world, tx, orgId, email);
      const now = new Date(world.clock.now());
      for (const { id } of entries) await queries.deleteById(tx, orgId, now, id);
      return entries.length;
    });
    removedSoFar += count;
    if (count < ENTRIES_OF_ADDRESS_MAX) return removedSoFar;
  }
}

/** Erases an address from the rows and errors that jobs show for 30 days. What waits for a commit goes within a day. */
export async function eraseFromImports(
  world: Pick<World, "db">,
  orgId: string,
  of: { email: string; mention: string },
): Promise<void> {
  await world.db.asOrg(orgId, (tx) => eraseShown(tx, orgId, of));
}
