// The built dashboard as a browser meets it: its files under the headers that the server gives them, /v1 of a running Postern with a
// key in place of a person's session, and /dashboard/api with the session of the stage's owner. Every report of the content security policy is kept.
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
/** As src/dashboard/pages.ts has it. */
export const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

export type Site = {
  url: string;
  giveKey(key: string | null): void;
  giveSession(cookie: string | null): void;
  stop(): Promise<void>;
};
type To = { baseUrl: string; headers: Record<string, string> };

/** Serves until stopped; requests of /v1 carry the key that was last given, those of /dashboard/api the session. */
export async function startSite(baseUrl: string): Promise<Site> {
  let key: string | null = null;
  let session: string | null = null;
  const server = createServer((asked, answer) => {
    if (asked.url?.startsWith("/v1/"))
      passOn(asked, answer, { baseUrl, headers: key === null ? {} : { authorization: `Bearer ${key}` } });
    else if (asked.url?.startsWith("/dashboard/api/"))
      passOn(asked, answer, { baseUrl, headers: session === null ? {} : { cookie: session } });
    else sendFile(asked.url ?? "/", answer);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    giveKey(next) {
      key = next;
    },
    giveSession(next) {
      session = next;
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

function passOn(asked: IncomingMessage, answer: ServerResponse, to: To): void {
  const { host: _host, origin, ...headers } = asked.headers;
  const ours = origin === undefined || origin === "null" ? {} : { origin: new URL(to.baseUrl).origin };
  const forward = request(new URL(asked.url ?? "/", to.baseUrl), {
    method: asked.method,
    headers: { ...headers, ...ours, ...to.headers },
  });
  forward.on("response", (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(answer);
  });
  forward.on("error", () => answer.destroy());
  asked.pipe(forward);
}
