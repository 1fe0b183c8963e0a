// Where traces go, in OpenTelemetry's own variables: they are off unless an endpoint is set.
import type { TraceOptions } from "../platform/process/traces.ts";
import { isWebAddress, type Reading, withoutPassword } from "./values.ts";

const PATH = "/v1/traces";

/** True where no endpoint matters. */
export function tracesDisabled({ env }: Pick<Reading, "env">): boolean {
  return /^true$/i.test(env.OTEL_SDK_DISABLED ?? "");
}

/** `endpoint`: the one of the two variables that says where traces go. */
export type TraceSettings = TraceOptions & { endpoint: { variable: string; given: string } };

/** Null: no traces. */
export function traceOptions({ env, problems }: Reading): TraceSettings | null {
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const shared = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (tracesDisabled({ env })) return null;
  // Without an endpoint too: who sets it later is not to learn of them then.
  const read = {
    headers: headers(env.OTEL_EXPORTER_OTLP_HEADERS, problems),
    service_name: env.OTEL_SERVICE_NAME || "postern",
    share: share(env.OTEL_TRACES_SAMPLER_ARG, problems),
  };
  if (!own && !shared) return null;
  const [name, given] = own ? ["TRACES_ENDPOINT", own] : ["ENDPOINT", String(shared)];
  // Behind the shared one comes the path: a query or a fragment would swallow it.
  if (!isWebAddress(given) || (!own && /[?#]/.test(given))) {
    const shown = withoutPassword(given);
    problems.push(`OTEL_EXPORTER_OTLP_${name} is "${shown}"; write an address alone, such as http://127.0.0.1:4318.`);
  }
  if (env.OTEL_EXPORTER_OTLP_PROTOCOL === "grpc") {
    problems.push(
      "OTEL_EXPORTER_OTLP_PROTOCOL is grpc; Postern sends OTLP over HTTP: name the collector's port for that.",
    );
  }
  const url = own || `${given.replace(/\/+$/, "")}${PATH}`;
  return { url, endpoint: { variable: `OTEL_EXPORTER_OTLP_${name}`, given }, ...read };
}

function headers(text: string | undefined, problems: string[]): Record<string, string> {
  const pairs = (text ?? "").split(",").filter((pair) => pair.trim() !== "");
  const read = pairs.map((pair) => /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(.*?)\s*$/.exec(pair));
  if (read.includes(null))
    problems.push("OTEL_EXPORTER_OTLP_HEADERS holds something that is not a header; write name=value,name=value.");
  return Object.fromEntries(read.flatMap((found) => (found ? [[found[1], decoded(String(found[2]))]] : [])));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function share(text: string | undefined, problems: string[]): number {
  if (!text) return 1;
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : -1;
  if (value >= 0 && value <= 1) return value;
  problems.push(`OTEL_TRACES_SAMPLER_ARG is "${text}"; write the share of mails that are traced, from 0 to 1.`);
  return 1;
}
