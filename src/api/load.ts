// Back-pressure at the HTTP door: bodies under way are counted as they arrive, until their requests are answered, and what
// would be too many bytes is answered 503 with Retry-After; so is every change while the disk or the memory is short.
// Reading goes on. What only announces itself takes no room; what announces more than its route takes is refused before
// it comes. Not here: how many requests an organization may send (rates.ts).
import { PassThrough, type Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import type { Account, Api } from "../http/http.ts";
import { clientKey } from "../mail/smtp-server/client-limits.ts";
import type { Pressure } from "../platform/process/pressure.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { createBodyRoom, type Share } from "./body/body-room.ts";
import { bodyTooLarge } from "./body/too-large.ts";

const MIB = 1024 * 1024;
/** A body costs about four times its size while it becomes a message: 128 MiB are half a GiB at most. */
const BYTES_MAX = 128 * MIB;
/** Bodies that announce up to this may use all of the room, larger ones leave a quarter free. */
const SMALL_BYTES = 64 * 1024;
const LARGE_SHARE = 0.75;
/**
 * The share of the room for one organization: any request that a route takes fits, and large ones of others beside it.
 */
const ORGANIZATION_SHARE = 1 / 2;
/** Without a key nothing larger than 1 MiB is taken: for one client address, and for all of them. */
const CLIENT_SHARE = 1 / 16;
const KEYLESS_SHARE = 1 / 4;
const RETRY_AFTER_S = { bytes: 1, share: 1, disk: 30, memory: 5 };
const CHANGES = new Set(["POST", "PUT", "PATCH"]);
/** Nobody reads their bodies: Node lets them go by when the answer is out. */
const BODILESS = new Set(["GET", "HEAD", "TRACE"]);

const SENTENCES = {
  bytes: "too many large requests are under way; try again shortly",
  share: "too many of your large requests are under way; try again shortly",
  disk: "there is no room on the disk at the moment; try again later",
  memory: "there is not enough memory at the moment; try again shortly",
};

type Why = keyof typeof SENTENCES;

/** Installs it for all routes of `app`, behind authentication. `bytesMax` is for tests. */
export function limitLoad(
  app: Api,
  world: Pick<World, "metrics">,
  pressure: Pick<Pressure, "shortage"> | null,
  bytesMax: number = BYTES_MAX,
): void {
  const gauge = world.metrics.gauge("postern_body_bytes", "Bytes of request bodies that are being worked on");
  const shed = world.metrics.counter("postern_shed_total", "Requests that were refused for now", ["why"]);
  const room = createBodyRoom(bytesMax, (bytes) => gauge.set(bytes));
  const reading = new WeakMap<FastifyRequest, Readable>();

  function refuse(why: Why): Refusal {
    shed.inc({ why });
    return new Refusal("unavailable", SENTENCES[why], { retry_after_seconds: RETRY_AFTER_S[why] });
  }

  function take(request: FastifyRequest, bytes: number): Refusal | null {
    const tooMuchFor = room.hold(request, bytes, sharesOf(request, bytesMax));
    if (tooMuchFor === null) return null;
    return refuse(tooMuchFor === "room" ? "bytes" : "share");
  }

  function release(request: FastifyRequest): void {
    room.release(request);
    // Of a body that nobody read to its end the rest goes by, so that the connection can be used again.
    reading.get(request)?.destroy();
  }

  app.decorateRequest("holdBytes", function holdBytes(this: FastifyRequest, bytes: number) {
    const refusal = take(this, bytes);
    if (refusal) throw refusal;
  });
  app.addHook("onRequest", async (request) => {
    if (!CHANGES.has(request.method)) return;
    const short = pressure?.shortage() ?? null;
    if (short) throw refuse(short);
  });
  app.addHook("preParsing", async (request, _reply, payload) => {
    const announced = announcedBytes(request);
    if (announced === 0 || BODILESS.has(request.method)) return payload;
    const isSmall = announced !== null && announced <= SMALL_BYTES;
    if (announced !== null && announced > (request.routeOptions.bodyLimit ?? Number.POSITIVE_INFINITY))
      throw bodyTooLarge(request);
    if (!isSmall && room.total() > bytesMax * LARGE_SHARE) throw refuse("bytes");
    if (isReadInParts(request)) return payload;
    // Reading what would be refused on its way costs as much as reading any other.
    if (!isSmall && announced !== null && !room.hasRoomFor(announced, sharesOf(request, bytesMax)))
      throw refuse("share");
    // Most small bodies came with their heads and are here already: nothing need stand between.
    if (isSmall && payload.readableLength >= announced) {
      const refusal = take(request, announced);
      if (refusal) throw refusal;
      return payload;
    }
    const passed = counted(payload, (bytes) => take(request, bytes));
    reading.set(request, passed);
    return passed;
  });
  app.addHook("onResponse", async (request) => release(request));
  app.addHook("onRequestAbort", async (request) => release(request));
}

/** Whose bytes they are: an organization's, or without a key those of a client and of everybody without one. */
function sharesOf(request: FastifyRequest, bytesMax: number): Share[] {
  const account = request.account as Account | undefined;
  if (account) return [{ name: `organization ${account.org_id}`, bytes_max: bytesMax * ORGANIZATION_SHARE }];
  return [
    { name: `client ${clientKey(request.ip)}`, bytes_max: bytesMax * CLIENT_SHARE },
    { name: "without a key", bytes_max: bytesMax * KEYLESS_SHARE },
  ];
}

/** Null when it does not say (RFC 9112 §7.1). */
function announcedBytes({ headers }: FastifyRequest): number | null {
  if (headers["content-length"] !== undefined) return Number(headers["content-length"]) || 0;
  return headers["transfer-encoding"] === undefined ? 0 : null;
}

/**
 * The multipart plugin reads the socket's own stream, whatever a hook puts in its place, and later: nobody may listen to
 * that before. The routes that have the plugin count the pieces of a file themselves (`request.holdBytes`).
 */
function isReadInParts(request: FastifyRequest): boolean {
  return "isMultipart" in request && /^\s*multipart\/form-data\s*(;|$)/i.test(request.headers["content-type"] ?? "");
}

/** Passes the body on, telling of each piece; a refusal ends it. Who reads it may begin later, or not at all. */
function counted(payload: Readable, take: (bytes: number) => Refusal | null): Readable {
  const passed = new PassThrough();
  const pass = (piece: Buffer): void => {
    const refusal = take(piece.length);
    if (refusal) {
      // What still comes is not wanted and not counted.
      payload.off("data", pass).resume();
      passed.destroy(refusal);
    } else if (!passed.write(piece)) payload.pause();
  };
  // An error before somebody reads is found by who reads then; without a listener it would end the process.
  passed.on("error", () => undefined);
  payload.on("data", pass);
  passed.on("close", () => payload.off("data", pass).resume());
  passed.on("drain", () => payload.resume());
  payload.on("end", () => passed.end());
  payload.on("error", (error) => passed.destroy(error));
  return passed;
}
