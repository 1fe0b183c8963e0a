// What a hostile or broken client can put into a request and a database cannot hold, or a router cannot read: always an
// answer that the description has, never a 500. The contract tester found these (npm run contract).
import assert from "node:assert/strict";
import { type AddressInfo, connect } from "node:net";
import { after, before, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});

after(() => api.close());

const mail = { from: "a@shop.example", to: ["a@recipient.example"], subject: "x", text_body: "x" };
const HALF = "\ud83d";

function refused(answer: { status: number; body: { code?: string; field?: string } }, field: string): void {
  assert.deepEqual(
    { status: answer.status, code: answer.body.code, field: answer.body.field },
    { status: 400, code: "validation_error", field },
  );
}

test("U+0000 in a text of the body is a 400 that names the field", async () => {
  refused(await api.ask("POST", "/v1/suppressions", { email: "a@recipient.example", note: "a\0b" }), "note");
  refused(await api.ask("POST", "/v1/api-keys", { name: "\0", environment: "test" }), "name");
  refused(await api.ask("POST", "/v1/templates", { name: "a", slug: "a\0a", subject: "x", text_body: "x" }), "slug");
});

test("a limit counts characters as the description does, and an emoji is one of them", async () => {
  const template = { slug: "limits", subject: "x", text_body: "x" };
  const calls: [path: string, field: string, max: number, more: object][] = [
    ["/v1/api-keys", "name", 191, { environment: "test" }],
    ["/v1/templates", "name", 191, template],
    ["/v1/templates", "subject", 2_000, { ...template, name: "a", slug: "subjects" }],
    ["/v1/suppressions", "note", 1_000, { email: "a@recipient.example" }],
  ];
  for (const [path, field, max, more] of calls) {
    const full = await api.ask("POST", path, { ...more, [field]: "\u{1f600}".repeat(max) });
    assert.equal(full.status, 201, JSON.stringify(full.body));
    refused(await api.ask("POST", path, { ...more, [field]: "\u{1f600}".repeat(max + 1) }), field);
  }
});

test("U+0000 deep in the body, or in the name of a field, is named with its path", async () => {
  refused(
    await api.ask("POST", "/v1/send", { ...mail, to: ["ok@recipient.example", "a\0@recipient.example"] }),
    "to[1]",
  );
  refused(await api.ask("POST", "/v1/send", { ...mail, metadata: { order: "1\0" } }), "metadata.order");
  refused(await api.ask("POST", "/v1/send", { ...mail, metadata: { "a\0": "1" } }), "metadata.a\u{fffd}");
});

test("in a batch, text that cannot be stored is the fault of its item", async () => {
  const { status, body } = await api.ask("POST", "/v1/send/batch", [mail, { ...mail, tags: ["\0"] }]);
  assert.equal(status, 400);
  const fields = body.results.map((result: { field: string }) => result.field);
  assert.deepEqual(fields, ["from", "tags[0]"]);
  refused(await api.ask("POST", "/v1/send/batch", { emails: [mail], "a\0": 1 }), "a\u{fffd}");
  refused(await api.ask("POST", "/v1/send/batch", { emails: [mail], validation: HALF }), "validation");
  refused(await api.ask("POST", "/v1/send/batch", JSON.stringify("\0")), "body");
});

test("a compressed body is a 400 that says how to send it", async () => {
  for (const encode of ["gzip", "deflate", "br"]) {
    const payload = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }[encode]!(JSON.stringify(mail));
    const headers = { authorization: `Bearer ${api.live_key}`, "content-encoding": encode };
    const json = { ...headers, "content-type": "application/json" };
    const answer = await api.app.inject({ method: "POST", url: "/v1/send", headers: json, payload });
    assert.deepEqual([answer.statusCode, answer.json().code], [400, "validation_error"], encode);
    assert.match(answer.json().error, /without the header 'Content-Encoding'/);
  }
});

test("a body that is not UTF-8 is a 400, and nothing of it is taken", async () => {
  const body = Buffer.from('{"email": "umlaut@recipient.example", "note": "M\xfcller"}', "latin1");
  const answer = await api.ask("POST", "/v1/suppressions", body);
  assert.deepEqual([answer.status, answer.body.code], [400, "invalid_json"]);
  assert.match(answer.body.error, /UTF-8/);
  const surrogate = Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]);
  assert.equal((await api.ask("POST", "/v1/api-keys", surrogate)).body.code, "invalid_json");
  const kept = await api.ask("GET", "/v1/suppressions?query=umlaut");
  assert.equal(kept.body.total, 0);
});

test("a text that only looks like an escaped U+0000 is taken", async () => {
  const answer = await api.ask("POST", "/v1/suppressions", { email: "b@recipient.example", note: "\\u0000" });
  assert.equal(answer.status, 201);
  assert.equal(answer.body.suppression.note, "\\u0000");
});

test("half of a surrogate pair is a 400 that names the field, in values and in names", async () => {
  refused(await api.ask("POST", "/v1/suppressions", { email: "c@recipient.example", note: `cut ${HALF}` }), "note");
  const template = { name: `t ${HALF}`, slug: "half", subject: "{{name}}", text_body: "x" };
  refused(await api.ask("POST", "/v1/templates", template), "name");
  refused(await api.ask("POST", "/v1/send", { ...mail, metadata: { [HALF]: "1" } }), "metadata.\u{fffd}");
});

test("a whole surrogate pair stays what it is", async () => {
  const added = await api.ask("POST", "/v1/suppressions", { email: "d@recipient.example", note: "whole 😀" });
  assert.equal(added.body.suppression.note, "whole 😀");
});

test("%00 in the path names nothing, and in the query is a 400 that names the parameter", async () => {
  assert.equal((await api.ask("GET", "/v1/templates/a%00b")).status, 404);
  assert.equal((await api.ask("DELETE", "/v1/suppressions/a%00@recipient.example")).status, 404);
  refused(await api.ask("GET", "/v1/suppressions/check?email=a%00@recipient.example"), "email");
  refused(await api.ask("GET", "/v1/emails?unknown%00=1"), "unknown\u{fffd}");
});

test("a path that is not correctly percent-encoded is a 400 of the documented form", async () => {
  for (const path of ["/v1/templates/%", "/v1/templates/%zz", "/v1/templates/%c3%28"]) {
    const answer = await api.ask("GET", path);
    assert.equal(answer.status, 400, path);
    assert.equal(answer.body.code, "validation_error");
    assert.equal(answer.headers["x-request-id"], answer.body.request_id);
  }
});

test("a parameter of the path that is too long is a 400 that names it", async () => {
  refused(await api.ask("GET", `/v1/templates/${"a".repeat(4_000)}`), "id");
  refused(await api.ask("GET", `/v1/domains/${"%C3%9C".repeat(1_025)}`), "id");
});

test("without a key, none of this is looked at", async () => {
  assert.equal((await api.ask("GET", "/v1/templates/a%00b", undefined, { key: null })).status, 401);
  assert.equal((await api.ask("POST", "/v1/api-keys", { name: "\0" }, { key: null })).status, 401);
});

test("numbers beyond what the database counts with are a 400", async () => {
  for (const offset of ["9223372036854775808", "1e400", "-1", "0.5", "NaN"]) {
    refused(await api.ask("GET", `/v1/emails?offset=${offset}`), "offset");
  }
});

test("a number that would come back as another one is a 400 that names the field", async () => {
  const json = (number: string) => JSON.stringify({ ...mail, metadata: { ids: ["N"] } }).replace('"N"', number);
  for (const number of ["9007199254740993", "-12345678901234567890", "123456789012345678901234567890", "1e400"]) {
    const answer = await api.ask("POST", "/v1/send", json(number));
    refused(answer, "metadata.ids[0]");
    assert.match(answer.body.error, /send it as a string/);
  }
  const exact = [
    "9007199254740992",
    "12345678901234567168",
    "1e300",
    "0.1000000000000000055",
    '"12345678901234567890"',
  ];
  for (const number of exact) {
    const { body } = await api.ask("POST", "/v1/send", json(number));
    assert.equal(body.code, "domain_not_owned", `${number} is taken, and the sender looked at`);
  }
});

test("a byte order mark before a body is passed over, whatever the body holds", async () => {
  const json = JSON.stringify({ ...mail, metadata: { id: "N" } });
  const marked = (body: string) => api.ask("POST", "/v1/send", `\ufeff${body}`);
  assert.equal((await marked(json)).body.code, "domain_not_owned", "it is taken, and the sender looked at");
  refused(await marked(json.replace('"N"', "9007199254740993")), "metadata.id");
  const polluted = await marked(json.replace('"id"', '"__proto__"'));
  assert.match(polluted.body.error, /a name that is not taken/);
  assert.equal((await marked("\ufeff{}")).body.code, "invalid_json", "a second one is not");
});

test("in a batch, such a number is the fault of its item", async () => {
  const items = [mail, { ...mail, metadata: { id: "N" } }];
  const json = JSON.stringify(items).replace('"N"', "9007199254740993");
  const { body } = await api.ask("POST", "/v1/send/batch", json);
  const fields = body.results.map((result: { field: string }) => result.field);
  assert.deepEqual(fields, ["from", "metadata.id"]);
});

test("times beyond what the database holds are a 400 or an empty answer", async () => {
  for (const time of ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00+14:00"]) {
    const answer = await api.ask("GET", `/v1/emails?from=${encodeURIComponent(time)}&to=${encodeURIComponent(time)}`);
    assert.ok([200, 400].includes(answer.status), `${time}: ${answer.status}`);
  }
});

test("a time whose year in UTC has five digits or none is a 400", async () => {
  const email = "e@recipient.example";
  for (const expires_at of ["9999-12-31T23:59:59-12:00", "0000-01-01T00:00:00+14:00"]) {
    refused(await api.ask("POST", "/v1/suppressions", { email, expires_at }), "expires_at");
  }
  const last = await api.ask("POST", "/v1/suppressions", { email, expires_at: "9999-12-31T23:59:59Z" });
  assert.equal(last.body.suppression.expires_at, "9999-12-31T23:59:59.000Z");
});

test("an Idempotency-Key that is no key is a 400 that names the header", async () => {
  for (const key of ["", "a".repeat(257), "ü", "a\tb"]) {
    const headers = { "idempotency-key": key };
    refused(await api.ask("POST", "/v1/send", mail, { headers }), "Idempotency-Key");
    refused(await api.ask("POST", "/v1/send/batch", [mail], { headers }), "Idempotency-Key");
  }
});

test("a field or a parameter without a name is not known, and said to be none", async () => {
  const field = await api.ask("POST", "/v1/api-keys", { "": 1, name: "x", environment: "test" });
  refused(field, "");
  assert.equal(field.body.error, "the '' field is not known");
  const parameter = await api.ask("GET", "/v1/domains?=1");
  refused(parameter, "");
  assert.equal(parameter.body.error, "the '' query parameter is not known");
  refused(await api.ask("POST", "/v1/api-keys", []), "body");
});

test("methods that a path does not have are 404", async () => {
  for (const method of ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"] as const) {
    const { statusCode } = await api.app.inject({ method: method as "GET", url: "/v1/send" });
    assert.equal(statusCode, 404, method);
  }
});

/** What the server says to these bytes, over a socket of its own: until the connection closes. */
async function say(bytes: string): Promise<{ head: string; body: Record<string, string> }> {
  const { port } = api.app.server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.write(bytes);
  await new Promise((done, fail) => socket.once("close", done).once("error", fail));
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { head, body: JSON.parse(body) };
}

test("what is not HTTP, or too long to be read, is a 400 of the documented form, and the connection closes", async () => {
  await api.app.listen({ host: "127.0.0.1", port: 0 });
  const host = "host: localhost\r\n";
  for (const bytes of [
    `GET /v1/templates/${"a".repeat(17_000)} HTTP/1.1\r\n${host}\r\n`,
    `GET /v1/templates HTTP/1.1\r\n${host}x-a: ${"a".repeat(17_000)}\r\n\r\n`,
    `GET /v1/templates HTTP/1.1\r\n${host}authorization: Bearer a\0b\r\n\r\n`,
    `GET /v1/templates NONSENSE\r\n\r\n`,
  ]) {
    const { head, body } = await say(bytes);
    assert.match(head, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(head, /^connection: close$/m);
    assert.equal(body.code, "validation_error");
    assert.match(head, new RegExp(`^x-request-id: ${body.request_id}\r?$`, "m"));
  }
});
