// One line in the log for each request that was answered: which it was, whose, what it asked for, what it got and how long
// that took. Never the path itself or a query, which hold addresses; the route has the path's shape. The id is the answer's
// X-Request-ID. `/healthz`, which monitors ask every second, is logged at the level `debug`.
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "../platform/process/log.ts";

/** A hook for `onResponse`. */
export function logAccess(log: Log) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { account, method, routeOptions } = request;
    const route = routeOptions.url ?? null;
    const line = {
      request_id: request.id,
      key_id: account?.key_id ?? null,
      org_id: account?.org_id ?? null,
      method,
      route,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
    };
    if (route === "/healthz") log.debug(line, "request");
    else log.info(line, "request");
  };
}

/** The same for a request that could not be read, or that is answered before it has a route. */
export function logUnread(log: Log, request_id: string, status: number): void {
  log.info({ request_id, key_id: null, org_id: null, method: null, route: null, status, ms: 0 }, "request");
}
