// What only the Node library can meet; the rest is in the conformance set (clients/conformance).
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatchResult, Postern } from "../../clients/node/src/postern.ts";

test("input that cannot be written as JSON is the caller's error, and no broken connection that is tried again", async () => {
  let asked = 0;
  const never: typeof fetch = async () => {
    asked += 1;
    return new Response("{}");
  };
  const postern = new Postern({ apiKey: "svc_test_1", baseUrl: "http://127.0.0.1:1", fetch: never });
  const circle: { [name: string]: unknown } = {};
  circle.self = circle;
  for (const metadata of [circle, { order: 1n }]) {
    const mail = { from: "a@shop.example", to: ["b@recipient.example"], subject: "S", text_body: "T", metadata };
    await assert.rejects(postern.emails.send(mail as never), TypeError);
  }
  assert.equal(asked, 0);
});

test("the status of a batch's result says which kind it is, to the compiler as well", () => {
  const idOf = (result: BatchResult): string => (result.status === "rejected" ? result.error : result.id);
  const rejected: BatchResult = { index: 0, status: "rejected", error: "the 'to' field is required", code: "x" };
  assert.equal(idOf(rejected), rejected.error);
});
