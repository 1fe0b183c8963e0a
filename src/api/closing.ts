// Ending the HTTP server in good order. Node waits for every request that has begun, and once it does, nothing limits any
// more how long a client may take for one: whoever sent half of a request and fell silent would be waited for without end.
// So a client that has not finished its request is given some seconds, and one that has gets its answer. Not here: refusing
// what begins after the stop (server.ts).
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** For a request of which something is still to come, or of which nothing came yet. */
const UNFINISHED_MS = 5_000;
/** For the answer to a whole request. */
const ANSWERED_WITHIN_MS = 30_000;

type Closable = { server: Server; close(): Promise<unknown> };

/** A function that closes `app`, within 30 s whatever its clients do. To be made before the server listens. */
export function closerOf(app: Closable): () => Promise<void> {
  const { server } = app;
  const asking = new Map<Socket, IncomingMessage | null>();
  server.on("connection", (socket: Socket) => {
    asking.set(socket, null);
    socket.once("close", () => asking.delete(socket));
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    asking.set(socket, request);
    response.once("close", () => {
      if (asking.get(socket) === request) asking.set(socket, null);
    });
  });

  function endUnfinished(): void {
    for (const [socket, request] of asking) if (!request?.complete) socket.destroy();
  }

  return async () => {
    const unfinished = setInterval(endUnfinished, UNFINISHED_MS);
    const unanswered = setTimeout(() => server.closeAllConnections(), ANSWERED_WITHIN_MS);
    try {
      await app.close();
    } finally {
      clearInterval(unfinished);
      clearTimeout(unanswered);
    }
  };
}
