// Traces: a collector hears of a mail from the request to the answer behind the final dot and to the webhook, in one trace whose
// id is the mail's, whichever process did it; and where no collector is named, nothing of the library is loaded.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { inheritedEnv } from "../support/inherited-env.ts";
import { type Scene, setScene } from "../support/scene.ts";
import { receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

type Value = { stringValue?: string; intValue?: number | string };
type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Value }[];
  status: { code?: number };
};
type Export = { resourceSpans: { resource: { attributes: Span["attributes"] }; scopeSpans: { spans: Span[] }[] }[] };

type Collector = { url: string; spans: Span[]; services: Set<string>; seen: string[]; server: Server };

/** As much of an OpenTelemetry collector as receives traces over HTTP. It is away for the first request. */
async function startCollector(): Promise<Collector> {
  const collector = { spans: [] as Span[], services: new Set<string>(), seen: [] as string[] };
  const server = createServer(async (request, response) => {
    const body = JSON.parse(String(await buffer(request))) as Export;
    collector.seen.push(
      `${request.method} ${request.url} ${request.headers["content-type"]} ${request.headers["x-tenant"]}`,
    );
    if (collector.seen.length === 1) return void response.writeHead(503, { "retry-after": "0" }).end();
    for (const { resource, scopeSpans } of body.resourceSpans) {
      collector.services.add(String(attribute(resource, "service.name")));
      collector.spans.push(...scopeSpans.flatMap(({ spans }) => spans));
    }
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { ...collector, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function attribute({ attributes }: Pick<Span, "attributes">, key: string): string | number | undefined {
  const value = attributes.find((one) => one.key === key)?.value;
  return value?.stringValue ?? value?.intValue;
}

describe("traces", () => {
  let collector: Collector;
  let s: Scene;

  before(async () => {
    collector = await startCollector();
    s = await setScene({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=mail%20team" },
    });
    receiveAt(s.dns, "recipient.example");
    await s.start(["api"]);
    await s.start(["mta", "hooks"], { POSTERN_INTERNAL: "127.0.0.1:0" });
    await addVerifiedDomain(s, s.dns, "sender.example");
    const hook = { url: `${s.receiver.url}/hook`, events: ["email.delivered"] };
    assert.equal((await s.ask("POST", "/v1/webhooks", hook)).status, 201);
  });
  after(async () => {
    await s?.close();
    collector?.server.closeAllConnections();
    collector?.server.close();
  });

  it("go from the request to the final dot to the webhook, over processes, although the collector was away", async () => {
    const mail = { from: "a@sender.example", to: ["secret@recipient.example"], subject: "Traced", text_body: "x" };
    const { status, body } = await s.ask("POST", "/v1/send", mail);
    assert.equal(status, 202);
    const trace = String(body.id).replaceAll("-", "");
    const own = () => collector.spans.filter(({ traceId }) => traceId === trace);
    await until(
      () => `three spans: ${JSON.stringify(collector.seen)}`,
      () => own().length >= 3,
    );
    const [accept, deliver, webhook] = ["accept", "deliver", "webhook"].map((name) =>
      own().find((span) => span.name === name),
    );
    assert.ok(
      accept && deliver && webhook,
      own()
        .map(({ name }) => name)
        .join(),
    );
    assert.equal(own().length, 3);
    assert.equal(accept.parentSpanId || undefined, undefined);
    assert.deepEqual([deliver.parentSpanId, webhook.parentSpanId], [accept.spanId, accept.spanId]);
    assert.equal(attribute(accept, "postern.email.id"), body.id);
    assert.equal(attribute(deliver, "postern.outcome"), "delivered");
    assert.equal(Number(attribute(deliver, "smtp.response.status_code")), 250);
    assert.equal(Number(attribute(webhook, "http.response.status_code")), 200);
    for (const span of own()) {
      assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano));
      assert.notEqual(span.status.code, 2);
    }
    assert.ok(BigInt(accept.startTimeUnixNano) <= BigInt(deliver.endTimeUnixNano));
    assert.ok(BigInt(deliver.endTimeUnixNano) <= BigInt(webhook.endTimeUnixNano));
    assert.ok(!JSON.stringify(collector.spans).includes("secret@"), "no addresses");
    assert.deepEqual([...new Set(collector.seen)], ["POST /v1/traces application/json mail team"]);
    assert.deepEqual([...collector.services], ["postern"]);
  });

  it("load nothing where no collector is named", () => {
    const program = `
      import { createRequire } from "node:module";
      const { buildWorld } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/world.ts"))});
      const { readConfig } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/config.ts"))});
      const world = buildWorld(readConfig(), console, "postgresql://postern@127.0.0.1:1/none");
      const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes("@opentelemetry/sdk-trace"));
      console.log(JSON.stringify([world.traces !== undefined, loaded.length > 0]));
      process.exit(0);`;
    const loads = (env: Record<string, string>) =>
      JSON.parse(
        execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
          env: { ...inheritedEnv(), POSTERN_DATA: s.dir, ...env },
        }).toString(),
      );
    assert.deepEqual(loads({}), [false, false]);
    assert.deepEqual(loads({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }), [true, true]);
    assert.deepEqual(loads({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SDK_DISABLED: "true" }), [false, false]);
  });
});
