// One person's data over all masked addresses of an organization, found by keyed hash: what there is (export), and
// forgetting it (erasure). A person may be a contact of many aliases, and a destination.
import { parseAddress } from "../../mail/address.ts";
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { invalid } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { recordConfig, showActivity } from "../activity.ts";
import { textOf } from "../patterns/find-patterns.ts";
import { listPatternsOf } from "../patterns/pattern-queries.ts";
import * as peopleQueries from "../people-queries.ts";
import * as queries from "../queries.ts";
import type { ActivityRecord, AliasRow, ContactRecord, DestinationRecord, Who } from "../types.ts";
import { destinationDigest, personDigest } from "./addresses.ts";
import { showContact } from "./contacts.ts";
import { getDestination } from "./destinations.ts";

type PeopleWorld = Pick<World, "db" | "clock" | "random" | "seal">;

/** More than this of one person is cut, and said to be. */
const CONTACTS_MAX = 1_000;
const ACTIVITY_MAX = 1_000;

export type PersonExport = {
  email: string;
  destination: DestinationRecord | null;
  alias_ids: string[];
  patterns: string[];
  contacts: ContactRecord[];
  activity: ActivityRecord[];
  truncated: boolean;
};

/** Everything that is kept of a person; empty for one that is not known. */
export async function exportPerson(world: PeopleWorld, who: Who, email: string): Promise<PersonExport> {
  const address = readAddress(email);
  const found = await world.db.asOrg(who.org_id, async (tx) => {
    const person = await find(world, tx, who, address);
    const mailbox = person.destination?.id ?? null;
    const aliases = mailbox === null ? [] : await findAliasIds(tx, who, mailbox);
    const patterns = mailbox === null ? [] : await listPatternsOf(tx, who.org_id, mailbox);
    const about = {
      contact_ids: person.contacts.map(({ id }) => id),
      destination_id: mailbox,
      limit: ACTIVITY_MAX,
    };
    return { ...person, aliases, patterns, activity: await peopleQueries.listActivityOf(tx, who.org_id, about) };
  });
  const { aliases, destination, activity } = found;
  const isCut = found.contacts.length === CONTACTS_MAX || activity.length === ACTIVITY_MAX;
  return {
    email: address,
    destination: destination && (await getDestination(world, who, destination.id)),
    alias_ids: aliases.map(({ id }) => id),
    patterns: found.patterns.map(textOf),
    contacts: found.contacts.map(({ domain, ...row }) => showContact(world, { org_id: who.org_id, domain }, row)),
    activity: activity.map((row) => showActivity(world, who.org_id, row)),
    truncated: isCut,
  };
}

export type Erased = { contacts: number; destinations: number; aliases: number };

/**
 * Forgets a person: as a contact of every alias (the reverse addresses lead nowhere any more), and as a destination. An
 * alias that forwards to nobody else is deleted; it stays deleted, because its only mailbox is gone.
 */
export async function erasePerson(world: PeopleWorld, who: Who, email: string): Promise<Erased> {
  const address = readAddress(email);
  return withPartitions(world, () =>
    world.db.asOrg(who.org_id, async (tx) => {
      const person = await find(world, tx, who, address);
      const erased = { contacts: 0, destinations: 0, aliases: 0 };
      for (let some = person.contacts; some.length > 0; some = await findContacts(world, tx, who, address)) {
        for (const { id } of some) await peopleQueries.deleteContact(tx, who.org_id, id);
        erased.contacts += some.length;
      }
      if (!person.destination) return erased;
      erased.aliases = await deleteAliasesOf(world, tx, who, person.destination.id);
      await peopleQueries.deleteDestination(tx, who.org_id, person.destination.id);
      return { ...erased, destinations: 1 };
    }),
  );
}

function readAddress(email: string): string {
  const parsed = parseAddress(email);
  if (parsed.ok) return parsed.address.email;
  throw invalid("email", `the 'email' field is not an e-mail address: ${parsed.reason}`);
}

async function find(world: PeopleWorld, tx: Tx, who: Who, address: string) {
  const digest = destinationDigest(world, who.org_id, address);
  const [destination] = await peopleQueries.findDestinationsByDigest(tx, who.org_id, who.environment, [digest]);
  return { destination: destination ?? null, contacts: await findContacts(world, tx, who, address) };
}

function findContacts(world: PeopleWorld, tx: Tx, { org_id, environment }: Who, address: string) {
  const person = personDigest(world, org_id, address);
  return peopleQueries.findContactsOfPerson(tx, org_id, { person, environment, limit: CONTACTS_MAX });
}

function findAliasIds(tx: Tx, { org_id }: Who, destinationId: string): Promise<Pick<AliasRow, "id" | "deleted_at">[]> {
  return queries.findAliasesOfDestination(tx, org_id, destinationId);
}

/** Lets every alias go of a destination, and deletes those that have no other; how many. */
async function deleteAliasesOf(world: PeopleWorld, tx: Tx, who: Who, destinationId: string): Promise<number> {
  const { org_id } = who;
  await peopleQueries.lockDestination(tx, org_id, destinationId);
  const at = new Date(world.clock.now());
  let deleted = 0;
  for (const { id, deleted_at } of await findAliasIds(tx, who, destinationId)) {
    const all = await queries.findAliasDestinations(tx, org_id, [id]);
    if (deleted_at !== null || all.length > 1) continue;
    await queries.setDeleted(tx, org_id, id, { deleted_at: at, at });
    await recordConfig(world, tx, { org_id, alias_id: id, reason: "deleted" });
    deleted += 1;
  }
  await peopleQueries.unlinkDestination(tx, org_id, destinationId);
  return deleted;
}
