// Where accepted mail is placed: behind its sender domain's relay, at an address of a pool, or at the shared address.
// Decided once, when it is accepted; what changes afterwards is the engine's (intake.ts, sources.ts).
import { includesDedicatedIps, requirePlan } from "../../accounts/accounts.ts";
import type { Account } from "../../http/http.ts";
import { coalesceListsByOrg } from "../../platform/fair/coalesce.ts";
import { remember } from "../../platform/fair/remember.ts";
import { invalid } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { fnv1a } from "../../text/fnv.ts";
import * as relayQueries from "../route/relay-queries.ts";
import { relayFinder } from "../route/relays.ts";
import { DEFAULT_SOURCE_ID } from "../types.ts";
import * as pools from "./pool-queries.ts";
import { dailyLimit, dayOf } from "./warmup.ts";

/** `pool`: what the message itself asks for; `domain_pool`: what its domain is set to. */
export type Leaving = {
  domain_id: string;
  message_id: string;
  pool: string | null;
  domain_pool: string | null;
};

export type Exit = { source_id: string; relay_domain_id: string | null; ip_pool: string | null };

export type ChooseExit = (account: Pick<Account, "org_id" | "plan">, mail: Leaving) => Promise<Exit>;

const KNOWN_FOR_MS = 2_000;
const REMEMBERED_MAX = 50_000;

/**
 * A chooser for the hot path, with a memory of seconds. 400 for a message that asks for a pool there is not, 403 where the
 * plan has none. A domain whose pool is gone, or is in the plan no longer, sends from the shared address.
 */
export function exitChooser(world: Pick<World, "db" | "clock">): ChooseExit {
  const relays = relayFinder(world);
  const findPool = poolFinder(world);
  const isClosed = remembered(world, async () => (await relayQueries.isClosedEverywhere(world.db))[0]?.closed ?? false);

  return async (account, mail) => {
    const source = await sourceFor(account, mail);
    const relay = await relays.find(account.org_id, mail.domain_id);
    const isRelayed = relay !== null && (relay.mode === "always" || (await isClosed()));
    return isRelayed ? { ...source, source_id: DEFAULT_SOURCE_ID, relay_domain_id: relay.domain_id } : source;
  };

  async function sourceFor(account: Pick<Account, "org_id" | "plan">, mail: Leaving): Promise<Exit> {
    if (mail.pool !== null) requirePlan(account, "dedicated_ips");
    const name = mail.pool ?? (includesDedicatedIps(account.plan) ? mail.domain_pool : null);
    const choices = name === null ? null : await findPool(account.org_id, name);
    if (mail.pool !== null && !choices) throw unknownPool(mail.pool);
    const chosen = choices && choose(choices, mail.message_id, world.clock.now());
    return { source_id: chosen ?? DEFAULT_SOURCE_ID, relay_domain_id: null, ip_pool: choices ? name : null };
  }
}

/** 400 for a pool that the organization does not have. */
export function unknownPool(name: string) {
  return invalid("ip_pool", `the 'ip_pool' field names no pool of this organization: ${name}`);
}

type PoolRow = Awaited<ReturnType<typeof pools.findChoices>>[number];

function poolFinder(world: Pick<World, "db" | "clock">) {
  const known = remember<pools.ChoiceRow[]>(world.clock, { for_ms: KNOWN_FOR_MS, names_max: REMEMBERED_MAX });
  const load = coalesceListsByOrg<PoolRow>({
    keys_max: 200,
    lanes: 1,
    load: async (keys) => {
      const names = keys.map(({ org_id, key }) => ({ org_id, pool: key }));
      const rows = await pools.findChoices(world.db, names, dayOf(world.clock.now()));
      return rows.map((row) => [row.org_id, row.pool, row]);
    },
  });
  return async (orgId: string, name: string): Promise<pools.ChoiceRow[] | null> => {
    const key = `${orgId}/${name}`;
    const seen = known.get(key);
    if (seen) return seen;
    const rows = await load(orgId, name);
    // A pool without addresses is one row without an id.
    const choices = rows.length === 0 ? null : (rows.filter((row) => row.id !== null) as pools.ChoiceRow[]);
    // That there is none is not remembered: it may be made the next moment.
    if (choices) known.set(key, choices);
    return choices;
  };
}

function remembered<T>(world: Pick<World, "clock">, load: () => Promise<T>): () => Promise<T> {
  let known: { value: Promise<T>; untilMs: number } | null = null;
  return () => {
    if (known && known.untilMs > world.clock.monotonic()) return known.value;
    const value = load();
    known = { value, untilMs: world.clock.monotonic() + KNOWN_FOR_MS };
    value.catch(() => {
      known = null;
    });
    return value;
  };
}

/**
 * By weight, the same message always at the same address. Addresses that no machine has now, or whose warm-up limit of
 * today is used up, are passed over while there are others.
 */
export function choose(choices: pools.ChoiceRow[], messageId: string, nowMs: number): string | null {
  const bindable = choices.filter(({ bindable }) => bindable);
  const open = bindable.filter(({ warmup_started_at, granted }) => {
    const limit = dailyLimit(warmup_started_at, nowMs);
    return limit === null || granted < limit;
  });
  const among = [open, bindable, choices].find((list) => list.length > 0) ?? [];
  const total = among.reduce((sum, { weight }) => sum + weight, 0);
  let place = total === 0 ? 0 : fnv1a(messageId) % total;
  for (const { id, weight } of among) {
    if (place < weight) return id;
    place -= weight;
  }
  return null;
}
