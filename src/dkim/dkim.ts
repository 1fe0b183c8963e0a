// DKIM keys of customers' domains: making, publishing, rotating, ending them, and opening them for the signer. Face of
// the feature. A key goes pending → active (once DNS shows it) → retiring (7 days) → deactivated. Not here: signing and
// the form of records (mail/dkim), looking records up (domains).

import * as domains from "../domains/domains.ts";
import type { DkimKeys, DkimRecord, DkimVerdict, DnsRecord, DomainPorts, RecordCheck } from "../domains/types.ts";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../mail/dkim/key.ts";
import type { DkimAlgorithm, SigningKey } from "../mail/dkim/sign.ts";
import { sleep } from "../platform/clock.ts";
import type { Tx } from "../platform/database/db.ts";
import { coalesceListsByOrg, type OrgKey } from "../platform/fair/coalesce.ts";
import { createLru } from "../platform/fair/lru.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { SealedColumn } from "../platform/storage/sealed-columns.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import type { DnsTxt, KeyRecord, KeyRow } from "./types.ts";

/** Mail signed by the old key is delivered, read and verified again for days: its record stays this long. */
const RETIRING_MS = 7 * 86_400_000;
/** Keys of one domain that are in use; each costs a look-up with every check. */
const KEYS_MAX = 10;
/** Keys of one domain ever; their selectors are never used again. */
const KEYS_EVER_MAX = 1_000;
const NAME_LENGTH_MAX = 253;
/** RFC 6376 §3.1: a selector is one or more labels. */
const SELECTOR = /^(?=.{1,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

type KeyWorld = Pick<World, "db" | "clock" | "random" | "seal">;
type NamedDomain = { id: string; domain: string };

export type KeyAnswer = { key: KeyRecord; dns_record: DnsTxt; message: string };

/**
 * Adds a key as `pending`; it signs once DNS shows its record. The selector is the next `postern<n>` unless given; 409
 * when the domain had it before. A domain that sends is made with a key: whoever asks for the first one gets that, or in
 * its place one of the other algorithm, as long as DNS has not shown it.
 */
export async function createKey(
  world: KeyWorld,
  orgId: string,
  idOrName: string,
  request: { selector?: string; algorithm?: DkimAlgorithm },
): Promise<KeyAnswer> {
  const selector = request.selector === undefined ? null : readSelector(request.selector, "selector");
  await world.db.asOrg(orgId, (tx) => domains.requireDomain(tx, orgId, idOrName));
  const made = await makeKey(world, orgId, request.algorithm ?? "rsa");
  return world.db.asOrg(orgId, async (tx) => {
    const row = await domains.requireLocked(tx, orgId, idOrName);
    const keys = await queries.listKeys(tx, orgId, row.id);
    const first = keys.find((key) => key.unasked && key.status === "pending");
    const asksForFirst = first && (selector === null || selector === first.selector);
    const key = asksForFirst
      ? await takeFirst(tx, orgId, row, { first, made })
      : await addKey(tx, orgId, row, { keys, made, selector: selector ?? nextSelector(keys) });
    await domains.noteKeys(world, tx, row, hasActive(keys));
    return answerWith(row, key, "it signs as soon as DNS shows it");
  });
}

type Made = Awaited<ReturnType<typeof makeKey>>;

async function addKey(
  tx: Tx,
  orgId: string,
  row: NamedDomain,
  { keys, made, selector }: { keys: KeyRow[]; made: Made; selector: string },
): Promise<KeyRow> {
  refuseTaken(keys, row, selector, "selector");
  const [key] = await queries.insertKey(tx, orgId, row, { ...made, selector });
  return key as KeyRow;
}

/**
 * Takes the first key of a domain. A pending key of the other algorithm is replaced under the same selector: as far as
 * we know, nobody has seen it in DNS.
 */
async function takeFirst(
  tx: Tx,
  orgId: string,
  row: NamedDomain,
  { first, made }: { first: KeyRow; made: Made },
): Promise<KeyRow> {
  if (first.algorithm === made.algorithm) return (await queries.setAsked(tx, orgId, first.id))[0] as KeyRow;
  await queries.dropUnasked(tx, orgId, first.id);
  return (await queries.insertKey(tx, orgId, row, { ...made, selector: first.selector }))[0] as KeyRow;
}

/**
 * Makes a successor (same algorithm) for an active or a pending key. An active one goes on signing until DNS shows the new
 * record, then retires for 7 days, in which its record must stay; a pending one may still become active until then, and
 * ends if it has not.
 */
export async function rotateKey(
  world: KeyWorld,
  orgId: string,
  idOrName: string,
  request: { old_selector: string; new_selector: string },
): Promise<KeyAnswer> {
  const next = readSelector(request.new_selector, "new_selector");
  const old = request.old_selector.toLowerCase();
  if (next === old) throw invalid("new_selector", "the 'new_selector' field must differ from 'old_selector'");
  const { algorithm } = await world.db.asOrg(orgId, async (tx) => {
    const row = await domains.requireDomain(tx, orgId, idOrName);
    return requireRotatable(await queries.listKeys(tx, orgId, row.id), old);
  });
  const made = await makeKey(world, orgId, algorithm);
  return world.db.asOrg(orgId, async (tx) => {
    const row = await domains.requireLocked(tx, orgId, idOrName);
    const keys = await queries.listKeys(tx, orgId, row.id);
    const replaced = requireRotatable(keys, old);
    refuseTaken(keys, row, next, "new_selector");
    if (replaced.unasked) await queries.setAsked(tx, orgId, replaced.id);
    const [key] = await queries.insertKey(tx, orgId, row, { ...made, selector: next, replaces: old });
    await domains.noteKeys(world, tx, row, hasActive(keys));
    const signs = `${old} goes on signing until DNS shows it, and its record must stay 7 days more`;
    const waits = `it signs as soon as DNS shows it, and ${old} ends then unless it signs before`;
    return answerWith(row, key as KeyRow, replaced.status === "active" ? signs : waits);
  });
}

function requireRotatable(keys: KeyRow[], selector: string): KeyRow {
  const old = keys.find((key) => key.selector === selector);
  if (!old) throw notFound("DKIM key");
  if (old.status !== "active" && old.status !== "pending") {
    throw new Refusal("invalid_state", `the key ${selector} is ${old.status}; it has been replaced or ended already`);
  }
  const successor = keys.find((key) => key.status === "pending" && key.replaces === selector);
  if (!successor) return old;
  throw new Refusal("invalid_state", `the key ${successor.selector} is about to replace ${selector} already`);
}

function readSelector(text: string, field: string): string {
  const selector = text.toLowerCase();
  if (SELECTOR.test(selector)) return selector;
  throw invalid(field, `the '${field}' field must be 1 to 63 letters, digits and inner hyphens, such as postern2`);
}

function nextSelector(keys: KeyRow[]): string {
  const numbers = keys.map((key) => Number(/^postern(\d{1,9})$/.exec(key.selector)?.[1] ?? 0));
  return `postern${Math.max(0, ...numbers) + 1}`;
}

function refuseTaken(keys: KeyRow[], domain: NamedDomain, selector: string, field: string): void {
  if (keys.some((key) => key.selector === selector)) {
    const message = `the selector ${selector} was used already, and a selector is never used twice`;
    throw new Refusal("already_exists", message, { field });
  }
  if (recordName(domain, selector).length > NAME_LENGTH_MAX) {
    throw invalid(
      field,
      `the '${field}' field is too long for this domain: the record's name passes ${NAME_LENGTH_MAX}`,
    );
  }
  if (keys.filter((key) => key.status !== "deactivated").length >= KEYS_MAX || keys.length >= KEYS_EVER_MAX) {
    throw new Refusal("invalid_state", `a domain may have at most ${KEYS_MAX} keys in use and ${KEYS_EVER_MAX} ever`);
  }
}

async function makeKey(world: KeyWorld, orgId: string, algorithm: DkimAlgorithm) {
  const id = world.random.uuid();
  const { private_key_pem, public_key } = await generateDkimKey(algorithm);
  const private_key = world.seal.seal(Buffer.from(private_key_pem), sealContext(orgId, id));
  return { id, algorithm, public_key, private_key, created_at: new Date(world.clock.now()) };
}

/** What a private key is sealed for: its organization and itself, so that it opens in no other row. */
export const SEALED: readonly SealedColumn[] = [
  {
    ...{ table: "dkim_key", column: "private_key", key: ["org_id", "id"] },
    context: ({ org_id, id }) => sealContext(org_id!, id!),
  },
];

/** What a key is sealed for. */
export function sealContext(orgId: string, keyId: string): string {
  return `dkim-key:${orgId}:${keyId}`;
}

function answerWith(domain: NamedDomain, key: KeyRow, then: string): KeyAnswer {
  const dns_record = dnsRecord(domain, key);
  return { key: toRecord(domain, key), dns_record, message: `Publish the TXT record ${dns_record.name}; ${then}.` };
}

function toRecord(domain: NamedDomain, key: KeyRow): KeyRecord {
  const { id: _id, domain_id: _domain, replaces: _replaces, unasked: _unasked, ...shown } = key;
  return { ...shown, domain: domain.domain, active: key.status === "active" };
}

function recordName(domain: NamedDomain, selector: string): string {
  return `${selector}._domainkey.${domain.domain}`;
}

function dnsRecord(domain: NamedDomain, key: KeyRow): DnsTxt {
  return { type: "TXT", name: recordName(domain, key.selector), value: dkimRecord(key.public_key, key.algorithm) };
}

function hasActive(keys: KeyRow[]): boolean {
  return keys.some((key) => key.status === "active");
}

/** All keys of a domain, newest first, deactivated ones too; records of those in use. */
export async function listKeys(world: Pick<World, "db">, orgId: string, idOrName: string) {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await domains.requireDomain(tx, orgId, idOrName);
    const keys = (await queries.listKeys(tx, orgId, row.id)).reverse();
    const inUse = keys.filter((key) => key.status !== "deactivated");
    return {
      domain: row.domain,
      keys: keys.map((key) => toRecord(row, key)),
      dns_records: inUse.map((key) => ({ ...dnsRecord(row, key), selector: key.selector })),
    };
  });
}

export type KeyVerification = {
  domain: string;
  keys: (Pick<DnsRecord, "status" | "found" | "hint"> & { selector: string; verified: boolean })[];
};

/** Asks DNS for the records of all keys in use, now; a pending key that is there becomes active. */
export async function verifyKeys(
  world: Pick<World, "db" | "clock" | "config" | "resolver">,
  ports: DomainPorts,
  orgId: string,
  idOrName: string,
): Promise<KeyVerification> {
  const row = await world.db.asOrg(orgId, (tx) => domains.requireDomain(tx, orgId, idOrName));
  const seen = await domains.checkDkimRecords(world, ports, { org_id: orgId, id: row.id });
  if (!seen) throw notFound("domain");
  const byName = new Map(seen.map((record) => [record.name, record]));
  const keys = await world.db.asOrg(orgId, (tx) => queries.listKeys(tx, orgId, row.id));
  return {
    domain: row.domain,
    keys: keys.flatMap(({ selector, verified }) => {
      const record = byName.get(recordName(row, selector));
      return record ? [{ selector, verified, status: record.status, found: record.found, hint: record.hint }] : [];
    }),
  };
}

/**
 * Ends a key at once and destroys it; 409 for the only active one unless forced. Ending it twice is no error. Returns
 * when no process signs with it any more.
 */
export async function deactivateKey(
  world: Pick<World, "db" | "clock">,
  orgId: string,
  idOrName: string,
  { selector, force }: { selector: string; force: boolean },
): Promise<KeyRecord> {
  const now = world.clock.now();
  const { signed, record } = await world.db.asOrg(orgId, async (tx) => {
    const row = await domains.requireLocked(tx, orgId, idOrName);
    const keys = await queries.listKeys(tx, orgId, row.id);
    const key = keys.find((one) => one.selector === selector.toLowerCase());
    if (!key) throw notFound("DKIM key");
    if (key.status === "deactivated") return { signed: endedJustNow(key, now), record: toRecord(row, key) };
    const others = keys.filter((one) => one !== key);
    if (key.status === "active" && !hasActive(others) && !force) {
      const message = `${key.selector} is the only active key of ${row.domain}, which cannot send without; add ?force=true to end it all the same`;
      throw new Refusal("invalid_state", message);
    }
    await queries.passOnSuccession(tx, orgId, key);
    const [ended] = await queries.deactivateKey(tx, orgId, key.id, new Date(now));
    await domains.noteKeys(world, tx, row, hasActive(others));
    return { signed: key.status === "active", record: toRecord(row, ended as KeyRow) };
  });
  if (signed) await untilForgotten();
  return record;
}

/** True if the key was deactivated by another request, which may still be waiting. */
function endedJustNow({ deactivated_at }: KeyRow, now: number): boolean {
  return deactivated_at !== null && now - deactivated_at.getTime() < 2 * KEPT_MS;
}

// --- for the checks of domains -------------------------------------------------------------------------------------------

/** What the domains feature needs of keys; app.ts hands it over. */
export function dkimKeys(world: KeyWorld): DkimKeys {
  return {
    async prepareFirstKey(orgId) {
      const made = await makeKey(world, orgId, "rsa");
      return async (tx, domain) => {
        if ((await queries.listKeys(tx, orgId, domain.id)).length > 0) return;
        await queries.insertKey(tx, orgId, domain, { ...made, selector: nextSelector([]), unasked: true });
      };
    },
    records: async (tx, orgId, domain) => toRecords(domain, await queries.listKeys(tx, orgId, domain.id)),
    noteChecks: (tx, orgId, domain, seen) => noteChecks(tx, orgId, domain, seen),
    untilForgotten,
    endRetired: async (at) => {
      await queries.deactivateRetired(world.db, at);
    },
  };
}

/**
 * Required is what signs, and before that what shall and has no successor; the old record of a rotation only has to stay
 * for a while.
 */
function toRecords(domain: NamedDomain, keys: KeyRow[]): DkimRecord[] {
  const signs = hasActive(keys);
  const succeeded = new Set(keys.map((key) => (key.status === "pending" ? key.replaces : null)));
  return keys
    .filter((key) => key.status !== "deactivated")
    .map((key) => {
      const { name, value } = dnsRecord(domain, key);
      const required = signs ? key.status === "active" : key.status === "pending" && !succeeded.has(key.selector);
      return { name, value, required, note: noteOf(key) };
    });
}

function noteOf(key: KeyRow): string | null {
  if (key.status !== "retiring") return null;
  const day = key.retires_at?.toISOString().slice(0, 10);
  return `This key signs no more, but mail that it signed is still on its way: keep the record until ${day}.`;
}

async function noteChecks(
  tx: Tx,
  orgId: string,
  domain: NamedDomain,
  { checks, at }: { checks: RecordCheck[]; at: Date },
): Promise<DkimVerdict> {
  const seen = new Map(checks.map((check) => [check.name, check.status]));
  const statusOf = (key: KeyRow) => seen.get(recordName(domain, key.selector)) ?? "error";
  for (const key of await queries.listKeys(tx, orgId, domain.id)) {
    if (key.status === "deactivated" || statusOf(key) === "error") continue;
    const verified = statusOf(key) === "ok";
    if (verified && key.status === "pending") await activate(tx, orgId, key, at);
    else if (verified !== key.verified) await queries.setVerified(tx, orgId, key.id, verified);
  }
  const active = (await queries.listKeys(tx, orgId, domain.id)).filter((key) => key.status === "active");
  return {
    active: active.length > 0,
    verified: active.some((key) => key.verified),
    conclusive: active.every((key) => statusOf(key) !== "error"),
  };
}

/**
 * Its predecessor retires. One that never signed ends, and passes its own predecessor on; a selector names a key that is
 * older than its successor, so the way back ends.
 */
async function activate(tx: Tx, orgId: string, key: KeyRow, at: Date): Promise<void> {
  await queries.activateKey(tx, orgId, key.id, at);
  if (key.replaces === null) return;
  const keys = new Map((await queries.listKeys(tx, orgId, key.domain_id)).map((one) => [one.selector, one]));
  let old = keys.get(key.replaces);
  while (old?.status === "pending") {
    await queries.deactivateKey(tx, orgId, old.id, at);
    old = old.replaces === null ? undefined : keys.get(old.replaces);
  }
  if (old?.status === "active") await queries.retireKey(tx, orgId, old.id, new Date(at.getTime() + RETIRING_MS));
}

// --- for the signer --------------------------------------------------------------------------------------------------------

/** An end of a key waits for it, so it is short; each domain that sends costs a part of a look-up that often. */
const KEPT_MS = 1_000;
/** Timers and clocks of different machines run at slightly different rates. */
const KEPT_MARGIN_MS = 100;
const DOMAINS_KEPT_MAX = 20_000;

type Kept = { keys: Map<string, SigningKey>; until_ms: number };

/** Resolves once no process begins to sign with a key whose end was committed before the call. */
function untilForgotten(): Promise<void> {
  return sleep(KEPT_MS + KEPT_MARGIN_MS);
}

/**
 * The keys to sign a domain's mail with: its active RSA key, then its active Ed25519 key; none when it has none. Kept
 * opened for at most a second of monotonic time, then read again, many domains per round trip. The only place that opens
 * private keys. Throws SealBroken when the master key is not the one they were sealed under.
 */
export function signingKeys(
  world: Pick<World, "db" | "clock" | "seal">,
): (orgId: string, domainId: string) => Promise<SigningKey[]> {
  const kept = createLru<Kept>(DOMAINS_KEPT_MAX);
  const lookUp = coalesceListsByOrg<queries.SealedKey>({
    keys_max: 500,
    lanes: 2,
    load: (wanted) => loadSealed(world, wanted),
  });

  return async (orgId, domainId) => {
    const name = `${orgId} ${domainId}`;
    const known = kept.get(name);
    if (known && world.clock.monotonic() < known.until_ms) return [...known.keys.values()];
    const until_ms = world.clock.monotonic() + KEPT_MS;
    const sealed = firstOfEach(await lookUp(orgId, domainId));
    const keys = new Map(sealed.map((row) => [row.id, known?.keys.get(row.id) ?? openKey(world, row)]));
    kept.set(name, { keys, until_ms });
    return [...keys.values()];
  };
}

async function loadSealed(world: Pick<World, "db">, wanted: OrgKey[]) {
  const rows = await queries.findSigningKeys(world.db, {
    org_ids: wanted.map(({ org_id }) => org_id),
    domain_ids: wanted.map(({ key }) => key),
  });
  return rows.map((row) => [row.org_id, row.domain_id, row] as const);
}

/** One key of each algorithm, RSA first: every receiver verifies RSA, few Ed25519. */
function firstOfEach(rows: queries.SealedKey[]): queries.SealedKey[] {
  const firsts = (["rsa", "ed25519"] as const).map((algorithm) => rows.find((row) => row.algorithm === algorithm));
  return firsts.filter((row) => row !== undefined);
}

function openKey(world: Pick<World, "seal">, row: queries.SealedKey): SigningKey {
  const pem = world.seal.open(row.private_key, sealContext(row.org_id, row.id)).toString();
  return loadSigningKey(pem, { domain: row.domain, selector: row.selector });
}
