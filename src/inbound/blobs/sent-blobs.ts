// Large bodies of sent mail past their time: those whose message was refused, failed or died before it was accepted, and
// those whose day of bodies was dropped. Their references are given up here; background.ts then deletes what nobody needs.
import { uuidFloor } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import { findLarge, settleAccept } from "../../sending/sending.ts";
import * as queries from "./blob-queries.ts";

type SentWorld = Pick<World, "db" | "clock" | "config">;

/** An accept that has not ended after so long is not about to. */
const ACCEPTED_WITHIN_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Gives up the references of at most `limit` messages in each state; how many were looked at that need no second look. */
export async function releaseSent(world: SentWorld, limit: number): Promise<number> {
  return (await settleAccepting(world, limit)) + (await releaseOver(world, limit));
}

/**
 * A message that is not there is made impossible before its blob is let go: one that is being written this long after is
 * waited for, and a later one finds its key taken. In days that are dropped by now nothing can be written.
 */
async function settleAccepting(world: SentWorld, limit: number): Promise<number> {
  const now = world.clock.now();
  const from = uuidFloor(now - world.config.retention_days.body * DAY_MS);
  const before = uuidFloor(now - ACCEPTED_WITHIN_MS);
  const owners = await queries.findSentOwners(world.db, "accepting", { from, before, limit });
  const { stored, missing } = await sorted(world, owners);
  const settled = [];
  for (const owner of missing) if (!(await settleAccept(world.db, owner.org_id, owner.id))) settled.push(owner);
  await queries.markAccepted(world.db, stored);
  await queries.releaseReferences(world.db, settled);
  return stored.length + settled.length;
}

/** A day later than the partitions go: what is still there then, because they could not be dropped, is left alone. */
async function releaseOver(world: SentWorld, limit: number): Promise<number> {
  const before = uuidFloor(world.clock.now() - (world.config.retention_days.body + 2) * DAY_MS);
  let count = 0;
  for (const state of ["accepted", "accepting"] as const) {
    const { missing } = await sorted(world, await queries.findSentOwners(world.db, state, { before, limit }));
    await queries.releaseReferences(world.db, missing);
    count += missing.length;
  }
  return count;
}

async function sorted(world: SentWorld, owners: queries.Owner[]) {
  const large = new Set((await findLarge(world.db, owners)).map(({ org_id, id }) => `${org_id}/${id}`));
  const isStored = ({ org_id, id }: queries.Owner) => large.has(`${org_id}/${id}`);
  return { stored: owners.filter(isStored), missing: owners.filter((owner) => !isStored(owner)) };
}
