// When schemas are compiled. What the validators say is shown by every test of a route.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serializersAtFirstUse } from "./compile-schemas.ts";

test("a schema that an answer has is compiled at its first use, and once", () => {
  let read = 0;
  const schema = {
    type: "object",
    get properties() {
      read += 1;
      return { id: { type: "string" } };
    },
  };
  const write = serializersAtFirstUse({}, {})({ method: "GET", url: "/", httpStatus: "200", schema });
  assert.equal(read, 0);
  assert.equal(write({ id: "a", more: "b" }), '{"id":"a"}');
  const readOnce = read;
  assert.ok(readOnce > 0);
  assert.equal(write({ id: "c" }), '{"id":"c"}');
  assert.equal(read, readOnce);
});
