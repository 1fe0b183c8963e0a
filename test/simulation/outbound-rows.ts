// The model's rows of sending, and what each statement of the engine does to them: its meaning, written down once more by
// hand from its SQL. model.test.ts holds both against each other.

import * as accounts from "../../src/accounts/queries.ts";
import * as events from "../../src/events/queries.ts";
import * as operate from "../../src/outbound/operate/operate-queries.ts";
import * as finishing from "../../src/outbound/path/finish-queries.ts";
import * as pools from "../../src/outbound/pools/pool-queries.ts";
import * as queries from "../../src/outbound/queries.ts";
import * as healing from "../../src/outbound/queue/lane-queries.ts";
import * as nodes from "../../src/outbound/queue/node-queries.ts";
import * as policies from "../../src/outbound/route/policy-queries.ts";
import * as relays from "../../src/outbound/route/relay-queries.ts";
import { oldestNumber, ownNumber } from "../../src/platform/database/citus/transaction-numbers.ts";
import * as stats from "../../src/stats/queries.ts";
import * as suppressions from "../../src/suppressions/queries.ts";
import * as webhooks from "../../src/webhooks/queue-queries.ts";
import * as stream from "../../src/webhooks/stream/stream-queries.ts";
import { type Statement, textOf } from "./database.ts";
import { createWriter, type Writer } from "./rows.ts";
import type { Universe } from "./universe.ts";

const NEVER = Number.POSITIVE_INFINITY;
const SLOTS = 16;
export const SOURCE_ID = "00000000-0000-7000-8000-000000000001";

export type LaneRow = {
  id: number;
  org_id: string;
  source_id: string;
  slot: number;
  domain: string;
  class: number;
  relay_domain_id: string | null;
  next_at: number;
  paused_until: number | null;
  touched_at: number;
  retired: number | null;
};

export type DeliveryRow = {
  org_id: string;
  message_id: string;
  position: number;
  lane_id: number;
  email: string;
  due_at: number;
  created_at: number;
  expires_at: number;
  attempts: number;
  owner: number | null;
  deferred_event_at: Date | null;
  absent_since: Date | null;
};

export type RecipientRow = { org_id: string; message_id: string; position: number; email: string; status: string };

/** What was written about a delivery, in order: by whom, while whom it belonged to. */
export type Finish = {
  message_id: string;
  position: number;
  by: number;
  owner: number | null;
  final: boolean;
  status: string;
  attempts: number;
  at_wall_ms: number;
  next_at_ms: number | null;
};

export type EventRow = {
  id: string;
  message_id: string;
  type: string;
  recipient: string;
  at_ms: number;
  attempt: number | null;
  class: string | null;
};

export type OutboundRows = {
  writer: Writer;
  lanes: Map<number, LaneRow>;
  deliveries: Map<string, DeliveryRow>;
  recipients: Map<string, RecipientRow>;
  nodes: Map<number, { id: number; machine: string; pid: number; seen_ms: number }>;
  leases: Map<number, { slot: number; node_id: number | null }>;
  events: EventRow[];
  finishes: Finish[];
  suppressed: string[];
  last_id: number;
  /** Inserts under way, by the number that the last id had when each looked at the rows. */
  open: Set<number>;
};

/** What may be broken on purpose, to see that the simulation notices. */
export type Sabotage = { fence?: "off"; lanes?: "unchecked"; steps?: "overlooked" };

export function createOutboundRows(): OutboundRows {
  return {
    writer: createWriter(),
    lanes: new Map(),
    deliveries: new Map(),
    recipients: new Map(),
    nodes: new Map(),
    leases: new Map(Array.from({ length: SLOTS }, (_, slot) => [slot, { slot, node_id: null }])),
    events: [],
    finishes: [],
    suppressed: [],
    last_id: 0,
    open: new Set(),
  };
}

export const keyOf = (messageId: string, position: number): string => `${messageId}/${position}`;

const ms = (value: Date | number | string): number => (value instanceof Date ? value.getTime() : Number(value));

/** All statements of the engine. */
export function outboundStatements(universe: Universe, rows: OutboundRows, sabotage: Sabotage): Map<string, Statement> {
  return new Map([
    ...laneStatements(rows),
    ...healingStatements(rows, sabotage),
    ...claimStatements(rows),
    ...finishStatements(universe, rows, sabotage),
    ...nodeStatements(universe, rows),
    ...quietStatements(),
  ]);
}

// --- lanes ------------------------------------------------------------------------------------------------------------

function laneStatements(rows: OutboundRows): [string, Statement][] {
  const { writer, lanes } = rows;
  return [
    [
      textOf((db) => queries.upsertLanes(db, [], new Date(0))),
      ([orgIds, sourceIds, slots, domains, classes, relayIds, now]) =>
        orgIds.map((org_id: string, n: number) => {
          const name = { org_id, source_id: sourceIds[n], domain: domains[n], class: classes[n] };
          const known = [...lanes.values()].find((lane) => lane.org_id === org_id && lane.domain === name.domain);
          if (known) {
            writer.change(known, { touched_at: ms(now), retired: null });
            return { ...known };
          }
          rows.last_id += 1;
          const state = { next_at: NEVER, paused_until: null, touched_at: ms(now), retired: null };
          const lane = { id: rows.last_id, ...name, slot: slots[n], relay_domain_id: relayIds[n], ...state };
          writer.put(lanes, lane.id, lane);
          return { ...lane };
        }),
    ],
    [
      textOf((db) => queries.dueLanes(db, [], { busy: [], now: new Date(0), limit: 0 })),
      ([, slots, busy, now, limit, crowded, held]) =>
        [...lanes.values()]
          .filter((lane) => slots.includes(lane.slot) && lane.next_at <= ms(now) && !busy.includes(lane.id))
          .filter(({ paused_until, org_id }) => (paused_until ?? 0) <= ms(now) && !crowded.includes(org_id))
          .filter(({ domain }) => !held.includes(domain))
          .sort((a, b) => a.next_at - b.next_at)
          .slice(0, limit)
          .map((lane) => ({ ...lane })),
    ],
    [textOf((db) => queries.findLanes(db, [])), ([ids]) => ids.flatMap((id: number) => lanes.get(id) ?? [])],
    [
      textOf((db) => queries.rescheduleLanes(db, [], new Date(0), 0)),
      ([ids, now, lingerMs]) =>
        ids.flatMap((id: number) => {
          const lane = lanes.get(id);
          if (!lane) return [];
          const first = firstDue(rows, id);
          writer.change(lane, { next_at: Math.min(first ?? NEVER, lingerMs > 0 ? ms(now) + lingerMs : NEVER) });
          return [{ id, asleep: first === null || first > ms(now) }];
        }),
    ],
    [
      textOf((db) => queries.pauseLanes(db, [], new Date(0), "")),
      ([ids, until]) => {
        for (const lane of pick(lanes, ids)) {
          writer.change(lane, { paused_until: ms(until), next_at: Math.max(lane.next_at, ms(until)) });
        }
        return ids.length;
      },
    ],
    [
      textOf((db) => queries.resumeLanes(db, [], new Date(0))),
      ([ids, now]) => {
        const paused = pick(lanes, ids).filter(({ paused_until }) => paused_until !== null);
        for (const lane of paused) writer.change(lane, { paused_until: null, next_at: ms(now) });
        return paused.length;
      },
    ],
    [
      textOf((db) => queries.wakeForgottenLanes(db, [], new Date(0))),
      ([, slots, now]) => {
        const own = [...lanes.values()].filter((lane) => slots.includes(lane.slot));
        const asleep = own.filter((lane) => lane.next_at === NEVER || (lane.paused_until ?? 0) <= ms(now));
        for (const lane of asleep) wake(rows, lane.id, firstDue(rows, lane.id) ?? NEVER);
        return asleep.length;
      },
    ],
    [textOf((db) => oldestNumber(db)), () => [{ number: String(Math.min(...rows.open, NEVER)) }]],
    [
      textOf((db) => ownNumber(db)),
      () => {
        rows.last_id += 1;
        return [{ number: String(rows.last_id) }];
      },
    ],
    [
      textOf((db) => queries.deleteRetired(db, new Date(0), { limit: 1, oldest: "1" })),
      ([before, limit, oldest]) => {
        const isOver = (retired: number | null) => retired !== null && retired < Number(oldest);
        const dropped = idleLanes(rows, ms(before)).filter(({ retired }) => isOver(retired));
        for (const { id } of dropped.slice(0, limit)) writer.drop(lanes, id);
        return dropped.length;
      },
    ],
    [
      textOf((db) => queries.retireIdle(db, new Date(0), { limit: 1, number: "1" })),
      ([before, limit, number]) => {
        const idle = idleLanes(rows, ms(before)).filter(({ retired }) => retired === null);
        for (const lane of idle.slice(0, limit)) writer.change(lane, { retired: Number(number) });
        return idle.length;
      },
    ],
  ];
}

function idleLanes({ lanes, deliveries }: OutboundRows, before: number): LaneRow[] {
  const holding = new Set([...deliveries.values()].map(({ lane_id }) => lane_id));
  return [...lanes.values()].filter(
    (lane) => lane.touched_at < before && lane.next_at === NEVER && !holding.has(lane.id),
  );
}

function healingStatements(rows: OutboundRows, sabotage: Sabotage): [string, Statement][] {
  const { writer, lanes, deliveries } = rows;
  const at = { now: new Date(0), accepted_after: new Date(0), retried_after: new Date(0) };
  return [
    [
      textOf((db) => healing.bringBack(db, at)),
      ([now, acceptedAfter, retriedAfter]) => {
        const wrong = [...deliveries.values()].filter(
          (row) =>
            row.owner === null &&
            (row.created_at > ms(acceptedAfter) || (row.attempts > 0 && row.due_at > ms(retriedAfter))),
        );
        if (sabotage.steps === "overlooked") return 0;
        for (const row of wrong) {
          const ahead = Math.max(0, row.created_at - ms(now));
          const due = row.attempts > 0 ? Math.min(row.due_at - ahead, ms(now)) : row.due_at - ahead;
          const times = { created_at: row.created_at - ahead, expires_at: row.expires_at - ahead, due_at: due };
          writer.change(row, times);
          wake(rows, row.lane_id, due);
        }
        return wrong.length;
      },
    ],
    [
      textOf((db) => healing.unparkBeyond(db, [], new Date(0), new Date(0))),
      ([, slots, now, latest]) => {
        const beyond = [...lanes.values()].filter((lane) => (lane.paused_until ?? 0) > ms(latest));
        const own = beyond.filter(({ slot }) => slots.includes(slot));
        for (const lane of own) writer.change(lane, { paused_until: null, next_at: Math.min(lane.next_at, ms(now)) });
        return own.length;
      },
    ],
  ];
}

function pick<K, V>(table: Map<K, V>, keys: K[]): V[] {
  return keys.flatMap((key) => table.get(key) ?? []);
}

function firstDue(rows: OutboundRows, laneId: number): number | null {
  let first: number | null = null;
  for (const { lane_id, owner, due_at } of rows.deliveries.values()) {
    if (lane_id === laneId && owner === null && (first === null || due_at < first)) first = due_at;
  }
  return first;
}

/** Lanes look at `at` at the latest. */
export function wake({ writer, lanes }: OutboundRows, laneId: number, at: number): void {
  const lane = lanes.get(laneId);
  if (lane && lane.next_at > at) writer.change(lane, { next_at: at });
}

// --- claims -----------------------------------------------------------------------------------------------------------

function toClaimed(row: DeliveryRow) {
  const dates = { created_at: new Date(row.created_at), expires_at: new Date(row.expires_at) };
  return { ...row, ...dates, return_path_host: "bounces.example" };
}

function claimStatements(rows: OutboundRows): [string, Statement][] {
  const { writer, lanes, deliveries } = rows;
  const take = (row: DeliveryRow, owner: number) => {
    writer.change(row, { owner });
    return toClaimed(row);
  };
  return [
    [
      textOf((db) => queries.claimDue(db, 0, [], { now: new Date(0), mark: null })),
      ([node, ids, counts, now]) =>
        ids.flatMap((id: number, n: number) =>
          [...deliveries.values()]
            .filter(({ lane_id, owner, due_at }) => lane_id === id && owner === null && due_at <= ms(now))
            .sort((a, b) => a.due_at - b.due_at)
            .slice(0, counts[n])
            .map((row) => take(row, node)),
        ),
    ],
    [
      textOf((db) => queries.claimExpired(db, 0, [], { now: new Date(0), mark: null, limit: 0, suspended: [] })),
      ([node, , slots, now, limit, , , suspended]) =>
        [...deliveries.values()]
          .filter(({ owner, expires_at }) => owner === null && expires_at <= ms(now))
          .filter(({ org_id }) => !suspended.includes(org_id))
          .filter(({ lane_id }) => slots.includes(lanes.get(lane_id)?.slot))
          .slice(0, limit)
          .map((row) => take(row, node)),
    ],
    [
      textOf((db) => queries.describeMessages(db, [])),
      ([orgIds, ids]) => ids.map((id: string, n: number) => ({ id, ...aboutOf(), org_id: orgIds[n] })),
    ],
    [
      textOf((db) => queries.loadBodies(db, [])),
      ([, ids]) => [...new Set<string>(ids)].map((id) => ({ id, mime: BODY, blob_key: null })),
    ],
    [textOf((db) => queries.ownedBy(db, 0)), ([node]) => ownedBy(rows, node).map(toClaimed)],
    [textOf((db) => queries.ownedKeys(db, 0)), ([node]) => ownedBy(rows, node).map((row) => ({ ...row }))],
    [
      textOf((db) => queries.ownedAmong(db, 0, [])),
      ([node, ids, positions, attempts]) =>
        ids.flatMap((id: string, n: number) => {
          const row = deliveries.get(keyOf(id, positions[n]));
          return row?.owner === node && row?.attempts === attempts[n] ? [toClaimed(row as DeliveryRow)] : [];
        }),
    ],
  ];
}

export const BODY: Buffer = Buffer.from("Subject: simulated\r\n\r\nHello\r\n");

/** What a delivery's message says of itself. A forward needs no signature, and none of this is about signatures. */
export function aboutOf() {
  return {
    domain_id: "00000000-0000-7000-8000-0000000000d0",
    rfc_message_id: "<simulated@shop.example>",
    from_address: "orders@shop.example",
    subject: "simulated",
    tags: [],
    metadata: {},
    size: BODY.length,
    recipient_count: 1,
    require_tls: false,
    has_expiry: false,
    environment: "live" as const,
    origin: "forward",
    envelope_from: "orders@shop.example",
    unsubscribe_list: null,
    blob_key: null,
  };
}

function ownedBy({ deliveries }: OutboundRows, node: number): DeliveryRow[] {
  return [...deliveries.values()].filter(({ owner }) => owner === node);
}

// --- outcomes ---------------------------------------------------------------------------------------------------------

function finishStatements(universe: Universe, rows: OutboundRows, sabotage: Sabotage): [string, Statement][] {
  const { writer, deliveries, recipients } = rows;
  const isMine = (row: DeliveryRow | undefined, node: number, attempts?: number): row is DeliveryRow =>
    row !== undefined &&
    ((row.owner === node && row.attempts === (attempts ?? row.attempts)) || sabotage.fence === "off");
  return [
    [
      textOf((db) => finishing.finishDeliveries(db, [], new Date(0))),
      ([owners, , ids, positions, finals, statuses, attempts, nextAt, ...rest]) => {
        const others = rest.slice(0, -1); // behind them stands the time
        return ids.flatMap((message_id: string, n: number) => {
          const key = keyOf(message_id, positions[n]);
          const row = deliveries.get(key);
          if (!isMine(row, owners[n], others.at(-1)[n])) return [];
          const next = finals[n] ? null : ms(nextAt[n]);
          const reported = { final: finals[n], status: statuses[n], attempts: attempts[n], next_at_ms: next };
          const when = { by: owners[n], owner: row.owner, at_wall_ms: universe.wall() };
          writer.append(rows.finishes, { message_id, position: positions[n], ...reported, ...when });
          if (next === null) writer.drop(deliveries, key);
          else {
            const dates = { deferred_event_at: others.at(-3)[n], absent_since: others.at(-2)[n] };
            writer.change(row, { owner: null, attempts: attempts[n], due_at: next, ...dates });
            wake(rows, row.lane_id, next);
          }
          writer.change(recipients.get(key) as RecipientRow, { status: statuses[n] });
          return [{ message_id, position: positions[n] }];
        });
      },
    ],
    [textOf((db) => finishing.lockMessages(db, [])), () => []],
    [textOf((db) => finishing.foldMessages(db, [], new Date(0))), () => []],
    [
      textOf((db) => queries.returnDeliveries(db, [], new Date(0))),
      ([owners, , ids, positions, due]) => {
        const mine: DeliveryRow[] = ids.flatMap((id: string, n: number) => {
          const row = deliveries.get(keyOf(id, positions[n]));
          return isMine(row, owners[n]) ? [row] : [];
        });
        for (const row of mine) {
          writer.change(row, { owner: null, due_at: Math.max(row.due_at, ms(due)) });
          wake(rows, row.lane_id, row.due_at);
        }
        return mine.length;
      },
    ],
    [
      textOf((db) => events.insertEvents(db, [])),
      (columns) => {
        const [, ids, messageIds, types, recipientOf, ats, attempts] = columns;
        for (const [n, id] of ids.entries()) {
          const what = { type: types[n], recipient: recipientOf[n], class: columns.at(-1)[n] };
          const when = { at_ms: ms(ats[n]), attempt: attempts[n] };
          writer.append(rows.events, { id, message_id: messageIds[n], ...what, ...when });
        }
        return ids.length;
      },
    ],
    [
      textOf((db) => suppressions.mergeEntries(db, new Date(0), [])),
      ([, , , emails]) => {
        for (const email of emails) writer.append(rows.suppressed, email);
        return emails.length;
      },
    ],
    [
      textOf((db) => events.findReported(db, [NO_EVENT])),
      ([, ids, messageIds, recipientOf, attempts]) =>
        ids.flatMap((id: string, n: number) => {
          const isTold = (event: EventRow): boolean =>
            event.message_id === messageIds[n] &&
            (event.id === id ||
              (event.type === "ambiguous" && event.recipient === recipientOf[n] && event.attempt === attempts[n]));
          return rows.events.some(isTold) ? [{ id }] : [];
        }),
    ],
  ];
}

const NO_EVENT = {} as Parameters<typeof events.findReported>[1][number];

// --- nodes and leases -------------------------------------------------------------------------------------------------

function nodeStatements(universe: Universe, rows: OutboundRows): [string, Statement][] {
  const { writer, nodes: alive, leases, deliveries } = rows;
  return [
    [
      textOf((db) => nodes.registerNode(db, "", 0, [])),
      ([machine, pid]) => {
        rows.last_id += 1;
        writer.put(alive, rows.last_id, { id: rows.last_id, machine, pid, seen_ms: universe.monotonic() });
        return [{ id: rows.last_id }];
      },
    ],
    [
      textOf((db) => nodes.heartbeat(db, 0)),
      ([id]) => {
        const node = alive.get(id);
        if (node) writer.change(node, { seen_ms: universe.monotonic() });
        return node ? 1 : 0;
      },
    ],
    [textOf((db) => nodes.lockLeases(db)), () => []],
    [
      textOf((db) => nodes.declareNodesDead(db, 0, [])),
      ([seconds, ids]) => {
        const limit = universe.monotonic() - seconds * 1000;
        const dead = [...alive.values()].filter((node) => node.seen_ms < limit || ids.includes(node.id));
        for (const { id } of dead) writer.drop(alive, id);
        return dead.map(({ id, machine }) => ({ id, machine }));
      },
    ],
    [
      textOf((db) => nodes.freeOrphans(db)),
      () => {
        const orphans = [...deliveries.values()].filter(({ owner }) => owner !== null && !alive.has(owner));
        for (const row of orphans) {
          writer.change(row, { owner: null });
          wake(rows, row.lane_id, row.due_at);
        }
        return orphans.length;
      },
    ],
    [
      textOf((db) => nodes.freeLeases(db)),
      () => {
        const free = [...leases.values()].filter(({ node_id }) => node_id !== null && !alive.has(node_id));
        for (const lease of free) writer.change(lease, { node_id: null });
        return free.length;
      },
    ],
    [textOf((db) => nodes.sendingNodes(db)), () => [...alive.values()].map((node) => ({ ...node }))],
    [
      textOf((db) => nodes.allLeases(db)),
      () => [...leases.values()].map((lease) => ({ source_id: SOURCE_ID, ...lease })),
    ],
    [
      textOf((db) => nodes.setLeases(db, 0, [])),
      ([node_id, , slots]) => {
        for (const lease of pick<number, { slot: number; node_id: number | null }>(leases, slots)) {
          writer.change(lease, { node_id });
        }
        return slots.length;
      },
    ],
    [
      textOf((db) => nodes.leaveNode(db, 0)),
      ([id]) => {
        writer.drop(alive, id);
        return 1;
      },
    ],
    [textOf((db) => pools.addressesOfNodes(db)), () => [...alive.values()].map(({ id }) => ({ id, addresses: [] }))],
  ];
}

/** What has no part in what is looked at: no relay, no policy of others, no webhook, statistics nobody reads. */
function quietStatements(): [string, Statement][] {
  const source = { id: SOURCE_ID, org_id: null, pool: null, ip: null, ehlo: null, warmup_started_at: null };
  const none = (text: string): [string, Statement] => [text, () => []];
  return [
    [textOf((db) => pools.allSources(db)), () => [{ ...source, removed_at: null, held_at: null }]],
    none(textOf((db) => pools.announceAddresses(db, 0, []))),
    none(textOf((db) => pools.addUsage(db, []))),
    none(textOf((db) => accounts.findNotActive(db))),
    none(textOf((db) => operate.findStanding(db))),
    none(textOf((db) => relays.findRelays(db, []))),
    none(textOf((db) => relays.findClosed(db, ""))),
    none(textOf((db) => relays.noteClosed(db, { machine: "", at: new Date(0), targets: [] }))),
    none(textOf((db) => relays.noteOpen(db, ""))),
    none(textOf((db) => policies.findStsPolicies(db, []))),
    none(textOf((db) => policies.storePolicyTexts(db, []))),
    none(textOf((db) => policies.addTlsResults(db, []))),
    none(textOf((db) => stats.addCounts(db, []))),
    none(textOf((db) => stats.addReasons(db, []))),
    none(textOf((db) => webhooks.holdSubscribers(db, [], [], new Date(0)))),
    none(textOf((db) => stream.findListeners(db, [], new Date(0)))),
  ];
}
