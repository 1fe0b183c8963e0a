// The sending addresses of all organizations as operators see them: whose they are, what they are called forwards and backwards, how
// warm, what waits. And taking one out of use: engines follow within seconds (pools/sources.ts, follow.ts), the mail of its pool
// leaves from the pool's others. The audit log of its organization shows that, and that of the first organization.
import { isIP } from "node:net";
import { organizationNamed, organizationNames, pageOrganizations } from "../../accounts/accounts.ts";
import { notePerson } from "../../audit/audit.ts";
import { contains } from "../../http/like.ts";
import { within } from "../../platform/clock.ts";
import { isUuid } from "../../platform/database/db.ts";
import type { Resolver } from "../../platform/dns/resolver.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { dailyLimit, dayOf, warmBefore, warmupDay } from "../pools/warmup.ts";
import type { By, OrderWorld } from "./orders.ts";
import * as queries from "./source-queries.ts";

export const REVERSE_STATES = ["matches", "differs", "one_way", "missing", "unknown"] as const;
/** `one_way`: the name does not lead back to the address. `unknown`: it could not be looked up. */
export type Reverse = { state: (typeof REVERSE_STATES)[number]; names: string[] };

type SourceWorld = Pick<World, "db" | "clock" | "config" | "resolver">;

const DAY_MS = 86_400_000;
const WEEK_DAYS = 7;
/** A search by a word reads so many organizations of that name. */
const ORGANIZATIONS_MAX = 100;
const SHOWN_NAMES_MAX = 3;
/** A page waits no longer for other people's name servers. */
const LOOK_UP_MS = 2_500;

export type AskedSources = { query?: string; state?: string; after?: string; limit: number };
export type SourceView = Awaited<ReturnType<typeof toViews>>[number];

/** One page in the order of the addresses, and where the next one begins. */
export async function listSources(world: SourceWorld, { query, state, after, limit }: AskedSources) {
  const nowMs = world.clock.now();
  const filter = { ...(await readQuery(world, query)), state: state ?? null };
  const asked = { warm_before: warmBefore(nowMs), limit: limit + 1, behind: readAfter(after) };
  const found = await world.db.transaction(async (tx) => {
    await queries.joinWholeTables(tx);
    return queries.listSources(tx, filter, asked);
  });
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return {
    sources: await toViews(world, rows, nowMs),
    total: found[0]?.total ?? 0,
    next: found.length > limit && last ? `${last.place} ${last.id}` : null,
    read_at: new Date(nowMs),
  };
}

/** One of them, or 404. */
async function readSource(world: SourceWorld, id: string): Promise<SourceView> {
  const nowMs = world.clock.now();
  const rows = isUuid(id) ? await queries.findSource(world.db, id, warmBefore(nowMs)) : [];
  const [view] = await toViews(world, rows, nowMs);
  if (!view) throw notFound("sending address");
  return view;
}

/** Reads the text of a search: a part of the address, its name, its pool or its organization. */
export async function readQuery(world: Pick<World, "db">, query: string | undefined) {
  const sought = query?.trim().toLowerCase() ?? "";
  if (sought === "") return { pattern: null, org_ids: [] };
  const { organizations } = await pageOrganizations(world, { query: sought, limit: ORGANIZATIONS_MAX });
  return { pattern: contains(sought), org_ids: organizations.map(({ id }) => id) };
}

function readAfter(after: string | undefined): queries.BehindSource {
  const [place = "", id = ""] = after?.split(" ") ?? [];
  return isIP(place) !== 0 && isUuid(id) ? { place, id } : null;
}

async function toViews(world: SourceWorld, rows: queries.OperatedSource[], nowMs: number) {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const days = { since: dayOf(nowMs - (WEEK_DAYS - 1) * DAY_MS), today: dayOf(nowMs) };
  const [waiting, usage, machines, organizations, reverse] = await Promise.all([
    queries.readSourceQueues(world.db, ids, new Date(nowMs)),
    queries.readSourceUsage(world.db, ids, days),
    queries.findMachines(
      world.db,
      rows.flatMap(({ ip }) => (ip === null ? [] : [ip])),
    ),
    organizationNames(
      world,
      rows.flatMap(({ org_id }) => (org_id === null ? [] : [org_id])),
    ),
    lookBack(world, rows),
  ]);
  const queueOf = new Map(waiting.map((one) => [one.source_id, one]));
  const usageOf = new Map(usage.map((one) => [one.source_id, one]));
  return rows.map(({ org_id, ip, ehlo, warmup_started_at, ...row }) => {
    const [queue, used] = [queueOf.get(row.id), usageOf.get(row.id)];
    const day = warmupDay(warmup_started_at, nowMs);
    return {
      ...pick(row),
      ip,
      ehlo: ehlo ?? world.config.hostname,
      organization_id: org_id,
      organization: org_id === null ? null : (organizations.get(org_id)?.name ?? ""),
      machines: machines.filter((one) => ip === null || one.addresses?.includes(ip)).map(({ machine }) => machine),
      reverse: reverse.get(row.id) ?? null,
      warmup:
        day === null
          ? null
          : { day, daily_limit: dailyLimit(warmup_started_at, nowMs) as number, used_today: used?.used_today ?? 0 },
      waiting: queue?.waiting ?? 0,
      is_at_least: queue?.is_at_least ?? false,
      resting: queue?.resting ?? 0,
      resting_reason: queue?.reason ?? null,
      last_7_days: figuresOf(used),
    };
  });
}

type Kept = Pick<queries.OperatedSource, "id" | "pool" | "weight" | "state" | "held_at" | "held_by" | "held_note">;

function pick({ id, pool, weight, state, held_at, held_by, held_note }: Kept): Kept {
  return { id, pool, weight, state, held_at, held_by, held_note };
}

function figuresOf(used: queries.SourceUsage | undefined) {
  const { delivered = 0, deferred = 0, bounced = 0, blocked = 0 } = used ?? {};
  return { delivered, deferred, bounced, blocked };
}

// --- names of addresses -------------------------------------------------------------------------------------------------

/** What name servers say of them; of the shared address nobody here knows what others see. */
async function lookBack(world: SourceWorld, rows: Pick<queries.OperatedSource, "id" | "ip" | "ehlo">[]) {
  const known = new Map<string, Reverse>();
  const asked = rows.flatMap(({ id, ip, ehlo }) => (ip === null ? [] : [{ id, ip, ehlo }]));
  const all = Promise.all(
    asked.map(async ({ id, ip, ehlo }) =>
      known.set(id, await reverseOf(world.resolver, ip, ehlo ?? world.config.hostname)),
    ),
  );
  await within(all, LOOK_UP_MS, null);
  for (const { id } of asked) if (!known.has(id)) known.set(id, { state: "unknown", names: [] });
  // What comes later belongs to no page any more.
  return new Map(known);
}

async function reverseOf(resolver: Resolver, ip: string, ehlo: string): Promise<Reverse> {
  const [back, forth] = await Promise.all([resolver.ptr(ip), isIP(ip) === 6 ? resolver.aaaa(ehlo) : resolver.a(ehlo)]);
  if (back.kind === "failed") return { state: "unknown", names: [] };
  if (back.kind === "absent") return { state: "missing", names: [] };
  const names = back.records.map((name) => name.toLowerCase().replace(/\.$/, ""));
  const shown = names.slice(0, SHOWN_NAMES_MAX);
  if (!names.includes(ehlo.toLowerCase())) return { state: "differs", names: shown };
  if (forth.kind === "failed") return { state: "unknown", names: shown };
  const leadsBack = forth.kind === "found" && forth.records.includes(ip);
  return { state: leadsBack ? "matches" : "one_way", names: shown };
}

// --- what operators order -----------------------------------------------------------------------------------------------

/** Nothing leaves from it within seconds; 409 for the shared address, without which nothing leaves at all. */
export async function holdSource(
  world: OrderWorld & SourceWorld,
  id: string,
  { note, ...by }: By & { note: string | null },
): Promise<SourceView> {
  const { ip, state } = await readSource(world, id);
  if (ip === null)
    throw new Refusal("invalid_state", "the shared address cannot be taken out of use: all mail needs it");
  if (state === "leaving") throw new Refusal("invalid_state", "this address was taken out of its pool already");
  const order = { at: new Date(world.clock.now()), by: by.person.email, note };
  await world.db.transaction((tx) => queries.holdSource(tx, id, order));
  const view = await readSource(world, id);
  await noteOrder(world, view, { ...by, operation: "holdSource", fields: note === null ? [] : ["note"] });
  return view;
}

/** It is used again; 409 when it is in use. */
export async function giveBackSource(world: OrderWorld & SourceWorld, id: string, by: By): Promise<SourceView> {
  await readSource(world, id);
  const changed = await world.db.transaction((tx) => queries.giveBackSource(tx, id));
  if (changed === 0) throw new Refusal("invalid_state", "this address is in use");
  const view = await readSource(world, id);
  await noteOrder(world, view, { ...by, operation: "giveBackSource" });
  return view;
}

type Noted = By & { operation: string; fields?: string[] };

async function noteOrder(world: OrderWorld, { ip, organization_id }: SourceView, act: Noted): Promise<void> {
  const first = await organizationNamed(world, null);
  const all = new Set([first, ...(organization_id === null ? [] : [organization_id])]);
  for (const orgId of all) await notePerson(world, orgId, { ...act, target: { ip: ip ?? "" } });
}
