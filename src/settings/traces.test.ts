import assert from "node:assert/strict";
import { test } from "node:test";
import { traceOptions } from "./traces.ts";

const read = (env: Record<string, string>) => {
  const problems: string[] = [];
  return { options: traceOptions({ env, problems }), problems };
};

test("traces are off unless an endpoint is set, and where the SDK is turned off", () => {
  assert.equal(read({}).options, null);
  assert.equal(read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_SDK_DISABLED: "TRUE" }).options, null);
});

test("the endpoint gets its path, and the one of traces is taken as it is", () => {
  assert.equal(read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/" }).options?.url, "http://c:4318/v1/traces");
  const both = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://t/own" };
  assert.equal(read(both).options?.url, "http://t/own");
});

test("headers, name and share are read", () => {
  const { options, problems } = read({
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_EXPORTER_OTLP_HEADERS: "a=1, authorization=Basic%20eA==" },
    ...{ OTEL_SERVICE_NAME: "mail", OTEL_TRACES_SAMPLER_ARG: "0.25" },
  });
  assert.deepEqual(options?.headers, { a: "1", authorization: "Basic eA==" });
  assert.deepEqual([options?.service_name, options?.share], ["mail", 0.25]);
  assert.deepEqual(problems, []);
});

test("a query behind the shared endpoint, where the path comes, is named, and that of traces may have one", () => {
  assert.equal(read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/?token=a" }).problems.length, 1);
  assert.deepEqual(read({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c:4318/x?token=a" }).problems, []);
});

test("what cannot be used is named", () => {
  const { problems } = read({
    ...{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    ...{ OTEL_EXPORTER_OTLP_HEADERS: "nothing", OTEL_TRACES_SAMPLER_ARG: "2" },
  });
  assert.deepEqual(
    problems.map((problem) => problem.split(" ")[0]),
    [
      ...["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER_ARG"],
      ...["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"],
    ],
  );
});

test("what cannot be used is named before an endpoint is set, too, and not where the SDK is turned off", () => {
  const wrong = { OTEL_EXPORTER_OTLP_HEADERS: "nothing", OTEL_TRACES_SAMPLER_ARG: "2" };
  assert.deepEqual(
    read(wrong).problems.map((problem) => problem.split(" ")[0]),
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_TRACES_SAMPLER_ARG"],
  );
  assert.deepEqual(read({ ...wrong, OTEL_SDK_DISABLED: "true" }).problems, []);
});

test("an endpoint of traces that is set to nothing is as if it were not set", () => {
  const { options } = read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "" });
  assert.equal(options?.url, "http://c:4318/v1/traces");
});
