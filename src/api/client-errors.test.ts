import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { createLog } from "../platform/process/log.ts";
import { answerUnreadable } from "./client-errors.ts";

/** Sends the text, and reads until the connection is closed from the other side. */
async function exchange(port: number, request: string): Promise<{ head: string; body: string }> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.write(request);
  await new Promise((done, fail) => socket.once("end", done).once("error", fail));
  socket.destroy();
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { head, body };
}

async function whileListening(api: TestApi, work: (port: number) => Promise<void>): Promise<void> {
  await api.app.listen({ port: 0, host: "127.0.0.1" });
  try {
    await work((api.app.server.address() as AddressInfo).port);
  } finally {
    await api.close();
  }
}

test("what Node would answer by itself has the form of every other answer", async () => {
  const api = await testApi();
  const ask = (start: string, more = "") => `${start} HTTP/1.1\r\n${more}connection: close\r\n\r\n`;
  await whileListening(api, async (port) => {
    const cases: [request: string, status: number, code: string | undefined][] = [
      [ask("GET /healthz"), 400, "validation_error"],
      [ask("GET /healthz", "host: x\r\nHost: y\r\n"), 400, "validation_error"],
      [ask("CONNECT mail.example:25", "host: x\r\n"), 404, "not_found"],
      [ask("GET /healthz", "host: x\r\nexpect: a-wonder\r\n"), 200, undefined],
      ["GET /healthz HTTP/1.0\r\n\r\n", 200, undefined],
    ];
    for (const [request, status, code] of cases) {
      const { head, body } = await exchange(port, request);
      assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), request);
      assert.match(head, /\r\nx-request-id: [0-9a-f-]{36}/i, request);
      assert.equal(JSON.parse(body).code, code, request);
    }
  });
});

test("a request that does not arrive in time is a 400 of the documented form, and the connection closes", async () => {
  const limits = { headersTimeout: 10, requestTimeout: 10, connectionsCheckingInterval: 10 };
  const server = createServer(limits, () => undefined);
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLog({ level: "info", role: "test", destination });
  server.on("clientError", (error, socket) => answerUnreadable(log, error, socket as never, "0190a000"));
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
  assert.deepEqual(
    lines.map(({ request_id, status }) => [request_id, status]),
    [["0190a000", 400]],
  );
  assert.match(head, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.deepEqual(JSON.parse(body), {
    error: "the request did not arrive in time",
    code: "validation_error",
    request_id: "0190a000",
  });
});
