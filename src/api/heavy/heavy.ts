// Which requests are not done on the thread that everybody shares: large bodies, bodies with much in them, operations that
// take long by their nature, and all of an organization that used up its part of the shared thread. They go, as they are, to
// the process for heavy requests, some of each organization in turn. Who used up its part of that one too is answered 429.
// Not here: that process (heavy-process.ts), and what such a request does.
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Api } from "../../http/http.ts";
import { createFairPlaces } from "../../platform/fair/fair-gate.ts";
import { type ProcessorWorld, processorShares } from "../../platform/fair/processor-shares.ts";
import { freeBytes } from "../../platform/process/free-bytes.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { JsonCounts } from "../body/count-json.ts";
import type { Reading } from "../body/json-body.ts";
import { bodyTooLarge } from "../body/too-large.ts";
import type { Judged } from "../compile-schemas.ts";
import type { HeavyProcess } from "./heavy-process.ts";

/** Larger bodies are gathered and handed over unread, but where their route says otherwise (`light_bytes_max`). */
const LIGHT_BYTES_MAX = 256 * 1024;
/** What a body read here may hold: members and elements, and tags, entities and escapes in its texts. */
const LIGHT_VALUES_MAX = 5_000;
const LIGHT_MARKS_MAX = 20_000;
/** Requests in the process at once, and those of an organization that wait. */
const PLACES = { places: 8, waiting_max: 64 };
const PIECE_BYTES = 256 * 1024;
const METHODS = new Set(["POST", "PUT", "PATCH"]);
/** Headers that belong to the connection and not to the answer, and those that this thread has set already. */
const OWN_HEADERS = /^(connection|keep-alive|transfer-encoding|content-length|date|x-request-id|ratelimit-.*)$/;

/** True if a body with these counts holds more than may be read on this thread. */
function isMuch({ values, marks }: JsonCounts): boolean {
  return values > LIGHT_VALUES_MAX || marks > LIGHT_MARKS_MAX;
}

/** Charges organizations for what this thread did with their bodies. */
export type Charging = Reading & {
  /** The validators have just been called for this request, and nothing came between. */
  judged(request: FastifyRequest): void;
};

export function chargingOf(world: ProcessorWorld, validators: Judged): Charging {
  const shares = processorShares(world);
  const spent: Charging["spent"] = ({ account }, took) => account && shares.spendHere(account.org_id, took);
  return {
    isHeavy(request, counts) {
      request.isHeavy = request.account !== undefined && isMuch(counts);
      return request.isHeavy;
    },
    spent,
    judged: (request) => spent(request, validators.take()),
  };
}

type Diverting = { heavy: HeavyProcess; charging: Charging };

/** Installs it for all routes of `app`, behind authentication and the room for bodies. Null: all requests are done here. */
export function divertHeavy(app: Api, world: ProcessorWorld, diverting: Diverting | null): void {
  if (diverting === null) return void app.decorateRequest("aside", null);
  const { heavy, charging } = diverting;
  const places = createFairPlaces(PLACES);
  const shares = processorShares(world);
  const diverted = world.metrics.counter("postern_heavy_requests_total", "Requests done in the process for heavy ones");
  const used = world.metrics.counter(
    "postern_heavy_processor_seconds_total",
    "Processor time that the process for heavy requests took for them",
  );

  function refuseIfOver(orgId: string): void {
    const waitMs = shares.waitMs(orgId, "aside");
    if (waitMs > 0) throw overProcessor(waitMs, shares.used(orgId, "aside"));
  }

  async function answerAside(request: FastifyRequest, reply: FastifyReply, pieces: Pieces): Promise<FastifyReply> {
    const { org_id } = request.account;
    refuseIfOver(org_id);
    const gone = new AbortController();
    reply.raw.once("close", () => gone.abort());
    const leave = await places.enter(org_id, gone.signal);
    if (!leave) throw new Refusal("unavailable", "too many of your large requests are under way; try again shortly");
    try {
      diverted.inc();
      const { id, method, url, headers, ip, account } = request;
      const answer = await heavy.ask({ id, method, url, headers: { ...headers }, ip, account }, pieces);
      shares.spendAside(org_id, answer.processor_ms);
      used.inc(answer.processor_ms / 1000);
      reply.code(answer.status);
      for (const [name, value] of Object.entries(answer.headers)) {
        if (!OWN_HEADERS.test(name) && value !== undefined) reply.header(name, value);
      }
      const { buffer, byteOffset, length } = answer.body;
      return reply.send(Buffer.from(buffer, byteOffset, length));
    } finally {
      leave();
    }
  }

  app.addHook("preParsing", async (request, reply, payload) => {
    if (!isDivertible(request)) return payload;
    const isHeavy = request.routeOptions.config.heavy === true || shares.waitMs(request.account.org_id, "here") > 0;
    if (!isHeavy && isSmall(request)) return payload;
    // Before it is gathered: 24 MiB of a body that will be refused cost the shared thread as much as any other.
    if (isHeavy || announcesMuch(request)) refuseIfOver(request.account.org_id);
    const { pieces, bytes } = await gather(request, payload as Readable);
    const isLight = !isHeavy && bytes <= lightBytesMax(request);
    if (isLight) return Readable.from(pieces.map((piece) => Buffer.from(piece.buffer)));
    await answerAside(request, reply, pieces);
    return reply as never;
  });
  app.addHook("preValidation", async (request, reply) => {
    if (!request.isHeavy) return;
    await answerAside(request, reply, piecesOf(request));
    return reply;
  });
  app.decorateRequest("aside", function aside(this: FastifyRequest, reply: FastifyReply) {
    return answerAside(this, reply, piecesOf(this));
  });
  app.addHook("preHandler", (request, _reply, done) => {
    charging.judged(request);
    done();
  });
}

function overProcessor(waitMs: number, { used_ms, limit_ms }: { used_ms: number; limit_ms: number }): Refusal {
  const retry_after_seconds = Math.ceil(waitMs / 1000);
  return new Refusal(
    "rate_limit_exceeded",
    "your requests took more processor time than one organization may have; send smaller ones, or fewer at once",
    {
      retry_after_seconds,
      body: { limit_type: "processor_time", limit: limit_ms, used: used_ms, retry_after_seconds, warming_phase: "" },
    },
  );
}

/** With a key, and with a body in JSON, or of a route that takes long with any. */
function isDivertible(request: FastifyRequest): boolean {
  const { config } = request.routeOptions;
  if (!request.account || !METHODS.has(request.method)) return false;
  return config.heavy === true || /^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "");
}

function isSmall(request: FastifyRequest): boolean {
  const { headers } = request;
  if (headers["content-length"] === undefined) return headers["transfer-encoding"] === undefined;
  return !announcesMuch(request);
}

function announcesMuch(request: FastifyRequest): boolean {
  return Number(request.headers["content-length"] ?? 0) > lightBytesMax(request);
}

function lightBytesMax({ routeOptions }: FastifyRequest): number {
  return routeOptions.config.light_bytes_max ?? LIGHT_BYTES_MAX;
}

type Pieces = Uint8Array<ArrayBuffer>[];

/** A JSON body that was read here. */
function piecesOf({ rawBody }: FastifyRequest): Pieces {
  return rawBody === null ? [] : [new Uint8Array(rawBody)];
}

/** The body in pieces of its own memory, whatever came together on the wire; no more than its route takes. */
async function gather(request: FastifyRequest, payload: Readable): Promise<{ pieces: Pieces; bytes: number }> {
  const bytesMax = request.routeOptions.bodyLimit ?? Number.POSITIVE_INFINITY;
  // What the multipart plugin reads is counted by those who read it (load.ts).
  const isCountedHere = payload === request.raw && /^\s*multipart\//i.test(request.headers["content-type"] ?? "");
  const pieces: Pieces = [];
  let open: { piece: Uint8Array<ArrayBuffer>; filled: number } | null = null;
  let bytes = 0;
  for await (const chunk of payload as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (isCountedHere) request.holdBytes(chunk.length);
    if (bytes > bytesMax) throw bodyTooLarge(request);
    for (let at = 0; at < chunk.length; ) {
      open ??= { piece: new Uint8Array(PIECE_BYTES), filled: 0 };
      const taken = chunk.subarray(at, at + PIECE_BYTES - open.filled);
      open.piece.set(taken, open.filled);
      open.filled += taken.length;
      at += taken.length;
      if (open.filled < PIECE_BYTES) continue;
      pieces.push(open.piece);
      open = null;
    }
    freeBytes(chunk);
  }
  if (open) pieces.push(open.piece.slice(0, open.filled));
  return { pieces, bytes };
}
