// The model's rows of webhooks, and what each statement of the dispatchers and of the producers does to them.

import * as endpoints from "../../src/webhooks/queries.ts";
import * as queue from "../../src/webhooks/queue-queries.ts";
import * as stream from "../../src/webhooks/stream/stream-queries.ts";
import { type Statement, textOf } from "./database.ts";
import type { Sabotage } from "./outbound-rows.ts";
import { createWriter, type Writer } from "./rows.ts";
import type { Universe } from "./universe.ts";

const NEVER = Number.POSITIVE_INFINITY;

export type EndpointRow = {
  org_id: string;
  id: string;
  enabled: boolean;
  disabled_reason: string | null;
  disabled_at: Date | null;
};
export type LaneRow = { org_id: string; webhook_id: string; next_at: number; consecutive_failures: number };

export type QueueRow = {
  org_id: string;
  id: string;
  webhook_id: string;
  event_id: string;
  event: string;
  body_bytes: number;
  created_at: number;
  next_attempt_at: number;
  attempt: number;
  claim_id: string | null;
  lease_ms: number | null;
};

/** What was written of an attempt: under which claim, while which one held. */
export type Write = { id: string; claim_id: string; held: string | null; attempt: number; status: string };

export type WebhookRows = {
  writer: Writer;
  endpoints: Map<string, EndpointRow>;
  lanes: Map<string, LaneRow>;
  queue: Map<string, QueueRow>;
  bodies: Map<string, { org_id: string; id: string; body: Buffer }>;
  log: { id: string; status: string; attempt: number }[];
  writes: Write[];
};

export function createWebhookRows(): WebhookRows {
  const tables = { endpoints: new Map(), lanes: new Map(), queue: new Map(), bodies: new Map() };
  return { writer: createWriter(), ...tables, log: [], writes: [] };
}

const ms = (value: Date | number): number => (value instanceof Date ? value.getTime() : Number(value));

/** All statements of producers and dispatchers. */
export function webhookStatements(universe: Universe, rows: WebhookRows, sabotage: Sabotage): Map<string, Statement> {
  return new Map([
    ...producerStatements(rows),
    ...laneStatements(rows),
    ...claimStatements(universe, rows),
    ...outcomeStatements(rows, sabotage),
    ...closingStatements(rows),
  ]);
}

function pick<K, V>(table: Map<K, V>, keys: K[]): V[] {
  return keys.flatMap((key) => table.get(key) ?? []);
}

function firstDue(rows: WebhookRows, webhookId: string, isFree: boolean): number {
  let first = NEVER;
  for (const row of rows.queue.values()) {
    if (row.webhook_id === webhookId && (!isFree || row.claim_id === null))
      first = Math.min(first, row.next_attempt_at);
  }
  return first;
}

// --- producers --------------------------------------------------------------------------------------------------------

function producerStatements(rows: WebhookRows): [string, Statement][] {
  const { writer } = rows;
  return [
    [
      textOf((db) => queue.holdSubscribers(db, [], [], new Date(0))),
      ([orgIds, , at]) =>
        [...rows.endpoints.values()]
          .filter(({ org_id, enabled }) => orgIds.includes(org_id) && enabled)
          .map(({ org_id, id }) => ({
            ...{ org_id, id, event_types: ["email.delivered"], domain_id: null, match_pattern: null },
            sleeps: rows.lanes.get(id)!.next_at > ms(at),
          })),
    ],
    [textOf((db) => stream.findListeners(db, [], new Date(0))), () => []],
    [
      textOf((db) => queue.insertDeliveries(db, [], [], new Date(0))),
      ([at, bodyOrgs, bodyIds, , bodies, orgIds, ids, webhookIds, eventIds, events, sizes]) => {
        for (const [n, id] of bodyIds.entries()) {
          writer.put(rows.bodies, id, { org_id: bodyOrgs[n], id, body: bodies[n] });
        }
        for (const [n, id] of ids.entries()) {
          const names = { org_id: orgIds[n], id, webhook_id: webhookIds[n], event_id: eventIds[n], event: events[n] };
          const times = { created_at: ms(at), next_attempt_at: ms(at), attempt: 0, claim_id: null, lease_ms: null };
          writer.put(rows.queue, id, { ...names, body_bytes: sizes[n], ...times });
        }
        return ids.length;
      },
    ],
  ];
}

// --- lanes ------------------------------------------------------------------------------------------------------------

function laneStatements(rows: WebhookRows): [string, Statement][] {
  const { writer, lanes } = rows;
  const each = (ids: string[], next: (lane: LaneRow) => number): number => {
    for (const lane of pick(lanes, ids)) writer.change(lane, { next_at: next(lane) });
    return ids.length;
  };
  return [
    [textOf((db) => queue.holdLanes(db, [])), () => 0],
    [
      textOf((db) => queue.wakeLanes(db, [], new Date(0))),
      ([, ids, at]) => each(ids, ({ next_at }) => Math.min(next_at, ms(at))),
    ],
    [
      textOf((db) => queue.findDueLanes(db, new Date(0), [], 0)),
      ([at, except, limit]) =>
        [...lanes.values()]
          .filter(({ webhook_id, next_at }) => next_at <= ms(at) && !except.includes(webhook_id))
          .sort((a, b) => a.next_at - b.next_at)
          .slice(0, limit)
          .map((lane) => ({ ...lane, closed: rows.endpoints.get(lane.webhook_id)?.enabled !== true })),
    ],
    [
      textOf((db) => queue.requeueLanes(db, [], new Date(0))),
      ([, ids, at]) => each(ids, ({ next_at }) => (next_at < ms(at) - 1_000 ? ms(at) : next_at)),
    ],
    [
      textOf((db) => queue.lockQuietLanes(db, [])),
      ([, ids]) => pick<string, LaneRow>(lanes, ids).map(({ org_id, webhook_id }) => ({ org_id, webhook_id })),
    ],
    [
      textOf((db) => queue.sleepLanes(db, [])),
      ([, ids]) => each(ids, ({ webhook_id }) => firstDue(rows, webhook_id, true)),
    ],
    [textOf((db) => queue.oldestDue(db, new Date(0))), () => []],
    [
      textOf((db) => queue.healLanes(db)),
      () => each([...lanes.keys()], ({ webhook_id, next_at }) => Math.min(next_at, firstDue(rows, webhook_id, false))),
    ],
    [
      textOf((db) => queue.noteLanes(db, [])),
      ([, ids, succeeded, failures, nextAt]) => {
        for (const [n, id] of ids.entries()) {
          const lane = lanes.get(id);
          if (!lane) continue;
          const before = succeeded[n] === null ? lane.consecutive_failures : 0;
          const next_at = nextAt[n] === null ? lane.next_at : Math.min(lane.next_at, ms(nextAt[n]));
          writer.change(lane, { consecutive_failures: before + failures[n], next_at });
        }
        return ids.length;
      },
    ],
  ];
}

// --- claims -----------------------------------------------------------------------------------------------------------

function toClaimed({ lease_ms: _, next_attempt_at: __, ...row }: QueueRow) {
  return { ...row, created_at: new Date(row.created_at) };
}

function claimStatements(universe: Universe, rows: WebhookRows): [string, Statement][] {
  const { writer } = rows;
  return [
    [
      textOf((db) => queue.claimDeliveries(db, [], { id: "", at: new Date(0), lease_s: 0 })),
      ([, ids, counts, claim_id, at, leaseS]) => {
        const lease_ms = universe.monotonic() + leaseS * 1000;
        return ids.flatMap((id: string, n: number) => {
          const due = [...rows.queue.values()]
            .filter((row) => row.webhook_id === id && row.claim_id === null && row.next_attempt_at <= ms(at))
            .sort((a, b) => a.next_attempt_at - b.next_attempt_at)
            .slice(0, counts[n]);
          for (const row of due) writer.change(row, { claim_id, lease_ms });
          return due.map(toClaimed);
        });
      },
    ],
    [
      textOf((db) => queue.releaseDeliveries(db, [])),
      ([, ids, claims]) => {
        for (const [n, id] of ids.entries()) {
          const row = rows.queue.get(id);
          if (row?.claim_id === claims[n]) writer.change(row as QueueRow, { claim_id: null, lease_ms: null });
        }
        return ids.length;
      },
    ],
    [
      textOf((db) => queue.findExpiredClaims(db, 0)),
      ([limit]) =>
        [...rows.queue.values()]
          .filter(({ lease_ms }) => lease_ms !== null && lease_ms < universe.monotonic())
          .slice(0, limit)
          .map(toClaimed),
    ],
    [
      textOf((db) => endpoints.findEndpoints(db, [], [])),
      ([, ids]) =>
        pick<string, EndpointRow>(rows.endpoints, ids).map((endpoint) => ({
          ...{ ...endpoint, webhook_url: `https://${endpoint.id}.example/hook`, secret: null },
          ...{ previous_secret: null, previous_secret_expires_at: null },
        })),
    ],
    [textOf((db) => queue.findBodies(db, [], [])), ([, ids]) => pick(rows.bodies, ids)],
  ];
}

// --- outcomes ---------------------------------------------------------------------------------------------------------

function outcomeStatements(rows: WebhookRows, sabotage: Sabotage): [string, Statement][] {
  const { writer } = rows;
  /** The rows whose claim still holds, with the place of their outcome. */
  const held = (ids: string[], claims: string[]): [QueueRow, number][] =>
    ids.flatMap((id, n) => {
      const row = rows.queue.get(id);
      return row && (row.claim_id === claims[n] || sabotage.fence === "off") ? [[row, n] as [QueueRow, number]] : [];
    });
  const note = (row: QueueRow, claim_id: string, what: { attempt: number; status: string }): void =>
    writer.append(rows.writes, { id: row.id, claim_id, held: row.claim_id, ...what });
  return [
    [
      textOf((db) => queue.finishDeliveries(db, [])),
      (values) => {
        const [, ids, claims, attempts] = values;
        const mine = held(ids, claims);
        for (const [row, n] of mine) {
          const what = { attempt: attempts[n], status: values[9][n] };
          note(row, claims[n], what);
          writer.append(rows.log, { id: row.id, ...what });
          writer.drop(rows.queue, row.id);
        }
        return mine.length;
      },
    ],
    [
      textOf((db) => queue.retryDeliveries(db, [])),
      (values) => {
        const [, ids, claims, attempts] = values;
        const mine = held(ids, claims);
        for (const [row, n] of mine) {
          note(row, claims[n], { attempt: attempts[n], status: "retrying" });
          const next_attempt_at = ms(values[9][n]);
          writer.change(row, { attempt: attempts[n], next_attempt_at, claim_id: null, lease_ms: null });
        }
        return mine.length;
      },
    ],
    [
      textOf((db) => queue.disableGone(db, [], new Date(0))),
      ([, ids, at]) => {
        for (const endpoint of pick<string, EndpointRow>(rows.endpoints, ids)) {
          writer.change(endpoint, { enabled: false, disabled_reason: "gone", disabled_at: new Date(ms(at)) });
        }
        return ids.length;
      },
    ],
  ];
}

// --- closed endpoints -------------------------------------------------------------------------------------------------

function closingStatements(rows: WebhookRows): [string, Statement][] {
  const { writer, lanes } = rows;
  const lane = { org_id: "", webhook_id: "" };
  return [
    [
      textOf((db) => queue.findClosed(db, lane)),
      ([, id]) => pick<string, EndpointRow>(rows.endpoints, [id]).map((endpoint) => ({ ...endpoint })),
    ],
    [
      textOf((db) => queue.setLane(db, lane, new Date(0))),
      ([, id, at]) => {
        writer.change(lanes.get(id) as LaneRow, { next_at: ms(at) });
        return 1;
      },
    ],
    [
      textOf((db) => queue.failDeliveries(db, lane, { error: "", at: new Date(0), limit: 0 })),
      ([, id, , , limit]) => {
        const free = [...rows.queue.values()].filter((row) => row.webhook_id === id && row.claim_id === null);
        for (const row of free.slice(0, limit)) {
          writer.append(rows.log, { id: row.id, status: "failed", attempt: row.attempt });
          writer.drop(rows.queue, row.id);
        }
        return Math.min(limit, free.length);
      },
    ],
  ];
}
