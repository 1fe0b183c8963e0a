import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { answerUnreadable } from "./client-errors.ts";

test("a request that does not arrive in time is a 400 of the documented form, and the connection closes", async () => {
  const limits = { headersTimeout: 10, requestTimeout: 10, connectionsCheckingInterval: 10 };
  const server = createServer(limits, () => undefined);
  server.on("clientError", (error, socket) => answerUnreadable(error, socket as never, "0190a000"));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.write("POST /v1/send HTTP/1.1\r\nhost: x\r\n");
  await new Promise((done, fail) => socket.once("close", done).once("error", fail));
  await new Promise((done) => server.close(done));
  const [head = "", body = ""] = text.split("\r\n\r\n");
  assert.match(head, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.deepEqual(JSON.parse(body), {
    error: "the request did not arrive in time",
    code: "validation_error",
    request_id: "0190a000",
  });
});
