// Uploads as clients send them over a real connection: with and without Content-Length, too much of it, and refused in the
// middle. Their content: src/suppressions/imports.test.ts, src/dmarc/dmarc.test.ts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { reportXml } from "../../src/mail/dmarc-report/report.fixture.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { until } from "../support/until.ts";

const PREVIEW = "/v1/imports/suppressions/preview";
const REPORTS = "/v1/dmarc/reports";
const BOUNDARY = "xYzZY";

let api: TestApi;
let port: number;
let agent: Agent;

before(async () => {
  api = await testApi();
  await api.app.listen({ host: "127.0.0.1", port: 0 });
  port = (api.app.server.address() as AddressInfo).port;
  agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const { status } = await api.ask("POST", "/v1/domains", { domain: "reported.example", type: "outbound" });
  assert.equal(status, 201);
});
after(async () => {
  agent?.destroy();
  await api?.close();
});

function part(name: string, content: string, filename?: string): string {
  const file = filename === undefined ? "" : `; filename="${filename}"`;
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
}
const formOf = (...parts: string[]) => `${parts.join("")}--${BOUNDARY}--\r\n`;

/** Over the one connection of `agent`; in pieces of 16 KiB, and chunked (RFC 9112 §7.1), unless the length is given. */
async function upload(path: string, body: string, { reported = false } = {}) {
  const asked = request({
    ...{ port, host: "127.0.0.1", method: "POST", path, agent },
    headers: {
      authorization: `Bearer ${api.live_key}`,
      "content-type": `multipart/form-data; boundary=${BOUNDARY}`,
      ...(reported ? { "content-length": Buffer.byteLength(body) } : {}),
    },
  });
  const answered = once(asked, "response") as Promise<[IncomingMessage]>;
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += 16_384) asked.write(bytes.subarray(at, at + 16_384));
  asked.end();
  const [response] = await answered;
  let text = "";
  for await (const piece of response) text += piece;
  return { status: response.statusCode, body: JSON.parse(text), reused: asked.reusedSocket };
}

const listOf = (rows: number) =>
  `email\r\n${Array.from({ length: rows }, (_none, n) => `someone-${n}@list.example`).join("\r\n")}\r\n`;
const reportOf = (id: string) =>
  reportXml({
    domain: "reported.example",
    begin_s: Math.floor(Date.now() / 86_400_000 - 2) * 86_400,
    id,
    records: [{ count: 7 }],
  });

describe("an upload", () => {
  it("of a list is read whole, chunked or with its length given", async () => {
    for (const reported of [false, true]) {
      for (const rows of [1, 40_000]) {
        const { status, body } = await upload(PREVIEW, formOf(part("file", listOf(rows), "list.csv")), { reported });
        assert.deepEqual([status, body.job?.valid_rows], [201, rows], JSON.stringify(body).slice(0, 500));
      }
    }
  });

  it("of a report is read whole, chunked or with its length given", async () => {
    for (const reported of [false, true]) {
      const form = formOf(part("file", reportOf(`given-${reported}`), "report.xml"));
      const { status, body } = await upload(REPORTS, form, { reported });
      assert.deepEqual([status, body.report?.total_messages], [201, 7], JSON.stringify(body));
    }
  });

  it("that announces more than may come is refused before it comes", async () => {
    for (const path of [PREVIEW, REPORTS]) {
      const head = [
        `POST ${path} HTTP/1.1`,
        "host: x",
        `authorization: Bearer ${api.test_key}`,
        `content-type: multipart/form-data; boundary=${BOUNDARY}`,
        "content-length: 134217728",
      ];
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.on("data", (piece) => {
        text += piece;
      });
      socket.write(`${head.join("\r\n")}\r\n\r\n-`);
      await until("an answer", () => text.includes("request_id"));
      assert.match(text, /^HTTP\/1\.1 400 .*"code":"payload_too_large"/s);
      socket.destroy();
    }
  });

  it("that comes slowly keeps nobody waiting but its own organization", async () => {
    const other = await api.organization();
    for (const path of [PREVIEW, REPORTS]) {
      const slow = Array.from({ length: 20 }, () => connect(port, "127.0.0.1"));
      for (const socket of slow) {
        const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.live_key}\r\n`;
        socket.write(
          `${head}content-type: multipart/form-data; boundary=${BOUNDARY}\r\ncontent-length: 1000\r\n\r\n--`,
        );
      }
      // A request of the same organization that came after them has been looked at: so have they.
      await until("them to be taken", async () => (await api.ask("GET", "/v1/webhooks")).status === 200);
      const body = path === PREVIEW ? JSON.stringify({ csv: listOf(3) }) : reportOf("foreign");
      const headers = { "content-type": path === PREVIEW ? "application/json" : "application/xml" };
      const { status } = await api.ask("POST", path, body, { key: other.live_key, headers });
      assert.equal(status, path === PREVIEW ? 201 : 403);
      for (const socket of slow) socket.destroy();
    }
  });

  it("that is refused in the middle is not read to its end: the answer comes, and the next has a connection of its own", async () => {
    const unknown = formOf(part("other", "x".repeat(400_000), "other.csv"), part("file", listOf(20_000), "list.csv"));
    for (const path of [PREVIEW, REPORTS]) {
      for (const reported of [false, true]) {
        const { status, body } = await upload(path, unknown, { reported });
        assert.deepEqual([status, body.field], [400, "other"]);
        const next = await upload(PREVIEW, formOf(part("file", listOf(3), "list.csv")));
        assert.deepEqual([next.status, next.reused], [201, false]);
      }
    }
  });
});
