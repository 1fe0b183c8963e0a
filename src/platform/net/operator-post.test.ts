// Requests to servers of the operator: whole answers, and an end to every wait.
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { createOperatorPost } from "./operator-post.ts";

const post = createOperatorPost();
const ends: (() => void)[] = [];
after(() => {
  for (const end of ends) end();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const request = (url: string, more = {}) => ({
  ...{ url, headers: { rcpt: ["a@b.example", "c@d.example"] }, body: Buffer.from("x") },
  ...{ timeout_ms: 2_000, response_bytes_max: 1_000 },
  ...more,
});

test("the body goes out with its headers, and the whole answer comes back", async () => {
  const url = await serve((incoming, response) => {
    let body = "";
    incoming.on("data", (piece) => {
      body += piece;
    });
    incoming.on("end", () =>
      response.writeHead(418).end(`${incoming.method} ${incoming.url} ${incoming.headers.rcpt} ${body}`),
    );
  });
  const answer = await post(request(`${url}/checkv2?x=1`));
  assert.ok(answer.kind === "answered");
  assert.equal(answer.status, 418);
  assert.equal(String(answer.body), "POST /checkv2?x=1 a@b.example, c@d.example x");
});

test("what does not answer, answers too much, or is not there has failed", async () => {
  const silent = await serve(() => undefined);
  assert.deepEqual(await post(request(silent, { timeout_ms: 100 })), {
    kind: "failed",
    reason: "no complete answer within 100 ms",
  });
  const slow = await serve((_incoming, response) => response.writeHead(200).write("x"));
  assert.equal((await post(request(slow, { timeout_ms: 100 }))).kind, "failed");
  const endless = await serve((_incoming, response) => response.end("x".repeat(1_001)));
  assert.deepEqual(await post(request(endless)), { kind: "failed", reason: "the answer is larger than 1000 bytes" });
  const cut = await serve((_incoming, response) => {
    response.writeHead(200, { "content-length": "10" }).write("x", () => response.destroy());
  });
  assert.equal((await post(request(cut))).kind, "failed");
  const gone = await post(request("http://127.0.0.1:9/"));
  assert.match(gone.kind === "failed" ? gone.reason : "", /ECONNREFUSED/);
});
