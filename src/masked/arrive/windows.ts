// How much may pass through an alias in a span of time. Windows begin with the clock's spans, so all processes count in the
// same ones; the counts that many mails raise at once are raised in one statement.
import type { Tx } from "../../platform/database/db.ts";
import { coalesce } from "../../platform/fair/coalesce.ts";
import { NotNow } from "../../platform/not-now.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { MaskedLimits } from "../settings.ts";
import type { AliasRow } from "../types.ts";

const HOUR_MS = 3_600_000;

/** Their limits are the organization's settings; `id` is the mailbox's, or the organization's. */
function settable<K extends string>(...kinds: K[]): Record<`${K}_${"hour" | "day"}`, { span_ms: number; max: number }> {
  const windows = kinds.flatMap((kind) => [
    [`${kind}_hour`, { span_ms: HOUR_MS, max: 0 }],
    [`${kind}_day`, { span_ms: 24 * HOUR_MS, max: 0 }],
  ]);
  return Object.fromEntries(windows);
}

const WINDOWS = {
  forward_minute: { span_ms: 60_000, max: 30 },
  reply_hour: { span_ms: HOUR_MS, max: 20 },
  reply_day: { span_ms: 24 * HOUR_MS, max: 100 },
  refusal_hour: { span_ms: HOUR_MS, max: 60 },
  linked_contact_day: { span_ms: 24 * HOUR_MS, max: 200 },
  quarantine_notice_day: { span_ms: 24 * HOUR_MS, max: 5 },
  key_notice_day: { span_ms: 24 * HOUR_MS, max: 1 },
  ...settable("pattern_alias"),
  pattern_client_hour: { span_ms: HOUR_MS, max: 10 },
  pattern_refused_hour: { span_ms: HOUR_MS, max: 0 },
  pattern_notice_day: { span_ms: 24 * HOUR_MS, max: 1 },
  failed_kept_day: { span_ms: 24 * HOUR_MS, max: 50 },
  failed_notice_day: { span_ms: 24 * HOUR_MS, max: 5 },
  ...settable("person_reply", "org_reply", "new_alias"),
};
const AT_ONCE_MAX = 200;
const LANES = 2;

type Owner = Pick<AliasRow, "org_id" | "id">;

/** Counts one more in the window of that kind; false when that is more than it may hold: `most`, or what the kind has. */
export type IsWithin = (owner: Owner, kind: keyof typeof WINDOWS, most?: number) => Promise<boolean>;

/** A counter for one process's mail. */
export function windowCounter({ db, clock }: Pick<World, "db" | "clock">): IsWithin {
  // Every key is an object of its own: nobody shares the place of another.
  const count = coalesce<queries.Window, number>({
    keys_max: AT_ONCE_MAX,
    lanes: LANES,
    load: (windows) => countAll(db, windows),
  });
  return async (owner, kind, most) => {
    const used = await count(windowOf({ clock }, owner, kind));
    return (used as number) <= (most ?? WINDOWS[kind].max);
  };
}

/** A counter whose counts are part of the transaction, for what leaves or is kept with it. */
export function windowCounterIn(tx: Tx, world: Pick<World, "clock">): IsWithin {
  return async (owner, kind, most) => {
    const used = await queries.useWindowIn(tx, windowOf(world, owner, kind));
    return used <= (most ?? WINDOWS[kind].max);
  };
}

type Clock = Pick<World, "clock">;
type Kind = keyof typeof WINDOWS;

function windowOf({ clock }: Clock, { org_id, id }: Owner, kind: Kind): queries.Window {
  const { span_ms } = WINDOWS[kind];
  return { org_id, alias_id: id, kind, starts_at: new Date(Math.floor(clock.now() / span_ms) * span_ms) };
}

/** True if anything has been counted in the window of that kind. Counts nothing itself. */
export async function isBegun(world: Pick<World, "db" | "clock">, owner: Owner, kind: Kind): Promise<boolean> {
  return (await queries.readWindow(world.db, windowOf(world, owner, kind))) > 0;
}

/** True if the window of that kind has room for one more. Counts nothing itself. */
export async function isFree(world: Pick<World, "db" | "clock">, owner: Owner, kind: Kind): Promise<boolean> {
  return (await queries.readWindow(world.db, windowOf(world, owner, kind))) < WINDOWS[kind].max;
}

/**
 * Counts what `isFree` found room for, in the transaction that it belongs to. Where others were faster, all of it is decided once
 * more.
 */
export async function takeFree(world: Clock, tx: Tx, owner: Owner, kind: Kind): Promise<void> {
  if (await windowCounterIn(tx, world)(owner, kind)) return;
  throw new NotNow(`the last place of ${kind} was taken meanwhile`);
}

/** Each one's own place in its window. */
async function countAll(db: World["db"], windows: readonly queries.Window[]): Promise<Map<queries.Window, number>> {
  const alike = Map.groupBy(windows, nameOf);
  const counted = [...alike.values()].map((all) => ({ ...(all[0] as queries.Window), used: all.length }));
  // In one order for all writers, so that two statements never wait for each other crosswise.
  counted.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const rows = await queries.useWindows(db, counted);
  return new Map(
    rows.flatMap((row) => {
      const all = alike.get(nameOf(row)) ?? [];
      return all.map((window, at) => [window, row.used - all.length + at + 1] as const);
    }),
  );
}

function nameOf({ alias_id, kind, starts_at }: queries.Window): string {
  return `${alias_id}/${kind}/${starts_at.getTime()}`;
}

type Leaving = { org_id: string; alias: Owner /** Who writes. */; destination_id: string | null; isLive: boolean };

/** A limit that is met, as an answer names it. */
export type Over = { whose: "alias" | "mailbox" | "organization"; type: string; most: number; span_ms: number };

/**
 * Counts one more mail that leaves from the alias by its owner's wish, for the alias, and where it is live for the person with
 * all their aliases and for the organization. The limit of these that is met, so that no more may leave for now; else null.
 */
export async function takeReply(isWithin: IsWithin, limits: MaskedLimits, leaving: Leaving): Promise<Over | null> {
  const { org_id, alias, destination_id, isLive } = leaving;
  const organization = { org_id, id: org_id };
  const { replies_person_hour, replies_person_day, replies_hour, replies_day } = limits;
  const wanted: [Over["whose"], Owner, Kind, number?][] = [
    ["alias", alias, "reply_hour"],
    ["alias", alias, "reply_day"],
  ];
  if (isLive && destination_id !== null) {
    const person = { org_id, id: destination_id };
    wanted.push(["mailbox", person, "person_reply_hour", replies_person_hour]);
    wanted.push(["mailbox", person, "person_reply_day", replies_person_day]);
  }
  if (isLive) {
    wanted.push(["organization", organization, "org_reply_hour", replies_hour]);
    wanted.push(["organization", organization, "org_reply_day", replies_day]);
  }
  for (const [whose, owner, kind, most] of wanted) {
    if (!(await isWithin(owner, kind, most))) return overOf(whose, kind, most);
  }
  return null;
}

/** Counts one more forward of the alias; the limit, where that is too much for now. */
export async function takeForward(isWithin: IsWithin, alias: Owner): Promise<Over | null> {
  return (await isWithin(alias, "forward_minute")) ? null : overOf("alias", "forward_minute");
}

const SPAN_NAMES: Record<number, string> = { 60000: "per_minute", [HOUR_MS]: "hourly", [24 * HOUR_MS]: "daily" };

function overOf(whose: Over["whose"], kind: Kind, given?: number): Over {
  const { span_ms, max } = WINDOWS[kind];
  return { whose, type: SPAN_NAMES[span_ms] as string, most: given ?? max, span_ms };
}

/** Counts one more alias of the organization; the limit that it is over, else null. */
export async function takeAlias(isWithin: IsWithin, limits: MaskedLimits, orgId: string) {
  const owner = { org_id: orgId, id: orgId };
  if (!(await isWithin(owner, "new_alias_hour", limits.aliases_hour))) return "hourly";
  return (await isWithin(owner, "new_alias_day", limits.aliases_day)) ? null : "daily";
}
