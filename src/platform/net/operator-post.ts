// HTTP to a server that the operator names in the settings (rspamd), on a private network or this very machine: the
// deny-table of safe-fetch.ts does not apply, its limits do. Follows no redirect and retries nothing.
import type { Agent } from "undici";

export type OperatorRequest = {
  url: string;
  headers: Record<string, string | string[]>;
  body: Buffer;
  /** For the whole request. */
  timeout_ms: number;
  response_bytes_max: number;
};

export type OperatorReply = { kind: "answered"; status: number; body: Buffer } | { kind: "failed"; reason: string };

export type OperatorPost = (request: OperatorRequest) => Promise<OperatorReply>;

const CONNECTIONS_MAX = 32;

/** A way to post; never throws for what the other side does. Idle connections do not keep the process alive. */
export function createOperatorPost(): OperatorPost {
  let agent: Agent | null = null;
  return async (request) => {
    // With the first request: it takes some 20 MiB.
    const undici = await import("undici");
    agent ??= new undici.Agent({ connections: CONNECTIONS_MAX, pipelining: 1 });
    const abort = new AbortController();
    const limit = Promise.withResolvers<OperatorReply>();
    const timer = setTimeout(() => {
      abort.abort();
      limit.resolve({ kind: "failed", reason: `no complete answer within ${request.timeout_ms} ms` });
    }, request.timeout_ms);
    try {
      // undici follows the signal only once a request has a connection, hence the promise beside it.
      return await Promise.race([limit.promise, exchange(agent, request, abort.signal)]);
    } finally {
      clearTimeout(timer);
    }
  };
}

async function exchange(agent: Agent, request: OperatorRequest, signal: AbortSignal): Promise<OperatorReply> {
  const { origin, pathname, search } = new URL(request.url);
  const { headers, body } = request;
  try {
    const answer = await agent.request({ origin, path: `${pathname}${search}`, method: "POST", headers, body, signal });
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > request.response_bytes_max) {
        answer.body.destroy();
        return { kind: "failed", reason: `the answer is larger than ${request.response_bytes_max} bytes` };
      }
      pieces.push(piece);
    }
    return { kind: "answered", status: answer.statusCode, body: Buffer.concat(pieces) };
  } catch (error) {
    const { message, cause } = error as Error;
    return { kind: "failed", reason: cause instanceof Error ? cause.message : message };
  }
}
