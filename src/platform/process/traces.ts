// Traces for OpenTelemetry, sent as OTLP over HTTP: off unless OTEL_EXPORTER_OTLP_ENDPOINT is set, and then the library is not
// even loaded. A mail is one trace, and the trace's id is the mail's: so whichever process accepts, sends or tells of it adds
// to the same trace, after days and on another machine too, and nothing has to be kept for that. Which mails are traced follows
// from the id alone. Not here: what people see of a mail (its timeline, /v1/emails), and addresses, which no span holds.
import { request as askPlain } from "node:http";
import { request as askSecurely } from "node:https";
import { createRequire } from "node:module";
import type { Attributes, HrTime } from "@opentelemetry/api";
import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { ownVersion } from "../own-version.ts";
import type { Random } from "../random.ts";

export type TraceOptions = {
  url: string;
  headers: Record<string, string>;
  service_name: string;
  /** The share of all mails that is traced, from 0 to 1. */
  share: number;
};

export type TracedSpan = {
  name: string;
  /** `first`: the mail came to be; all others are below it. */
  place: "first" | "below";
  kind: "server" | "client" | "internal";
  ended_ms: number;
  duration_ms: number;
  attributes: Attributes;
  /** What went wrong. */
  error: string | null;
};

export type Traces = {
  /** Does nothing for mails that are not traced; never waits, never throws. What nobody takes in time is dropped. */
  add(mailId: string, span: TracedSpan): void;
  /** Sends what is left, for so long as that may take. */
  stop(): Promise<void>;
};

const SEND_EVERY_MS = 1_000;
const SEND_TIMEOUT_MS = 5_000;
/** How many spans may wait, of one kilobyte or less each. */
const WAITING_MAX = 8_192;
const SAMPLED = 1;
/** Values of OpenTelemetry's enumerations, whose module would have to be loaded for them. */
const KINDS = { internal: 0, server: 1, client: 2 };
const STATUS = { unset: 0, error: 2 };

/** Loads the library and begins to send in the background. */
export function createTraces(options: TraceOptions, random: Pick<Random, "bytes">): Traces {
  const require = createRequire(import.meta.url);
  const sdk = require("@opentelemetry/sdk-trace") as typeof import("@opentelemetry/sdk-trace");
  const otlp = require("@opentelemetry/exporter-trace-otlp-http") as { OTLPTraceExporter: typeof OTLPTraceExporter };
  const { resourceFromAttributes } = require("@opentelemetry/resources") as typeof import("@opentelemetry/resources");
  const api = require("@opentelemetry/api") as typeof import("@opentelemetry/api");
  const { url, headers } = options;
  const processor = new sdk.BatchSpanProcessor({
    exporter: new otlp.OTLPTraceExporter({ url, headers, timeoutMillis: SEND_TIMEOUT_MS }),
    maxQueueSize: WAITING_MAX,
    scheduledDelayMillis: SEND_EVERY_MS,
    exportTimeoutMillis: SEND_TIMEOUT_MS,
  });
  const sampler = new sdk.TraceIdRatioBasedSampler(options.share);
  const version = ownVersion();
  const around = {
    resource: resourceFromAttributes({ "service.name": options.service_name, "service.version": version }),
    instrumentationScope: { name: "postern", version },
  };
  return {
    add(mailId, span) {
      const ids = idsOf(mailId, span.place === "first" ? null : random.bytes(8).toString("hex"));
      const { decision } = sampler.shouldSample(api.ROOT_CONTEXT, ids.traceId);
      if (decision === sdk.SamplingDecision.RECORD_AND_SAMPLED) processor.onEnd({ ...around, ...written(ids, span) });
    },
    stop: () => processor.shutdown().catch(() => undefined),
  };
}

/** Why the collector takes no traces, as a clause, asked with none in it (for `postern doctor`); null where it takes them. */
export function collectorProblem({ url, headers }: Pick<TraceOptions, "url" | "headers">): Promise<string | null> {
  const ask = new URL(url).protocol === "https:" ? askSecurely : askPlain;
  return new Promise((resolve) => {
    const options = {
      method: "POST",
      agent: false,
      timeout: SEND_TIMEOUT_MS,
      headers: { ...headers, "content-type": "application/json" },
    };
    const request = ask(url, options, (response) => {
      response.resume();
      const status = Number(response.statusCode);
      resolve(status >= 200 && status < 300 ? null : `it answers ${status}`);
    });
    request.once("timeout", () => request.destroy(new Error(`no answer in ${SEND_TIMEOUT_MS / 1000} s`)));
    request.once("error", (error: NodeJS.ErrnoException) => resolve(error.message || String(error.code)));
    request.end('{"resourceSpans":[]}');
  });
}

type Ids = { traceId: string; first: string; own: string };

/** A UUID has as many bytes as a trace id; its last eight, which are random, are the id of the first span. */
function idsOf(mailId: string, own: string | null): Ids {
  const traceId = mailId.replaceAll("-", "");
  const first = traceId.slice(16);
  return { traceId, first, own: own ?? first };
}

function written(
  { traceId, first, own }: Ids,
  span: TracedSpan,
): Omit<ReadableSpan, "resource" | "instrumentationScope"> {
  const context = { traceId, spanId: own, traceFlags: SAMPLED };
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context,
    ...(own === first ? {} : { parentSpanContext: { ...context, spanId: first, isRemote: true } }),
    startTime: hrTime(span.ended_ms - span.duration_ms),
    endTime: hrTime(span.ended_ms),
    duration: hrTime(span.duration_ms),
    status: span.error === null ? { code: STATUS.unset } : { code: STATUS.error, message: span.error },
    attributes: span.attributes,
    ...{ links: [], events: [], ended: true },
    ...{ droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 },
  };
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
