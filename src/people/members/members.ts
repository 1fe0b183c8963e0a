// Who belongs to an organization, and with which role. There is always an owner.

import { isUuid, type Tx } from "../../platform/database/db.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { PersonRole } from "../types.ts";

type MemberWorld = Pick<World, "db">;

export function listMembers({ db }: MemberWorld, orgId: string): Promise<queries.Member[]> {
  return db.asOrg(orgId, (tx) => queries.listMembers(tx, orgId));
}

/** Gives a member another role, or lets a viewer see the bodies of messages. */
export async function changeMember(
  { db }: MemberWorld,
  orgId: string,
  { id, ...changes }: { id: string; role?: PersonRole; sees_bodies?: boolean },
): Promise<{ before: queries.Member; after: queries.Member }> {
  return db.asOrg(orgId, async (tx) => {
    const { before, isOnlyOwner } = await lockMember(tx, orgId, id);
    if (isOnlyOwner && changes.role !== undefined && changes.role !== "owner") throw onlyOwner();
    await queries.changeMember(tx, orgId, { person_id: id, ...changes });
    return { before, after: await findMember(tx, orgId, id) };
  });
}

/** The person is still there, and belongs to it no longer; answers them as they were. */
export async function removeMember({ db }: MemberWorld, orgId: string, id: string): Promise<queries.Member> {
  return db.asOrg(orgId, async (tx) => {
    const { before, isOnlyOwner } = await lockMember(tx, orgId, id);
    if (isOnlyOwner) throw onlyOwner();
    await queries.removeMember(tx, orgId, id);
    return before;
  });
}

async function findMember(tx: Tx, orgId: string, id: string): Promise<queries.Member> {
  const [member] = isUuid(id) ? await queries.findMember(tx, orgId, id) : [];
  if (!member) throw notFound("person in this organization");
  return member;
}

/** Nobody else changes this member or an owner until the transaction ends. */
async function lockMember(
  tx: Tx,
  orgId: string,
  id: string,
): Promise<{ before: queries.Member; isOnlyOwner: boolean }> {
  const locked = isUuid(id) ? await queries.lockOwnersAnd(tx, orgId, id) : [];
  const owners = locked.filter(({ role }) => role === "owner");
  return { before: await findMember(tx, orgId, id), isOnlyOwner: owners.length === 1 && owners[0]?.person_id === id };
}

function onlyOwner(): Refusal {
  return new Refusal("invalid_state", "this is the only owner: make somebody else owner first");
}
