// Heavy requests are done in a process of their own: what they answer and leave behind is what they would have here.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { getPriority } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createHttpServer, type HttpServer } from "../../src/api/server.ts";
import { mountFeatures, mountOpenRoutes } from "../../src/app.ts";
import { processorShares } from "../../src/platform/fair/processor-shares.ts";
import type { World } from "../../src/platform/world.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const HEAVY_WORKER = new URL("../../src/heavy-worker.ts", import.meta.url);
const KIB = 1024;
const CHILDREN = `/proc/self/task/${process.pid}/children`;
const PROC_IS_THERE = existsSync(CHILDREN);

let api: TestApi;
let dns: DnsServer;
let server: HttpServer;
let base_url: string;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  await addVerifiedDomain(api, dns, "example.eu");
  server = await serverOver(api.world);
  base_url = await server.listen();
});
after(async () => {
  await server.stop();
  await api.close();
  await dns.stop();
});

/** Of this world, on any port, with a process for heavy requests. */
function serverOver(world: World): Promise<HttpServer> {
  const config = { ...world.config, http: { host: "127.0.0.1", port: 0 } };
  return createHttpServer(
    { ...world, config },
    (routes) => mountFeatures(routes, api.world, api.engine),
    (routes) => mountOpenRoutes(routes, api.world, api.engine),
    { heavy_worker: HEAVY_WORKER },
  );
}

type Asked = { status: number; headers: Headers; body: Record<string, unknown> };

async function post(path: string, body: unknown, headers: Record<string, string> = {}, to = base_url): Promise<Asked> {
  const isForm = body instanceof FormData;
  const response = await fetch(to + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${api.live_key}`,
      ...(isForm ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: isForm || typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as never };
}

/** How many requests went to the other process while `work` went on. */
async function handedOver<T>(work: () => Promise<T>): Promise<{ count: number; result: T }> {
  const read = async () =>
    Number(/^postern_heavy_requests_total (\d+)$/m.exec(await api.world.metrics.text())?.[1] ?? 0);
  const before = await read();
  const result = await work();
  return { count: (await read()) - before, result };
}

function mail(fields: object = {}) {
  return { from: "a@example.eu", to: ["b@recipient.example"], subject: "Hi", text_body: "x", ...fields };
}

test("a small send is done here, a large one in the other process, with the same answer and the same record", async () => {
  const light = await handedOver(() => post("/v1/send", mail()));
  assert.deepEqual([light.count, light.result.status], [0, 202]);
  const heavy = await handedOver(() => post("/v1/send", mail({ text_body: "word ".repeat(60 * KIB) })));
  assert.deepEqual([heavy.count, heavy.result.status], [1, 202]);
  assert.deepEqual(Object.keys(heavy.result.body), Object.keys(light.result.body));
  assert.equal(heavy.result.headers.get("ratelimit-limit"), light.result.headers.get("ratelimit-limit"));
  const record = await api.ask("GET", `/v1/emails/${heavy.result.body.id}`);
  assert.deepEqual([record.status, record.body.email?.status ?? record.body.status], [200, "queued"]);
});

test("a small body with much in it is done in the other process, too", async () => {
  const marked = await handedOver(() => post("/v1/send", mail({ html_body: "<b>&amp;".repeat(15_000) })));
  assert.deepEqual([marked.count, marked.result.status], [1, 202]);
});

test("a batch of a hundred ordinary e-mails is done here, and one larger than half a megabyte in the other process", async () => {
  const batch = (words: number) => Array.from({ length: 100 }, () => mail({ text_body: "word ".repeat(words) }));
  const ordinary = await handedOver(() => post("/v1/send/batch", batch(900)));
  assert.deepEqual([ordinary.count, ordinary.result.status], [0, 202]);
  const large = await handedOver(() => post("/v1/send/batch", batch(1_100)));
  assert.deepEqual([large.count, large.result.status], [1, 202]);
});

test("of a body that does not say how long it is, its length decides", async () => {
  const chunked = (body: object) =>
    fetch(`${base_url}/v1/send`, {
      method: "POST",
      headers: { authorization: `Bearer ${api.live_key}`, "content-type": "application/json" },
      body: new Blob([JSON.stringify(body)]).stream(),
      duplex: "half",
    } as RequestInit);
  const large = await handedOver(() => chunked(mail({ text_body: "word ".repeat(60 * KIB) })));
  assert.deepEqual([large.count, large.result.status], [1, 202]);
  const small = await handedOver(() => chunked(mail()));
  assert.deepEqual([small.count, small.result.status], [0, 202]);
});

test("too many members are refused before they are parsed, and the field and the limit are named", async () => {
  const members = Array.from({ length: 250_000 }, (_none, n) => `"k${n}":1`).join();
  for (const field of ["headers", "metadata", "variables"]) {
    const body = `{"from":"a@example.eu","${field}":{${members}}}`;
    const { count, result } = await handedOver(() => post("/v1/send", body));
    assert.equal(count, 1);
    assert.deepEqual([result.status, result.body.code, result.body.field], [400, "payload_too_large", field]);
    assert.match(String(result.body.error), /200000 members and elements in the '/);
    assert.equal(result.body.request_id, result.headers.get("x-request-id"));
  }
});

test("an Idempotency-Key holds in both processes", async () => {
  const large = JSON.stringify(mail({ text_body: "word ".repeat(60 * KIB) }));
  const key = { "idempotency-key": "once" };
  const first = await post("/v1/send", large, key);
  const again = await post("/v1/send", large, key);
  assert.deepEqual([first.status, again.status, again.body], [202, 202, first.body]);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  const other = await post("/v1/send", mail(), key);
  assert.deepEqual([other.status, other.body.code], [409, "idempotency_conflict"]);
});

test("what only a key decides is decided before anything is handed over", async () => {
  const body = mail({ text_body: "word ".repeat(60 * KIB) });
  const { count, result } = await handedOver(() => post("/v1/send", body, { authorization: "Bearer svc_live_wrong" }));
  assert.deepEqual([count, result.status], [0, 401]);
});

test("operations that take long by their nature go there with any body, forms included", async () => {
  const form = new FormData();
  form.set("file", new Blob(["not a report"]), "report.xml");
  const upload = await handedOver(() => post("/v1/dmarc/reports", form));
  assert.deepEqual([upload.count, upload.result.status], [1, 400]);
  const list = await handedOver(() =>
    post("/v1/imports/suppressions/preview", { csv: "email\na@recipient.example\n" }),
  );
  assert.deepEqual([list.count, list.result.status], [1, 201]);
  const listForm = new FormData();
  listForm.set("file", new Blob(["email\na@recipient.example\n"]), "list.csv");
  const listFile = await handedOver(() => post("/v1/imports/suppressions/preview", listForm));
  assert.deepEqual([listFile.count, listFile.result.status], [1, 201]);
  const { id } = listFile.result.body.job as { id: string };
  const job = await api.ask("GET", `/v1/imports/suppressions/jobs/${id}`);
  assert.deepEqual([job.status, (job.body.job as unknown as { valid_rows: number }).valid_rows], [200, 1]);
  const simulated = await handedOver(() =>
    post("/v1/inbound-emails/simulate", { to: "nobody@example.eu", from: "c@other.example", text: "x" }),
  );
  assert.deepEqual([simulated.count, simulated.result.status], [1, 200]);
});

test("a template is read here while it is small, and its stored sources count where a preview or a change leaves them", async () => {
  const template = { name: "Welcome", subject: "Hi {{name}}", html_body: "<p>{{name}}</p>" };
  const long = `<p>${"{{name}}".repeat(101)}</p>`;
  const made = await handedOver(() => post("/v1/templates", template));
  assert.deepEqual([made.count, made.result.status], [0, 201]);
  const large = await handedOver(() => post("/v1/templates", { ...template, slug: "large", html_body: long }));
  assert.deepEqual([large.count, large.result.status], [1, 201]);
  const refused = await handedOver(() => post("/v1/templates", { ...template, html_body: `${long}{{#if` }));
  assert.deepEqual([refused.count, refused.result.status, refused.result.body.code], [1, 400, "template_error"]);

  const idOf = ({ result }: typeof made) => (result.body.template as { id: string }).id;
  const preview = (of: typeof made, body?: object) =>
    handedOver(() => post(`/v1/templates/${idOf(of)}/preview`, body ?? "{}"));
  const variables = { name: "Ada" };
  const [small, stored, whole] = [
    await preview(made, { variables }),
    await preview(large, { variables, subject: "Other" }),
    await preview(large, { variables, subject: "Other", html_body: "<p>{{name}}</p>", text_body: null }),
  ];
  assert.deepEqual([small.count, small.result.status, small.result.body.subject], [0, 200, "Hi Ada"]);
  assert.deepEqual([stored.count, stored.result.status, stored.result.body.subject], [1, 200, "Other"]);
  assert.match(String(stored.result.body.html_body), /^<p>(Ada){101}<\/p>$/);
  assert.deepEqual([whole.count, whole.result.body.html_body], [0, "<p>Ada</p>"]);
  const much = await preview(made, {
    variables: { name: "Ada", rows: Array.from({ length: 2_000 }, (_none, n) => `${"row ".repeat(10)}${n}`) },
  });
  assert.deepEqual([much.count, much.result.status], [1, 200]);
  const missing = await handedOver(() => post("/v1/templates/no-such-template/preview", "{}"));
  assert.deepEqual([missing.count, missing.result.status], [0, 404]);
});

test("an organization that used its part of the shared thread is served by the other process, then asked to wait", async () => {
  const { org_id, live_key } = await api.organization();
  const shares = processorShares(api.world);
  const key = { authorization: `Bearer ${live_key}` };
  const domain = (n: number) => post("/v1/domains", { domain: `d${n}.example`, type: "outbound" }, key);
  assert.equal((await handedOver(() => domain(1))).count, 0);
  shares.spendHere(org_id, { ms: 5_000, elapsed_ms: 5_000 });
  const aside = await handedOver(() => domain(2));
  assert.deepEqual([aside.count, aside.result.status], [1, 201]);
  shares.spendAside(org_id, 600_000);
  const { count, result } = await handedOver(() => domain(3));
  assert.deepEqual([count, result.status, result.body.limit_type], [0, 429, "processor_time"]);
  assert.ok(Number(result.headers.get("retry-after")) > 60);
  assert.equal((await post("/v1/send", mail())).status, 202, "another organization");
});

test("many ordinary requests at one moment cost their organization nothing: what the others took is not charged to each", async () => {
  const { org_id, live_key } = await api.organization();
  const shares = processorShares(api.world);
  const key = { authorization: `Bearer ${live_key}` };
  const text_body = "word ".repeat(4 * KIB);
  const sends = (count: number) =>
    Promise.all(Array.from({ length: count }, () => post("/v1/send", mail({ text_body }), key)));
  await sends(1);
  const before = shares.used(org_id, "here").used_ms;
  for (let round = 0; round < 10; round += 1) await sends(64);
  assert.ok(shares.used(org_id, "here").used_ms - before < 20, `${shares.used(org_id, "here").used_ms} ms`);
});

test("what it took to refuse a body is charged to who sent it, not to the next request", async () => {
  const [sender, next] = [await api.organization(), await api.organization()];
  const shares = processorShares(api.world);
  const metadata = Object.fromEntries(
    Array.from({ length: 4_500 }, (_none, n) => [`a-member-${n}`, `its value, ${n}`]),
  );
  const as = ({ live_key }: { live_key: string }, body: object) =>
    post("/v1/send", body, { authorization: `Bearer ${live_key}` });
  await as(next, mail());
  for (let round = 0; round < 10; round += 1) {
    const refused = await Promise.all(Array.from({ length: 30 }, () => as(sender, mail({ metadata, tags: 5 }))));
    assert.ok(refused.every(({ status }) => status === 400 || status === 429));
  }
  await as(next, mail());
  assert.ok(shares.used(next.org_id, "here").used_ms < 3, `${shares.used(next.org_id, "here").used_ms} ms`);
});

test("a body that would be refused for its processor time is not read to its end", async () => {
  const { org_id, live_key } = await api.organization();
  processorShares(api.world).spendAside(org_id, 600_000);
  const bytes = 20 * KIB * KIB;
  const { answer, sent } = await postSlowly("/v1/send", live_key, bytes);
  assert.match(answer, /^HTTP\/1\.1 429 .*\r\nconnection: close\r\n.*"processor_time"/is);
  assert.ok(sent < bytes / 2, `${sent} bytes were taken`);
});

/** Sends a body piece by piece until there is an answer; resolves to it, and to how much of the body was taken. */
function postSlowly(path: string, key: string, bytes: number): Promise<{ answer: string; sent: number }> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(base_url);
    const socket = connect(Number(port), "127.0.0.1");
    let answer = "";
    let sent = 0;
    const more = (): void => {
      if (answer !== "" || sent >= bytes) return;
      sent += 64 * KIB;
      socket.write(Buffer.alloc(64 * KIB, "x"), () => setImmediate(more));
    };
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", reject);
    socket.on("end", () => {
      socket.destroy();
      resolve({ answer, sent });
    });
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: ${bytes}\r\n\r\n`, more);
  });
}

test("a path is handed over as it came", async () => {
  const { result } = await handedOver(() => post("/v1/templates/%2e%2e/preview", {}));
  assert.equal(result.status, 404);
});

test("a header that names a request of the other process names nothing from outside", async () => {
  const answer = await post("/v1/templates", { name: "x" }, { "x-postern-handed": "0" });
  assert.deepEqual([answer.status, answer.body.code], [400, "validation_error"]);
});

test("a database that is away when the other process is first needed is a 503, and the next request is done", async () => {
  const database = await startAwayDatabase(api.world.database_url);
  const late = await serverOver({ ...api.world, database_url: database.url });
  const own_url = await late.listen();
  try {
    const large = mail({ text_body: "word ".repeat(60 * KIB) });
    const away = await post("/v1/send", large, {}, own_url);
    assert.deepEqual([away.status, away.body.code, away.headers.get("retry-after")], [503, "unavailable", "1"]);
    await database.comeBack();
    assert.equal((await post("/v1/send", large, {}, own_url)).status, 202);
  } finally {
    await late.stop();
    database.stop();
  }
});

/** The database at an address where nobody listens until it comes back. */
async function startAwayDatabase(url: string) {
  const { hostname, port: realPort, searchParams } = new URL(url);
  const folder = searchParams.get("host");
  const target =
    folder === null ? { host: hostname, port: Number(realPort) } : { path: `${folder}/.s.PGSQL.${realPort}` };
  const port = await freePort();
  const away = new URL(url);
  away.searchParams.delete("host");
  away.host = `127.0.0.1:${port}`;
  const proxy = createServer((client) => {
    const server = connect(target);
    client.on("error", () => server.destroy()).pipe(server);
    server.on("error", () => client.destroy()).pipe(client);
  });
  return {
    url: away.href,
    comeBack: () => new Promise<void>((done) => proxy.listen(port, "127.0.0.1", done)),
    stop: () => proxy.close(),
  };
}

test("the other process goes by the clock of this one, wherever the database's clock is: a preview made there is committed here", async () => {
  const made: [string, number][] = [];
  for (const aheadMs of [31 * 86_400_000, 0]) {
    api.world.clock.setSkew(aheadMs);
    const { body } = await post("/v1/imports/suppressions/preview", { csv: "email\ngone@recipient.example\n" });
    const { id, expires_at } = body.job as { id: string; expires_at: string };
    const offMs = Date.parse(expires_at) - 86_400_000 - api.world.clock.now();
    assert.ok(Math.abs(offMs) < 60_000, `made ${offMs} ms off`);
    const { status } = await post(`/v1/imports/suppressions/jobs/${id}/commit`, "");
    made.push([id, status]);
  }
  assert.deepEqual(
    made.map(([, status]) => status),
    [202, 202],
  );
});

function heavyProcesses(): number[] {
  const children = readFileSync(CHILDREN, "utf8").trim().split(" ").filter(Boolean).map(Number);
  return children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("heavy-worker"));
}

test("what its start compiled is kept in the data folder, where the next start finds it", async (t) => {
  // Without the folder that all tests share.
  const shared = process.env.NODE_COMPILE_CACHE;
  delete process.env.NODE_COMPILE_CACHE;
  t.after(() => shared && Object.assign(process.env, { NODE_COMPILE_CACHE: shared }));
  const other = await serverOver(api.world);
  const to = await other.listen();
  assert.equal((await post("/v1/send", mail({ text_body: "word ".repeat(60 * KIB) }), {}, to)).status, 202);
  const kept = join(api.world.config.data_dir, "compiled");
  const files = () => (existsSync(kept) ? readdirSync(kept, { recursive: true }) : []);
  await until("compiled modules", () => files().length > 100);
  await other.stop();
});

test("the other process stands behind this one, outlives a signal to both, and ends with the server", {
  skip: PROC_IS_THERE ? false : "there is no /proc",
}, async () => {
  const other = await serverOver(api.world);
  const to = await other.listen();
  const before = new Set(heavyProcesses());
  const large = mail({ text_body: "word ".repeat(60 * KIB) });
  assert.equal((await post("/v1/send", large, {}, to)).status, 202);
  const [pid = 0, ...more] = heavyProcesses().filter((one) => !before.has(one));
  assert.equal(more.length, 0);
  const niceness = readdirSync(`/proc/${pid}/task`).map((thread) => getPriority(Number(thread)));
  assert.deepEqual([...new Set(niceness)], [Math.max(10, getPriority())]);
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.kill(pid, signal);
  assert.equal((await post("/v1/send", large, {}, to)).status, 202);
  assert.deepEqual(
    heavyProcesses().filter((one) => !before.has(one)),
    [pid],
  );
  await other.stop();
  assert.deepEqual(
    heavyProcesses().filter((one) => !before.has(one)),
    [],
  );
});
