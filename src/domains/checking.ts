// One check of a domain's DNS records, asked for or due: read, look up outside any transaction, then fold what
// was seen into the row under its lock. Not here: what the answers mean (look-up.ts, spf.ts) and the states (state.ts).

import { isDuplicate, type Tx } from "../platform/database/db.ts";
import { resolverFor } from "../platform/dns/resolver.ts";
import type { World } from "../platform/world.ts";
import { lookUpRecords } from "./look-up.ts";
import * as queries from "./queries.ts";
import { expectedRecords, withChecks } from "./records.ts";
import { afterCheck, sends } from "./state.ts";
import type { DnsRecord, DomainPorts, DomainRow, ExpectedRecord, Purpose, RecordCheck } from "./types.ts";

export type CheckWorld = Pick<World, "db" | "clock" | "config" | "resolver">;
export type Target = { org_id: string; id: string };

/** `taken`: the records are right, but another organization holds the domain. */
export type CheckOutcome = { row: DomainRow; records: DnsRecord[]; taken: boolean };

/**
 * Looks the domain's records up (`only`: those purposes) and keeps what was seen. Null when the domain is gone. Asks
 * DNS outside the transactions; a check that could not ask takes no proof away.
 */
export async function checkDomain(
  world: CheckWorld,
  ports: DomainPorts,
  target: Target,
  how: { fresh: boolean; only?: Purpose[] },
): Promise<CheckOutcome | null> {
  const before = await world.db.asOrg(target.org_id, async (tx) => {
    const [row] = await queries.findById(tx, target.org_id, target.id);
    if (!row) return null;
    const pool = row.ip_pool === null ? [] : await ports.addressesOfPool(tx, target.org_id, row.ip_pool);
    return { row, pool, expected: await loadExpected(world, ports, tx, row) };
  });
  if (!before) return null;
  const wanted = before.expected.filter((record) => !how.only || how.only.includes(record.purpose));
  const asking = { ...world, resolver: resolverFor(world.resolver, target.org_id) };
  const checks = await lookUpRecords(asking, { ...before.row, pool: before.pool }, wanted, how);
  const isFree = before.row.claimed || (await ports.isElsewhere?.(before.row.domain)) !== true;
  return saveChecks(world, ports, { ...target, checks, taken: !isFree });
}

/** The records that the domain is to publish now. */
export async function loadExpected(
  world: Pick<World, "config">,
  ports: Pick<DomainPorts, "dkim">,
  tx: Tx,
  row: DomainRow,
): Promise<ExpectedRecord[]> {
  return expectedRecords(world.config, row, await ports.dkim.records(tx, row.org_id, row));
}

async function saveChecks(world: CheckWorld, ports: DomainPorts, seen: Seen): Promise<CheckOutcome | null> {
  const save = (taken: boolean) =>
    world.db.asOrg(seen.org_id, (tx) => foldChecks(world, ports, tx, { ...seen, taken }));
  try {
    return await save(seen.taken);
  } catch (error) {
    // Two organizations proved the domain at once, or the other one did earlier: the index lets one of them have it.
    if (!isDuplicate(error, "domain_claim")) throw error;
    return save(true);
  }
}

type Seen = Target & { checks: RecordCheck[]; taken: boolean };

async function foldChecks(world: CheckWorld, ports: DomainPorts, tx: Tx, seen: Seen): Promise<CheckOutcome | null> {
  const [before] = await queries.lockById(tx, seen.org_id, seen.id);
  if (!before) return null;
  const at = new Date(world.clock.now());
  const checks = seen.taken ? seen.checks.map(noteHolder) : seen.checks;
  const dkimChecks = checks.filter((check) => check.purpose === "dkim");
  const dkim = await ports.dkim.noteChecks(tx, seen.org_id, before, { checks: dkimChecks, at });
  const row = afterCheck(before, { checks, dkim, at }, !seen.taken);
  const expected = await loadExpected(world, ports, tx, row);
  row.checks = row.checks.filter((check) => expected.some((record) => record.name === check.name));
  const [saved] = await queries.updateDomain(tx, seen.org_id, row);
  if (before.status !== "verified" && row.status === "verified" && sends(row.type)) {
    await ports.onSendingVerified(tx, seen.org_id, seen.id);
  }
  return { row: saved as DomainRow, records: withChecks(expected, row), taken: seen.taken };
}

function noteHolder(check: RecordCheck): RecordCheck {
  if (check.purpose !== "ownership") return check;
  return {
    ...check,
    hint: "Another organization has verified this domain; it can be verified here once that one removed it.",
  };
}
