// Back-pressure at the HTTP door: bodies under way are counted as they arrive, until their requests are answered, and what
// would be too many bytes is answered 503 with Retry-After; so is every change while the disk or the memory is short.
// Reading goes on. Not here: what one request may send (the routes' limits), how many an organization may (rates.ts).
import { PassThrough, type Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import type { Api } from "../platform/http.ts";
import type { Pressure } from "../platform/pressure.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";

const MIB = 1024 * 1024;
/** A body costs about four times its size while it becomes a message: 128 MiB are half a GiB at most. */
const BYTES_MAX = 128 * MIB;
/** Bodies up to this are counted by what they announce; they may use all of the room, larger ones leave a quarter free. */
const SMALL_BYTES = 64 * 1024;
const LARGE_SHARE = 0.75;
const RETRY_AFTER_S = { bytes: 1, disk: 30, memory: 5 };
const CHANGES = new Set(["POST", "PUT", "PATCH"]);

const SHORT = {
  disk: "there is no room on the disk at the moment; try again later",
  memory: "there is not enough memory at the moment; try again shortly",
};

/** Installs it for all routes of `app`. `bytes_max` is for tests. */
export function limitLoad(
  app: Api,
  world: Pick<World, "metrics">,
  pressure: Pick<Pressure, "shortage"> | null,
  bytesMax: number = BYTES_MAX,
): void {
  const held = new WeakMap<FastifyRequest, number>();
  let total = 0;
  const gauge = world.metrics.gauge("postern_body_bytes", "Bytes of request bodies that are being worked on");
  const shed = world.metrics.counter("postern_shed_total", "Requests that were put off", ["why"]);

  function hold(request: FastifyRequest, bytes: number): void {
    held.set(request, (held.get(request) ?? 0) + bytes);
    total += bytes;
    gauge.set(total);
  }

  function release(request: FastifyRequest): void {
    const bytes = held.get(request);
    if (bytes === undefined) return;
    held.delete(request);
    total -= bytes;
    gauge.set(total);
  }

  function refuse(why: keyof typeof RETRY_AFTER_S, message: string): Refusal {
    shed.inc({ why });
    return new Refusal("unavailable", message, { retry_after_seconds: RETRY_AFTER_S[why] });
  }

  const full = () => refuse("bytes", "too many large requests are under way; try again shortly");

  app.addHook("onRequest", async (request) => {
    if (!CHANGES.has(request.method)) return;
    const short = pressure?.shortage() ?? null;
    if (short) throw refuse(short, SHORT[short]);
  });
  app.addHook("preParsing", async (request, _reply, payload) => {
    const announced = announcedBytes(request);
    if (announced !== null && (announced <= SMALL_BYTES || isForm(request))) {
      if (total + announced > bytesMax) throw full();
      hold(request, announced);
      return payload;
    }
    if (total > bytesMax * LARGE_SHARE) throw full();
    return counted(payload, (bytes) => {
      hold(request, bytes);
      return total <= bytesMax ? null : full();
    });
  });
  app.addHook("onResponse", async (request) => release(request));
  app.addHook("onRequestAbort", async (request) => release(request));
}

function announcedBytes({ headers }: FastifyRequest): number | null {
  if (headers["content-length"] !== undefined) return Number(headers["content-length"]) || 0;
  return headers["transfer-encoding"] === undefined ? 0 : null;
}

/** Forms are read piece by piece from the socket itself, under the limits of their routes. */
function isForm({ headers }: FastifyRequest): boolean {
  return headers["content-type"]?.startsWith("multipart/") === true;
}

/** Passes the body on, telling of each piece; a refusal ends it. */
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
  payload.on("data", pass);
  passed.on("close", () => payload.off("data", pass).resume());
  passed.on("drain", () => payload.resume());
  payload.on("end", () => passed.end());
  payload.on("error", (error) => passed.destroy(error));
  return passed;
}
