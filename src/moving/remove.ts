// `postern organizations remove`: takes an organization that has moved out of the cell that it came from. People who belong to no other
// organization go with it. It may be ended and begun again at any moment; the organization itself goes last.
import type pg from "pg";
import { organizationNames } from "../accounts/accounts.ts";
import { deleteMoved, findMove, type Move } from "../accounts/move-queries.ts";
import { asQuery, connect, quoted, tablesOf } from "../backup/tables.ts";
import { KEPT_MS } from "../cells/find-cell.ts";
import { releaseAllOf } from "../inbound/blobs/blob-queries.ts";
import { deleteOnlyMembers } from "../people/people.ts";
import { sleep } from "../platform/clock.ts";
import { schemaOf } from "../platform/database/citus/cells.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import type { World } from "../platform/world.ts";
import { notThere } from "./hold.ts";
import { BEGIN_WRITING, MAILS } from "./tables.ts";

type RemoveWorld = Pick<World, "db" | "database_url" | "clock">;
export type RemoveOptions = {
  organization: string;
  /** Also where mail was accepted that is in no file. */
  anyway: boolean;
  progress(text: string): void;
};

/** An engine drops idle lanes by itself, addresses are the operator's, and what is let go of in the store is deleted soon. */
const LEFT = ["lane", "source", "blob_reference"];
/** They go with the organization itself. */
const LAST = ["organization_move_seen", "organization_move"];

/** Throws a sentence unless it was exported. Answers how many rows went. */
export async function removeOrganization(world: RemoveWorld, options: RemoveOptions): Promise<number> {
  const { organization, progress } = options;
  const { exported_mails } = await movedOut(world, options);
  const client = await connect(world.database_url, await schemaOf(world.database_url));
  let rows = 0;
  const inOne = async (work: () => Promise<unknown>): Promise<void> => {
    await client.query(BEGIN_WRITING);
    rows += Number((await work()) ?? 0);
    await client.query("commit");
  };
  try {
    if (!options.anyway) await refuseLate(client, organization, exported_mails ?? 0);
    const tables = (await tablesOf(client)).filter(({ columns }) => columns.includes("org_id")).reverse();
    const names = tables.map(({ name }) => name).filter((name) => !LEFT.includes(name) && !LAST.includes(name));
    // While they are known to be its own.
    await inOne(() => deleteOnlyMembers(asQuery(client), organization));
    // Background work may add rows to what is empty already: all of them go once more, until none is left.
    for (let before = -1; before !== rows; ) {
      before = rows;
      for (const name of names) {
        progress(`removing ${name}`);
        await inOne(() => asQuery(client).execute(`delete from ${quoted(name)} where org_id = $1`, [organization]));
      }
    }
    await inOne(() => releaseAllOf(asQuery(client), organization));
    await inOne(() => deleteMoved(asQuery(client), organization));
    return rows;
  } finally {
    await client.end();
  }
}

/** Throws unless it was exported. The door of several cells goes on sending its requests here for a while, which is waited for. */
async function movedOut({ db, clock }: RemoveWorld, options: RemoveOptions): Promise<Move> {
  const { organization: orgId, progress } = options;
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
  if (leftMs > 0) {
    progress(`waiting ${Math.ceil(leftMs / 1000)} s: a door of several cells believes for a minute that it is here`);
    await sleep(Math.min(leftMs, KEPT_MS));
  }
  return move;
}

/** Old mails go and nothing is accepted, so a mail more than were written means that something went wrong. */
async function refuseLate(client: pg.Client, orgId: string, written: number): Promise<void> {
  await client.query(BEGIN_WRITING);
  let mails = 0;
  for (const name of MAILS) {
    const { rows } = await client.query<{ n: number }>(
      `select count(*)::int as n from ${quoted(name)} where org_id = $1`,
      [orgId],
    );
    mails += rows[0]?.n ?? 0;
  }
  await client.query("commit");
  if (mails > written)
    throw new UsageError(
      `${mails - written} mails were accepted here after the file was written, as by a process that had stood still, and are not in the other cell: look at them (postern sql), or lose them with --anyway.`,
    );
}
