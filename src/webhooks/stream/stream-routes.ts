// GET /v1/events: what would be posted to a webhook, read instead. As JSON, which may be waited for, or as a stream of
// server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { type Api, answers, Closed, Id, Named, Nullable, OneOf, Time } from "../../http/http.ts";
import { isUuid } from "../../platform/database/db.ts";
import { invalid, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { EVENT_TYPES, type WebhookEventType } from "../types.ts";
import { createEventStream, type EventStream, type Reading } from "./stream.ts";
import type { EventRow } from "./stream-queries.ts";

const WAIT_S_MAX = 30;
const PAGE = { minimum: 1, maximum: 100, default: 50 };
/** A comment in a silent stream: proxies take silence for an end. */
const BEAT_MS = 15_000;
/** A stream ends then, and its client connects again: over another connection, or to another process. */
const STREAM_MS = 5 * 60_000;
const RECONNECT_MS = 1_000;
/** The event and the time of a body stand within these. */
const HEAD_BYTES = 100;

const ReadEvent = Named(
  "ReadEvent",
  Type.Object({
    event_id: Id,
    event: OneOf(EVENT_TYPES),
    timestamp: Time,
    body: Type.String({ description: "An Event as JSON: the bytes of the webhook" }),
  }),
);
const EventList = Named(
  "EventList",
  Type.Object({
    events: Type.Array(ReadEvent, { description: "Oldest first" }),
    next: { ...Id, description: "The `after` of the next request" },
    gap_until: Nullable({ ...Time, description: "Events before it may be missing" }),
  }),
);

/** Mounts the reading of events. */
export function mountEvents(api: Api, world: World): void {
  const stream = createEventStream(world);
  api.addHook("preClose", async () => stream.stop());
  api.get(
    "/v1/events",
    {
      schema: {
        operationId: "listEvents",
        tags: ["Webhooks"],
        summary: "Read events, and wait for them",
        description:
          "For programs that no webhook can reach. Begins now without `after`. Events are kept from the first request to 7 days after the last. `Accept: text/event-stream` streams them under their ids (`Last-Event-ID` goes before `after`; some may come twice); an event `gap` stands for `gap_until`. A test key reads those of test mail.",
        querystring: Closed({
          after: Type.Optional({ ...Id, description: "The last event read" }),
          types: Type.Optional(Type.String({ maxLength: 200, description: "Only these events, separated by commas" })),
          wait: Type.Optional(
            Type.Integer({
              minimum: 0,
              maximum: WAIT_S_MAX,
              default: 0,
              description: "Seconds to wait for one",
            }),
          ),
          limit: Type.Optional(Type.Integer(PAGE)),
        }),
        response: answers({ 200: EventList }),
      },
    },
    async (request, reply) => {
      const { wait = 0, limit = PAGE.default } = request.query;
      const signal = untilGone(reply.raw);
      if (request.method === "GET" && /\btext\/event-stream\b/i.test(request.headers.accept ?? "")) {
        return sendStream(world, reply, { stream, request, signal });
      }
      const limits = { limit, waitMs: wait * 1_000, signal };
      const { events, next, gap_until } = await stream.read(request.account.org_id, readingOf(request), limits);
      // The right to what came may be gone by then.
      if (wait > 0) await request.askAgain();
      return { events: events.map(toRead), next, gap_until };
    },
  );
}

type Query = { after?: string; types?: string };

function readingOf(request: FastifyRequest): Reading {
  const { after, types } = request.query as Query;
  // A reader that connects again asks for the same URL, with where it was in the header.
  const last = String(request.headers["last-event-id"] ?? "").toLowerCase() || undefined;
  if (last !== undefined && !isUuid(last)) throw invalid("Last-Event-ID", "the 'Last-Event-ID' header must be a UUID");
  return {
    after: last ?? after,
    types: types === undefined ? undefined : types.split(",").map((name) => toType(name.trim())),
    environments: request.account.acts_on_live ? ["live", "test"] : ["test"],
  };
}

function toType(name: string): WebhookEventType {
  const found = EVENT_TYPES.find((type) => type === name);
  if (!found)
    throw invalid("types", `the 'types' query parameter knows no event '${name}': they are ${EVENT_TYPES.join(", ")}`);
  return found;
}

/** Aborts when the client has gone. */
function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  return gone.signal;
}

/** The body as text, since JSON that is parsed and written again may be other bytes. It begins with its event and its time. */
function toRead({ id, event, body }: EventRow) {
  const [, timestamp = ""] = /"timestamp":"([^"]+)"/.exec(body.toString("latin1", 0, HEAD_BYTES)) ?? [];
  return { event_id: id, event, timestamp, body: body.toString() };
}

/** False once the key was revoked, the session ended or the role changed: the client connects again, and its next answer says why. */
async function mayStill(request: FastifyRequest): Promise<boolean> {
  const { acts_on_live } = request.account;
  try {
    await request.askAgain();
    return request.account.acts_on_live === acts_on_live;
  } catch (err) {
    if (err instanceof Refusal) return false;
    throw err;
  }
}

type Streaming = { stream: EventStream; request: FastifyRequest; signal: AbortSignal };

async function sendStream(world: World, reply: FastifyReply, { stream, request, signal }: Streaming) {
  const { raw } = reply;
  const orgId = request.account.org_id;
  const limits = { limit: PAGE.maximum, waitMs: BEAT_MS, signal, has_place: true };
  // Before the head is out, so that a refusal is an answer like any other.
  const leave = stream.enter(orgId);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  let batch = await stream.read(orgId, readingOf(request), { ...limits, waitMs: 0 });
  reply.hijack();
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  raw.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  // An id without an event is where the reader is: it goes on there when the connection is lost before the first event.
  const start = batch.events.length === 0 ? `id: ${batch.next}\n` : "";
  raw.write(`retry: ${RECONNECT_MS}\n${start}\n`);
  if (batch.gap_until !== null) raw.write(`event: gap\ndata: ${JSON.stringify({ until: batch.gap_until })}\n\n`);
  const until = world.clock.monotonic() + STREAM_MS;
  try {
    while (!signal.aborted) {
      for (const { id, event, body } of batch.events) {
        raw.write(`id: ${id}\nevent: ${event}\ndata: `);
        raw.write(body);
        if (!raw.write("\n\n")) await once(raw, "drain", { signal });
      }
      if (world.clock.monotonic() >= until || stream.isStopped()) break;
      batch = await stream.read(orgId, { ...readingOf(request), after: batch.next }, limits);
      if (!(await mayStill(request))) break;
      if (batch.events.length === 0) raw.write(": nothing new\n\n");
    }
  } catch (err) {
    // The client connects again and goes on where it was.
    if (!signal.aborted) world.log.warn({ err }, "a stream of events ended early");
  }
  raw.end();
  return reply;
}
