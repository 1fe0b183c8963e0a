// Lanes by name: found or made in batches, remembered for an hour. A lane is the mail of one organization from one
// source to one domain in one class by one way (direct, or the relay of a sender domain); its slot follows from where that
// leads, so one process sees all of a destination. Lanes that nobody uses are dropped by the database's clock, and no clock
// of a process goes with it for sure (a machine that was suspended remembers a lane that is gone). So what is remembered is
// a guess: each statement that puts mail into a lane sees for itself that the lane is there, or writes nothing.

import type { Tx } from "../../platform/database/db.ts";
import { coalesce } from "../../platform/fair/coalesce.ts";
import { remember } from "../../platform/fair/remember.ts";
import type { World } from "../../platform/world.ts";
import { fnv1a } from "../../text/fnv.ts";
import * as queries from "../queries.ts";
import type { Lane } from "../types.ts";
import { openLanes } from "./lane-queries.ts";

const REMEMBER_MS = 3_600_000;
const REMEMBERED_MAX = 200_000;
const SLOTS = 16;

/** `relay_domain_id`: the sender domain whose relay the mail takes; absent for direct mail. */
export type LaneName = {
  org_id: string;
  source_id: string;
  domain: string;
  class: number;
  relay_domain_id?: string | null;
};

export type FindLane = {
  (name: LaneName): Promise<Lane>;
  /** To be called when the lane no longer exists: the next look-up makes it again. */
  forget?(lane: LaneName): void;
};

/** A look-up that makes the lane when it is new. */
export function laneFinder(world: Pick<World, "db" | "clock">): FindLane {
  const known = remember<Lane>(world.clock, { for_ms: REMEMBER_MS, names_max: REMEMBERED_MAX });
  const make = coalesce<string, Lane>({
    keys_max: 500,
    lanes: 1,
    load: async (names) => {
      const rows = await queries.upsertLanes(world.db, names.map(parse), new Date(world.clock.now()));
      return new Map(rows.map((lane) => [nameOf(lane), lane]));
    },
  });
  async function find(wanted: LaneName): Promise<Lane> {
    const name = nameOf(wanted);
    const found = known.get(name);
    if (found) return found;
    const lane = await make(name);
    if (!lane) throw new Error("a lane could not be made");
    known.set(name, lane);
    return lane;
  }
  return Object.assign(find, { forget: (lane: LaneName) => known.drop(nameOf(lane)) });
}

/** The lanes in place of these, each by the id it was known under. */
export async function lanesInPlace(tx: Tx, lanes: Lane[], now: Date): Promise<Map<number, Lane>> {
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const kept = new Set((await openLanes(tx, [...byId.keys()])).map(({ id }) => id));
  const gone = [...byId.values()].filter(({ id }) => !kept.has(id));
  if (gone.length === 0) return byId;
  const made = await queries.upsertLanes(tx, gone, now);
  const byName = new Map(made.map((lane) => [nameOf(lane), lane]));
  for (const lane of gone) byId.set(lane.id, byName.get(nameOf(lane)) as Lane);
  return byId;
}

function nameOf(lane: LaneName): string {
  return `${lane.org_id}|${lane.source_id}|${lane.class}|${lane.domain}|${lane.relay_domain_id ?? ""}`;
}

function parse(name: string): queries.LaneKey {
  const [org_id = "", source_id = "", mailClass = "0", domain = "", relay = ""] = name.split("|");
  const relay_domain_id = relay === "" ? null : relay;
  return {
    org_id,
    source_id,
    class: Number(mailClass),
    domain,
    relay_domain_id,
    // Every process puts a destination into the same slot.
    slot: fnv1a(relay_domain_id ?? domain) % SLOTS,
  };
}
