// The masked addresses of one mailbox, as a mask key may manage them: those that forward to it, and changes only where it is
// their one destination.
import type { FastifyRequest } from "fastify";
import { sayChanged } from "../../audit/audit.ts";
import type { Account } from "../../http/http.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as aliases from "../addresses/aliases.ts";
import { getDestination } from "../addresses/destinations.ts";
import type { AliasRecord, DestinationRecord } from "../types.ts";

export type OwnWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

/** The mailbox of a mask key, and what may be done with its addresses. */
export type OwnAliases = {
  mailbox: DestinationRecord;
  create(request: Omit<aliases.CreateAlias, "forward_to">): Promise<AliasRecord>;
  list(query: aliases.AliasQuery, page: { limit: number; offset: number }): ReturnType<typeof aliases.listAliases>;
  get(id: string): Promise<AliasRecord>;
  change(id: string, changes: Partial<aliases.AliasSettings>): Promise<AliasRecord>;
  remove(id: string): Promise<void>;
};

/** Those of the key that asks; 404 when its mailbox was removed meanwhile. */
export async function ownAliases(world: OwnWorld, ports: aliases.AliasPorts, account: Account): Promise<OwnAliases> {
  const mailbox = await getDestination(world, account, account.destination_id ?? "");

  async function get(id: string): Promise<AliasRecord> {
    const alias = await aliases.getAlias(world, account, id);
    if (!alias.forward_to.includes(mailbox.email)) throw notFound("masked alias");
    return alias;
  }

  async function mayChange(id: string): Promise<void> {
    if ((await get(id)).forward_to.length === 1) return;
    const why = "this alias forwards to other mailboxes as well; change it with a full API key";
    throw new Refusal("mask_key_not_allowed", why);
  }

  return {
    mailbox,
    get,
    create: (request) => aliases.createAlias(world, ports, account, { ...request, forward_to: [mailbox.email] }),
    list: (query, page) =>
      aliases.listAliases(world, account, { ...query, forward_to: mailbox.email }, { ...page, below: LAST_ID }),
    async change(id, changes) {
      await mayChange(id);
      return aliases.changeAlias(world, ports, account, { id, changes });
    },
    async remove(id) {
      await mayChange(id);
      await aliases.deleteAlias(world, account, id);
    },
  };
}

/** Switches an alias on or off by a path of its own, which the audit log is to show. */
export async function switchAlias(
  request: FastifyRequest,
  mine: OwnAliases,
  { before, active }: { before: AliasRecord; active: boolean },
): Promise<AliasRecord> {
  const after = await mine.change(before.id, { active });
  sayChanged(request, before, after, ["active"]);
  return after;
}
