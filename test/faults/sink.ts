// The recipients' mail server of the fault scenarios: counts every copy it says 250 to by Message-ID and recipient. It
// may think for a while before its last answer, which is when a killed sender does not know what became of its mail.
import { createServer, type Socket } from "node:net";

const EHLO = "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE 52428800\r\n";
const END = Buffer.from("\r\n.\r\n");
const MESSAGE_ID = /^message-id:\s*<([^>\r\n]+)>/im;

export type CountingSink = {
  port: number;
  /** Copies of each message, by Message-ID; a copy counts once its 250 was written. */
  copies: Map<string, number>;
  received(): number;
  /** Milliseconds before the last answer, for each message anew. */
  think(delayMs: () => number): void;
  stop(): Promise<void>;
};

/** Starts it on loopback, in this process. */
export async function startCountingSink(): Promise<CountingSink> {
  const copies = new Map<string, number>();
  const sockets = new Set<Socket>();
  let received = 0;
  let delayMs = (): number => 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    serve(socket, (message) => {
      const id = MESSAGE_ID.exec(message.toString("latin1", 0, 8_000))?.[1] ?? "(none)";
      copies.set(id, (copies.get(id) ?? 0) + 1);
      received += 1;
      return delayMs();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    port: (server.address() as { port: number }).port,
    copies,
    received: () => received,
    think: (next) => {
      delayMs = next;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

type State = { buffer: Buffer; in_message: boolean; thinking: boolean };

function serve(socket: Socket, keep: (message: Buffer) => number): void {
  const state: State = { buffer: Buffer.alloc(0), in_message: false, thinking: false };
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.write("220 sink ESMTP\r\n");
  const work = (): void => {
    while (!state.thinking && step(socket, state, keep, work));
  };
  socket.on("data", (chunk) => {
    state.buffer = state.buffer.length === 0 ? chunk : Buffer.concat([state.buffer, chunk]);
    work();
  });
}

/** Handles a line or a message; false when more bytes are needed. */
function step(socket: Socket, state: State, keep: (message: Buffer) => number, goOn: () => void): boolean {
  const mark = state.in_message ? END : Buffer.from("\r\n");
  const end = state.buffer.indexOf(mark);
  if (end === -1) return false;
  const taken = state.buffer.subarray(0, end + 2);
  state.buffer = state.buffer.subarray(end + mark.length);
  if (!state.in_message) {
    const verb = taken.toString("latin1", 0, 4).toUpperCase();
    state.in_message = verb === "DATA";
    socket.write(replyTo(verb));
    return true;
  }
  state.in_message = false;
  // Counted here: from now on the message is the sink's, whether the sender lives to hear of it or not.
  const waitMs = keep(taken);
  const accept = (): void => {
    state.thinking = false;
    if (!socket.destroyed) socket.write("250 2.0.0 ok\r\n");
  };
  if (waitMs <= 0) {
    accept();
    return true;
  }
  state.thinking = true;
  setTimeout(() => {
    accept();
    goOn();
  }, waitMs);
  return false;
}

function replyTo(verb: string): string {
  if (verb === "EHLO") return EHLO;
  if (verb === "DATA") return "354 go\r\n";
  return verb === "QUIT" ? "221 bye\r\n" : "250 2.0.0 ok\r\n";
}
