// The client libraries are made from a snapshot of the API's description: it is what this tree's server says, and what was
// generated of it is what the generator gives.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folded, generate } from "../../clients/generate/run.ts";
import { testApi } from "../support/api.ts";

const CLIENTS = join(import.meta.dirname, "../../clients");

test("the snapshot of the description is what the server says (clients/README.md, 'A new version')", async (t) => {
  const api = await testApi();
  t.after(() => api.close());
  const { servers: _here, ...said } = (await api.ask("GET", "/openapi.json")).body as Record<string, unknown>;
  assert.deepEqual(JSON.parse(readFileSync(join(CLIENTS, "openapi.json"), "utf8")), JSON.parse(JSON.stringify(said)));
});

test("what was generated of it is what the generator gives", () => {
  for (const [path, text] of generate()) {
    const kept = readFileSync(join(CLIENTS, path), "utf8");
    assert.equal(folded(path, kept) === folded(path, text), true, `clients/${path}: run node clients/generate/run.ts`);
  }
});
