// A real HTTPS server on loopback that keeps what it is sent and answers as asked: the receiver of webhooks in tests, the
// demo and the bench. Not here: certificates (tls.ts), the check of signatures.
import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";

export type SinkRequest = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** Names and values as they came, in order: shows a header sent twice. */
  raw_headers: string[];
  body: Buffer;
  /** Milliseconds since 1970. */
  at: number;
};
export type SinkResponse = {
  status: number;
  delay_ms?: number;
  /** Answers no sooner than this resolves. */
  until?: Promise<void>;
  headers?: Record<string, string>;
  body?: string | Buffer;
};

export type WebhookSink = {
  /** `https://localhost:port`, without a path. */
  url: string;
  port: number;
  requests: SinkRequest[];
  /** How many connections were opened. */
  connections(): number;
  /** Decides the answers from now on; the first is 200 and empty. */
  respond(decide: (request: SinkRequest) => SinkResponse): void;
  /** The first request, past or coming, that the predicate takes; rejects after `timeout_ms`. */
  waitFor(predicate: (request: SinkRequest) => boolean, timeout_ms: number): Promise<SinkRequest>;
  stop(): Promise<void>;
};

const BODY_BYTES_MAX = 64 * 1024 * 1024;

type Waiter = { predicate: (request: SinkRequest) => boolean; resolve: (request: SinkRequest) => void };

/** Starts a sink on 127.0.0.1 with this key and certificate (PEM), which should name `localhost`. */
export async function startWebhookSink(options: { tls: { key: string; cert: string } }): Promise<WebhookSink> {
  const requests: SinkRequest[] = [];
  const waiters = new Set<Waiter>();
  let decide: (request: SinkRequest) => SinkResponse = () => ({ status: 200 });
  let connections = 0;
  const server = createServer(options.tls);
  server.on("connection", () => {
    connections += 1;
  });
  collectRequests(server, (request) => {
    requests.push(request);
    for (const waiter of [...waiters].filter(({ predicate }) => predicate(request))) waiter.resolve(request);
    return decide(request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://localhost:${port}`,
    port,
    requests,
    connections: () => connections,
    respond: (next) => {
      decide = next;
    },
    waitFor: (predicate, timeout_ms) => waitFor({ requests, waiters }, predicate, timeout_ms),
    stop: () => stop(server),
  };
}

function collectRequests(server: Server, handle: (request: SinkRequest) => SinkResponse): void {
  server.on("request", (incoming, response) => {
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on("error", () => {});
    incoming.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) incoming.destroy();
      else chunks.push(chunk);
    });
    incoming.on("end", () => {
      const { method = "", url: path = "", headers, rawHeaders: raw_headers } = incoming;
      const answer = handle({ method, path, headers, raw_headers, body: Buffer.concat(chunks), at: Date.now() });
      const send = () => response.writeHead(answer.status, answer.headers).end(answer.body);
      if (answer.until) answer.until.then(send);
      else if (answer.delay_ms) setTimeout(send, answer.delay_ms).unref();
      else send();
    });
  });
}

function waitFor(
  state: { requests: SinkRequest[]; waiters: Set<Waiter> },
  predicate: (request: SinkRequest) => boolean,
  timeoutMs: number,
): Promise<SinkRequest> {
  const past = state.requests.find(predicate);
  if (past) return Promise.resolve(past);
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      state.waiters.delete(waiter);
    };
    const waiter: Waiter = {
      predicate,
      resolve: (request) => {
        end();
        resolve(request);
      },
    };
    const timer = setTimeout(() => {
      end();
      reject(new Error(`no such request within ${timeoutMs} ms; ${state.requests.length} others came`));
    }, timeoutMs);
    state.waiters.add(waiter);
  });
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
