// Idempotency-Key on uploads, whose bytes are known only when their handlers have read them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { reportXml } from "../../mail/dmarc-report/report.fixture.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

const PREVIEW = "/v1/imports/suppressions/preview";
const LIST = "email\nanna@list.example\n";

/** Each has a boundary of its own, as of programs that repeat a request. */
async function upload(key: string, file = LIST, { provider = "custom", boundary = "b", path = PREVIEW } = {}) {
  const fields = provider
    ? `--${boundary}\r\nContent-Disposition: form-data; name="provider"\r\n\r\n${provider}\r\n`
    : "";
  const head = 'Content-Disposition: form-data; name="file"; filename="list.csv"';
  const body = `${fields}--${boundary}\r\n${head}\r\n\r\n${file}\r\n--${boundary}--\r\n`;
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}`, "idempotency-key": key };
  return api.ask("POST", path, Buffer.from(body), { headers });
}

test("a list that is uploaded again with its key gets the first answer, however it is wrapped", async () => {
  const first = await upload("one");
  const again = await upload("one", LIST, { boundary: "another" });
  assert.deepEqual([first.status, again.status], [201, 201]);
  assert.deepEqual(again.body, first.body);
  assert.deepEqual([first.headers["idempotent-replayed"], again.headers["idempotent-replayed"]], [undefined, "true"]);
  const other = await upload("two");
  assert.notEqual(other.body.job.id, first.body.job.id);
});

test("at the same time they make one job", async () => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, at) => upload("at once", LIST, { boundary: `b${at}` })),
  );
  assert.equal(new Set(answers.map(({ body }) => body.job.id)).size, 1);
});

test("another list, another provider or another operation with the key is a conflict", async () => {
  assert.equal((await upload("used")).status, 201);
  const xml = { path: "/v1/dmarc/reports", provider: "" };
  const others = [
    await upload("used", "email\nberta@list.example\n"),
    await upload("used", LIST, { provider: "ses" }),
    await upload("used", LIST, xml),
  ];
  for (const { status, body } of others) {
    assert.deepEqual([status, body.code, body.field], [409, "idempotency_conflict", "Idempotency-Key"]);
  }
});

test("what failed may be uploaded again with its key, and what is not a key is refused", async () => {
  assert.equal((await upload("failed", "", { provider: "nobody" })).status, 400);
  assert.equal((await upload("failed")).status, 201);
  const { status, body } = await upload("x".repeat(257));
  assert.deepEqual([status, body.field?.toLowerCase()], [400, "idempotency-key"]);
});

test("a list in JSON is repeated safely, too", async () => {
  const headers = { "idempotency-key": "json" };
  const [first, again] = [
    await api.ask("POST", PREVIEW, { csv: LIST }, { headers }),
    await api.ask("POST", PREVIEW, { csv: LIST }, { headers }),
  ];
  assert.equal(first.status, 201);
  assert.equal(again.body.job.id, first.body.job.id);
  const other = await api.ask("POST", PREVIEW, { csv: `${LIST}x@list.example\n` }, { headers });
  assert.equal(other.status, 409);
});

test("a report that is uploaded again with its key is answered as it was", async () => {
  const domain = await api.ask("POST", "/v1/domains", { domain: "reported.example", type: "outbound" });
  assert.equal(domain.status, 201);
  const xml = reportXml({
    domain: "reported.example",
    begin_s: Math.floor(Date.now() / 1000) - 86_400,
    id: "r1",
    records: [{ count: 1 }],
  });
  const headers = { "content-type": "application/octet-stream", "idempotency-key": "report" };
  const send = (named: Record<string, string>) =>
    api.ask("POST", "/v1/dmarc/reports", Buffer.from(xml), { headers: named });
  const [first, again] = [await send(headers), await send(headers)];
  assert.deepEqual([first.status, again.status], [201, 201]);
  assert.deepEqual(again.body, first.body);
  assert.equal(
    (await send({ "content-type": "application/octet-stream" })).status,
    200,
    "without a key it was there already",
  );
});
