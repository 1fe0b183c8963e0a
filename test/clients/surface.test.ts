// The generator leaves nothing out silently.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readDescription } from "../../clients/generate/read.ts";

const CLIENTS = join(import.meta.dirname, "../../clients");
const answer = (schema: object) => ({ 200: { description: "", content: { "application/json": { schema } } } });

function described(operation: object) {
  return {
    paths: { "/v1/things": { get: { operationId: "listThings", ...operation } } },
    components: { schemas: { Event: { type: "object" }, ErrorCode: { type: "string" } } },
  };
}

const PLACE = { resource: "things", method: "list", answer: "json" };

test("an operation without a place in surface.json is an error, and so is a place without an operation", () => {
  const openapi = described({ responses: answer({ type: "array", items: { type: "string" } }) });
  assert.throws(() => readDescription(openapi, {}), /listThings has no place/);
  const surface = { listThings: PLACE, gone: PLACE };
  assert.throws(() => readDescription(openapi, surface), /no operation gone/);
  assert.equal(readDescription(openapi, { listThings: PLACE }).operations.length, 1);
});

test("an object without a name of its own is an error that names its fields", () => {
  const openapi = described({ responses: answer({ type: "object", properties: { a: { type: "string" } } }) });
  assert.throws(() => readDescription(openapi, { listThings: PLACE }), /an object with the fields a has no name/);
});

test("each library brings the licence that it names", () => {
  const licence = readFileSync(join(CLIENTS, "../LICENSE"), "utf8");
  for (const folder of ["node", "python", "ruby", "php", "go"])
    assert.equal(readFileSync(join(CLIENTS, folder, "LICENSE"), "utf8"), licence, folder);
  assert.match(readFileSync(join(CLIENTS, "ruby/postern-mail.gemspec"), "utf8"), /spec\.files = .*"LICENSE"/);
});
