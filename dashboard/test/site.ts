// The built dashboard as a browser meets it: its files under the headers that the server gives them, and /v1 of a running
// Postern with a key in place of a person's session. Every report of the content security policy is kept.
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, resolve } from "node:path";

const DIST = resolve(import.meta.dirname, "../dist");
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};
/** Styles inside are for the frames of mail, which inherit this policy; scripts are our files alone. */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

export type Site = { url: string; giveKey(key: string | null): void; stop(): Promise<void> };

/** Serves until stopped; requests of /v1 carry the key that was last given. */
export async function startSite(baseUrl: string): Promise<Site> {
  let key: string | null = null;
  const server = createServer((asked, answer) => {
    if (asked.url?.startsWith("/v1/")) passOn(asked, answer, { baseUrl, key });
    else sendFile(asked.url ?? "/", answer);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    giveKey(next) {
      key = next;
    },
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function sendFile(url: string, answer: ServerResponse): void {
  const path = join(DIST, new URL(url, "http://site.example").pathname);
  const file = path.startsWith(DIST) && extname(path) !== "" && existsSync(path) ? path : join(DIST, "index.html");
  answer.writeHead(200, {
    "content-type": TYPES[extname(file)] ?? "application/octet-stream",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
  });
  answer.end(readFileSync(file));
}

function passOn(asked: IncomingMessage, answer: ServerResponse, to: { baseUrl: string; key: string | null }): void {
  const { host: _host, ...headers } = asked.headers;
  const authorization = to.key === null ? {} : { authorization: `Bearer ${to.key}` };
  const forward = request(new URL(asked.url ?? "/", to.baseUrl), {
    method: asked.method,
    headers: { ...headers, ...authorization },
  });
  forward.on("response", (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(answer);
  });
  forward.on("error", () => answer.destroy());
  asked.pipe(forward);
}
