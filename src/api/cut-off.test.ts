import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";

const MIB = 1024 * 1024;
let api: TestApi;
let port: number;
/** The server's end of the connection made last. */
let taken: Socket;

before(async () => {
  api = await testApi();
  await api.app.listen({ port: 0, host: "127.0.0.1" });
  port = (api.app.server.address() as AddressInfo).port;
  api.app.server.on("connection", (socket: Socket) => {
    taken = socket;
  });
});

after(() => api?.close());

/** A client that sends `bytes` of a body, whatever is answered meanwhile, and tells what it got until the end. */
async function push(start: string, headers: string[], bytes: number, chunked = false) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let text = "";
  socket.on("data", (piece) => {
    text += piece;
  });
  socket.on("error", () => undefined);
  const length = chunked ? "transfer-encoding: chunked" : `content-length: ${bytes}`;
  const head = [`${start} HTTP/1.1`, "host: x", "content-type: application/json", length, ...headers];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  const piece = Buffer.alloc(64 * 1024, 0x20);
  const framed = chunked ? Buffer.concat([Buffer.from("10000\r\n"), piece, Buffer.from("\r\n")]) : piece;
  for (let sent = 0; sent < bytes; sent += piece.length) socket.write(framed);
  if (chunked) socket.write("0\r\n\r\n");
  const server = await until("the connection is taken", () => taken?.remotePort === socket.localPort && taken);
  return { socket, server, text: () => text };
}

describe("a request that is answered before its body came", () => {
  const refused: [what: string, start: string, headers: () => string[], status: number][] = [
    ["without a key", "POST /v1/send", () => [], 401],
    ["with a wrong key", "POST /v1/send", () => ["authorization: Bearer svc_live_0123456789abcdef0123"], 401],
    ["to nowhere", "POST /v1/nothing", () => [`authorization: Bearer ${api.live_key}`], 404],
    ["to a path that cannot be read", "POST /v1/%zz", () => [], 400],
    ["larger than allowed", "POST /v1/domains", () => [`authorization: Bearer ${api.live_key}`], 400],
    ["that is only read from", "GET /healthz", () => [], 200],
  ];
  for (const [what, start, headers, status] of refused) {
    for (const chunked of [false, true]) {
      it(`${what} is answered and closed, and 25 MB are not read${chunked ? " (chunked)" : ""}`, async () => {
        const { socket, server, text } = await push(start, headers(), 25 * MIB, chunked);
        await until("the answer", () => text().endsWith("}"));
        assert.match(text(), new RegExp(`^HTTP/1\\.1 ${status} .*\r\nconnection: close\r\n`, "is"));
        // It can still send: what it has sent is not answered with a reset that overtakes the answer.
        assert.deepEqual([socket.errored, server.destroyed], [null, false]);
        await once(server, "close");
        assert.ok(server.bytesRead < 3 * MIB, `${server.bytesRead} bytes were read`);
        socket.destroy();
      });
    }
  }

  it("keeps its connection when little is still to come", async () => {
    const { socket, server, text } = await push("POST /v1/nothing", [], 64 * 1024);
    await until("the answer", () => /"not_found"/.test(text()));
    socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    await until("the second answer", () => /"status":"ok"/.test(text()));
    assert.doesNotMatch(text(), /connection: close/i);
    assert.equal(server.destroyed, false);
    socket.destroy();
  });
});
