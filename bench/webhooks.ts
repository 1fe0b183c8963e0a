// Webhook calls a second of one process with the role `hooks`: what it finds in the queue when it starts, read, signed, posted over
// TLS to a receiver that answers at once, and recorded. Counted at the receiver, each event and endpoint once; what the start and
// the first calls cost is left out.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SIGNATURE_HEADER, verify } from "../clients/node/src/postern.ts";
import { freePort } from "../test/support/free-port.ts";
import { ask, startPostern } from "../test/support/postern-process.ts";
import { makeCertificateAuthority } from "../test/support/tls.ts";
import { until } from "../test/support/until.ts";
import { startWebhookSink } from "../test/support/webhook-sink.ts";
import { type BenchResult, conditions, fillIn, round, routeToSink, type Stage, setStage } from "./support/bench.ts";
import { postMany, sendBody } from "./support/load.ts";
import { processorSeconds } from "./support/processor.ts";

const ENDPOINTS = 20;
const COUNT = 1_500;
/** The share of the calls that comes first and is not measured. */
const WARM = 0.1;
const CONNECTIONS = 32;
const WITHIN_MS = 120_000;
const VERIFIED = 20;

/** Runs the benchmark; `rows` are the events, each of which goes to every endpoint. */
export async function benchWebhooks({ rows = COUNT }: { rows?: number } = {}): Promise<BenchResult> {
  await using undo = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "postern-webhooks-bench-"));
  undo.defer(() => rmSync(dir, { recursive: true, force: true }));
  const authority = makeCertificateAuthority(dir);
  const receiver = undo.adopt(await startWebhookSink({ tls: authority.issue(["localhost"]) }), (sink) => sink.stop());
  const stage = await setStage([["api", "mta", "clock"]], { NODE_EXTRA_CA_CERTS: authority.ca_file });
  undo.defer(() => stage.close());
  routeToSink(stage.dns, "customer.example");
  const secret = await makeEndpoints(stage, receiver.url);
  await makeEvents(stage, rows);

  const calls = rows * ENDPOINTS;
  const seen = new Set<string>();
  let toVerify = VERIFIED;
  receiver.respond(({ path, headers, body }) => {
    if (path === "/0" && toVerify-- > 0) verify(body, String(headers[SIGNATURE_HEADER.toLowerCase()]), secret);
    seen.add(`${path} ${JSON.parse(body.toString()).event_id}`);
    receiver.requests.length = 0;
    return { status: 200 };
  });
  const places = { POSTERN_INTERNAL: "127.0.0.1:0", POSTERN_HTTP: `127.0.0.1:${await freePort()}` };
  const hooks = await startPostern(stage.settings, ["hooks"], places);
  undo.defer(async () => {
    await hooks.stop();
  });
  const used = () => ({ postern: processorSeconds([hooks.pid]), database: stage.processor().database });
  const arrived = (share: number) => until("the calls arrive", () => seen.size >= calls * share, WITHIN_MS);
  await arrived(WARM);
  const [first, before, startedAt] = [seen.size, used(), performance.now()];
  await arrived(1);
  const [count, after, seconds] = [seen.size - first, used(), (performance.now() - startedAt) / 1000];
  return {
    name: "webhooks",
    conditions: conditions({ events: rows, endpoints: ENDPOINTS, connections: receiver.connections() }, stage),
    ours: {
      per_s: round(count / seconds),
      postern_processor_us: round(((after.postern - before.postern) * 1e6) / count),
      database_processor_us: round(((after.database - before.database) * 1e6) / count),
    },
    peers: {},
    ratio: {},
  };
}

/** Answers the secret of the first one. */
async function makeEndpoints({ settings }: Stage, url: string): Promise<string> {
  const made: string[] = [];
  for (let n = 0; n < ENDPOINTS; n += 1) {
    const { status, body } = await ask(settings, "POST", "/v1/webhooks", {
      url: `${url}/${n}`,
      events: ["email.delivered"],
    });
    if (status !== 201) throw new Error(`no webhook was made: ${JSON.stringify(body)}`);
    made.push(String((body.webhook as unknown as { secret?: string }).secret ?? body.secret));
  }
  return made[0] as string;
}

/** Mails to the sink, until every event of theirs waits for its calls. */
async function makeEvents(stage: Stage, count: number): Promise<void> {
  const { settings, domain, sink, database_url } = stage;
  const load = await postMany({
    ...{ base_url: settings.base_url, path: "/v1/send", key: settings.live_key, count, connections: CONNECTIONS },
    body: (n) => sendBody(`orders@${domain}`, `customer${n}@customer.example`, n),
  });
  if (load.accepted !== count) throw new Error(`not all were accepted: ${JSON.stringify([...load.refused])}`);
  await sink.waitFor(count);
  await fillIn(database_url, (db) =>
    until(
      "every event waits for its calls",
      async () =>
        (await db.query<{ n: number }>("select count(*)::int as n from webhook_queue"))[0]?.n === count * ENDPOINTS,
      WITHIN_MS,
    ),
  );
}
