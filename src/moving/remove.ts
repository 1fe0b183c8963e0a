// `postern organizations remove`: takes an organization that has moved out of the cell that it came from. People who belong to no other
// organization go with it. It may be ended and begun again at any moment; the organization itself goes last.
import { organizationNames } from "../accounts/accounts.ts";
import { deleteMoved, findMove } from "../accounts/move-queries.ts";
import { asQuery, connect, quoted, tablesOf } from "../backup/tables.ts";
import { KEPT_MS } from "../cells/find-cell.ts";
import { releaseAllOf } from "../inbound/blobs/blob-queries.ts";
import { deleteOnlyMembers } from "../people/people.ts";
import { sleep } from "../platform/clock.ts";
import { schemaOf } from "../platform/database/citus/cells.ts";
import { beginWith, passedOn } from "../platform/database/session-settings.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import type { World } from "../platform/world.ts";
import { notThere } from "./hold.ts";

type RemoveWorld = Pick<World, "db" | "database_url" | "clock">;
export type RemoveOptions = { organization: string; progress(text: string): void };

/** An engine drops idle lanes by itself, addresses are the operator's, and what is let go of in the store is deleted soon. */
const LEFT = ["lane", "source", "blob_reference"];
/** They go with the organization itself. */
const LAST = ["organization_move_seen", "organization_move"];
const BEGIN = beginWith(
  passedOn([
    ["postern.scope", "system"],
    ["postern.sums", "statements"],
  ]),
);

/** Throws a sentence unless it was exported. Answers how many rows went. */
export async function removeOrganization(
  world: RemoveWorld,
  { organization, progress }: RemoveOptions,
): Promise<number> {
  await refuseUnmoved(world, organization, progress);
  const client = await connect(world.database_url, await schemaOf(world.database_url));
  let rows = 0;
  const inOne = async (work: () => Promise<unknown>): Promise<void> => {
    await client.query(BEGIN);
    rows += Number((await work()) ?? 0);
    await client.query("commit");
  };
  try {
    const tables = (await tablesOf(client)).filter(({ columns }) => columns.includes("org_id")).reverse();
    const names = tables.map(({ name }) => name).filter((name) => !LEFT.includes(name) && !LAST.includes(name));
    // While they are known to be its own.
    await inOne(() => deleteOnlyMembers(asQuery(client), organization));
    for (const name of names) {
      progress(`removing ${name}`);
      await inOne(() => asQuery(client).execute(`delete from ${quoted(name)} where org_id = $1`, [organization]));
    }
    await inOne(() => releaseAllOf(asQuery(client), organization));
    await inOne(() => deleteMoved(asQuery(client), organization));
    return rows;
  } finally {
    await client.end();
  }
}

/** The door of several cells goes on sending its requests here for a while. */
async function refuseUnmoved(
  { db, clock }: RemoveWorld,
  orgId: string,
  progress: (text: string) => void,
): Promise<void> {
  const [move] = await findMove(db, orgId);
  if (!move) {
    throw (await organizationNames({ db }, [orgId])).has(orgId)
      ? new UsageError(
          "this organization has not moved: postern organizations export, and import in the other cell, come first.",
        )
      : notThere(orgId);
  }
  if (move.exported_at === null)
    throw new UsageError("this organization was not written to a file yet: postern organizations export comes first.");
  const leftMs = move.began_at.getTime() + KEPT_MS - clock.now();
  if (leftMs <= 0) return;
  progress(`waiting ${Math.ceil(leftMs / 1000)} s: a door of several cells believes for a minute that it is here`);
  await sleep(Math.min(leftMs, KEPT_MS));
}
