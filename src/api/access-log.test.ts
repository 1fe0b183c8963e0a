import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import { createLog } from "../platform/process/log.ts";

let api: TestApi;
let lines: Record<string, unknown>[];

before(async () => {
  lines = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  api = await testApi({}, (world) => ({ ...world, log: createLog({ level: "info", role: "test", destination }) }));
});

after(async () => {
  await api?.close();
});

test("each request is one line, with the id that its answer has, whose it was, its route and its status", async () => {
  const { body } = await api.ask("GET", "/v1/api-keys");
  const live = body.keys.find(({ environment }: { environment: string }) => environment === "live");
  const requests: [method: string, path: string, route: string | null, status: number, key?: null][] = [
    ["GET", "/v1/suppressions/check?email=anna%40private.example", "/v1/suppressions/check", 200],
    ["PUT", "/v1/suppressions/anna@private.example", null, 404],
    ["DELETE", "/v1/suppressions/anna@private.example", "/v1/suppressions/:identifier", 404],
    ["POST", "/v1/send", "/v1/send", 400],
    ["GET", "/v1/domains", "/v1/domains", 401, null],
    ["PUT", "/nothing", null, 404, null],
  ];
  for (const [method, path, route, status, key] of requests) {
    const given = key === null ? { key } : {};
    const answer = await api.ask(method, path, method === "POST" ? { colour: 1 } : undefined, given);
    const id = answer.headers["x-request-id"];
    const line = await until("its line", () => lines.find(({ request_id }) => request_id === id));
    const isAuthenticated = key !== null && route !== null;
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.equal(lines.filter(({ request_id }) => request_id === id).length, 1);
    assert.deepEqual(
      [line.msg, line.level, line.method, line.route, line.status, line.key_id, line.org_id],
      ["request", "info", method, route, status, isAuthenticated ? live.id : null, isAuthenticated ? api.org_id : null],
    );
    assert.ok(typeof line.ms === "number" && line.ms >= 0);
  }
  assert.ok(!JSON.stringify(lines).includes("private.example"), "no address of a path or a query");
});
