// A web server that answers the client commands as a Postern would, as far as tests of the command line need it, and keeps
// what it was asked: with which key, which method and path.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type PlayedServer = {
  url: string;
  /** `GET /v1/me svc_test_1`, in order. */
  asked: string[];
  /** Readers of events that are connected now. */
  readers(): number;
  stop(): Promise<void>;
};

const PREVIEW = { subject: "S", html_body: "<p>x</p>", text_body: null };
const NOTHING_AMISS = { missing_variables: [], unused_variables: [], warnings: [] };

export async function startPlayedServer(): Promise<PlayedServer> {
  const asked: string[] = [];
  let readers = 0;
  const server = createServer((request, response) => {
    const key = request.headers.authorization?.replace("Bearer ", "") ?? "";
    const environment = key.startsWith("svc_test_") ? "test" : "live";
    asked.push(`${request.method} ${request.url} ${key}`);
    response.setHeader("content-type", "application/json");
    if (request.url?.startsWith("/v1/events")) {
      readers += 1;
      response.once("close", () => (readers -= 1));
      return void response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    }
    if (request.url?.endsWith("/preview")) return void response.end(JSON.stringify({ ...PREVIEW, ...NOTHING_AMISS }));
    const organization = { id: "o", name: "Shop", plan: "starter", state: "active" };
    response.end(
      JSON.stringify({ id: "m", status: "queued", organization, environment, key: { id: "k", name: "cli" } }),
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    readers: () => readers,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
