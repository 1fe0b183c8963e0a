// What an operator orders for the mail to one destination. Suspended, it waits in the queue of every organization, and its time is
// prolonged as that of suspended organizations is; resumed, it leaves. A retry makes deferred mail due and calls sites that rest.
// A drop gives up what waits: a row that the clock role works off (drop.ts). Engines follow within seconds (held.ts). The audit
// logs of the organizations whose mail it is show each order, and that of the first organization shows all.
import { organizationNamed } from "../../accounts/accounts.ts";
import { notePersonInAll, type PersonAct } from "../../audit/audit.ts";
import { normalizeDomain } from "../../mail/address.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { giveTimeTo } from "../queue/suspended.ts";
import { notifier } from "../queue/wake.ts";
import * as queries from "./operate-queries.ts";

export type OrderWorld = Pick<World, "db" | "clock" | "random" | "log">;
export type By = Pick<PersonAct, "person" | "request">;

const SUSPENDED_MAX = 1_000;
/** `most` deliveries of one retry are hastened, `at_once` in a transaction. */
const RETRIED = { at_once: 5_000, most: 50_000 };
/** So many organizations' audit logs show an order. */
const NOTED_MAX = 1_000;

/** The domain as the queue names it, or 404. */
export function readDestination(text: string): string {
  const domain = normalizeDomain(text);
  if (domain === null) throw notFound("destination");
  return domain;
}

/** Its mail waits from the next seconds on; 409 where too many wait already. */
export async function suspend(world: OrderWorld, domain: string, note: string | null, by: By): Promise<void> {
  const at = new Date(world.clock.now());
  await world.db.transaction(async (tx) => {
    const [{ total } = { total: 0 }] = await queries.countSuspended(tx);
    if (total >= SUSPENDED_MAX)
      throw new Refusal("invalid_state", `${SUSPENDED_MAX} destinations are suspended already; resume some first`);
    await queries.suspend(tx, domain, { at, by: by.person.email, note });
  });
  await giveTimeTo(world, [domain]);
  await noteOrder(world, domain, { ...by, operation: "suspendDestination", fields: note === null ? [] : ["note"] });
}

/** Its mail leaves again; what is left of a drop stays in the queue. */
export async function resume(world: OrderWorld, domain: string, by: By): Promise<void> {
  await world.db.transaction(async (tx) => {
    if ((await queries.resume(tx, domain)) === 0)
      throw new Refusal("invalid_state", "this destination is not suspended");
    await queries.wakeLanes(tx, domain, new Date(world.clock.now()));
  });
  notifier(world)();
  await noteOrder(world, domain, { ...by, operation: "resumeDestination" });
}

/** Makes deferred mail due, at most 50,000 deliveries of it, and calls sites that rest; 409 while it is suspended. */
export async function retry(
  world: OrderWorld,
  domain: string,
  by: By,
  { at_once, most } = RETRIED,
): Promise<{ hastened: number; more: boolean }> {
  const [order] = await queries.findOrder(world.db, domain);
  if (order?.suspended_at) throw new Refusal("invalid_state", "this destination is suspended; resume it first");
  const at = new Date(world.clock.now());
  let hastened = 0;
  for (let found = at_once; found === at_once && hastened < most; hastened += found)
    found = await world.db.transaction((tx) => queries.hasten(tx, domain, at, at_once));
  await world.db.transaction(async (tx) => {
    await queries.orderRetry(tx, domain, new Date(world.clock.now()));
    await queries.wakeLanes(tx, domain, at);
  });
  notifier(world)();
  await noteOrder(world, domain, { ...by, operation: "retryDestination" });
  return { hastened, more: hastened >= most && (await queries.isAnyLate(world.db, domain, at)) };
}

/** Gives up what was accepted up to `before`; 409 unless it is suspended: then nothing of it is on its way. */
export async function drop(world: OrderWorld, domain: string, before: Date, by: By): Promise<void> {
  if (before.getTime() > world.clock.now())
    throw invalid("accepted_before", "the 'accepted_before' field must not lie ahead");
  const changed = await queries.orderDrop(world.db, domain, before);
  if (changed === 0)
    throw new Refusal("invalid_state", "suspend this destination first: then nothing of it is sent meanwhile");
  await noteOrder(world, domain, { ...by, operation: "dropDestination", fields: ["accepted_before"] });
}

async function noteOrder(world: OrderWorld, domain: string, act: Omit<PersonAct, "target">): Promise<void> {
  const theirs = await queries.organizationsOf(world.db, domain, NOTED_MAX);
  const first = await organizationNamed(world, null);
  const all = new Set([first, ...theirs.map(({ org_id }) => org_id)]);
  await notePersonInAll(world, [...all], { ...act, target: { domain } });
}
