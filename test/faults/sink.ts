// The recipients' mail server of the fault scenarios: counts every copy it says 250 to by Message-ID and recipient. It
// may think for a while before its last answer, which is when a killed sender does not know what became of its mail; be
// slow with every answer; or hang up instead of giving the last one.
import { createServer, type Socket } from "node:net";

const EHLO = "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE 52428800\r\n";
const EMPTY = Buffer.alloc(0);
const END = Buffer.from("\r\n.\r\n");
const LINE_END = Buffer.from("\r\n");
const MESSAGE_ID = /^message-id:\s*<([^>\r\n]+)>/im;

export type CountingSink = {
  port: number;
  /** Copies of each message, by Message-ID; a copy counts once its 250 was written. */
  copies: Map<string, number>;
  received(): number;
  /** Second copies of messages whose answer was written to a sender that lived. */
  repeated(): number;
  /** At the very moment in which the sender is killed: what is answered on its connections from now on nobody reads. */
  senderDies(): void;
  /** Sockets that are open now. */
  sockets(): number;
  /** Milliseconds before the last answer, for each message. */
  think(delayMs: () => number): void;
  stop(): Promise<void>;
};

export type SinkOptions = {
  host?: string;
  port?: number;
  /** Counts into the same copies as another sink. */
  copies?: Map<string, number>;
  /** Milliseconds before every answer. */
  reply_ms?: number;
  /** Hangs up behind the final dot of the first copy of each message, which it keeps. */
  forgets?: boolean;
};

/** Starts it on loopback, in this process. */
export async function startCountingSink(options: SinkOptions = {}): Promise<CountingSink> {
  const copies = options.copies ?? new Map<string, number>();
  const sockets = new Set<Socket>();
  /** Of senders that were not killed. */
  const living = new Set<Socket>();
  const answered = new Set<string>();
  let received = 0;
  let repeated = 0;
  let delayMs = (): number => 0;
  const keep = (message: Buffer): Verdict => {
    const id = MESSAGE_ID.exec(message.toString("latin1", 0, 8_000))?.[1] ?? "(none)";
    const before = copies.get(id) ?? 0;
    copies.set(id, before + 1);
    received += 1;
    if (answered.has(id)) repeated += 1;
    return { id, wait_ms: delayMs(), hang_up: options.forgets === true && before === 0 };
  };
  const server = createServer((socket) => {
    for (const set of [sockets, living]) {
      set.add(socket);
      socket.on("close", () => set.delete(socket));
    }
    serve(socket, { keep, answered: (id) => living.has(socket) && answered.add(id), reply_ms: options.reply_ms ?? 0 });
  });
  await new Promise<void>((done) => server.listen(options.port ?? 0, options.host ?? "127.0.0.1", done));
  return {
    port: (server.address() as { port: number }).port,
    copies,
    received: () => received,
    repeated: () => repeated,
    senderDies: () => living.clear(),
    sockets: () => sockets.size,
    think: (next) => {
      delayMs = next;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

type Verdict = { id: string; wait_ms: number; hang_up: boolean };
type State = {
  socket: Socket;
  /** What is read line by line, or message by message. */
  buffer: Buffer;
  /** Of a message whose end has not come yet: behind the buffer, not joined, so that a large one costs each byte once. */
  parts: Buffer[];
  /** The last bytes that came: the end of a message may lie in two reads. */
  tail: Buffer;
  in_message: boolean;
  thinking: boolean;
  reply_ms: number;
  keep(message: Buffer): Verdict;
  answered(id: string): unknown;
};

function serve(socket: Socket, how: Pick<State, "keep" | "answered" | "reply_ms">): void {
  const { reply_ms } = how;
  const state: State = { socket, buffer: EMPTY, parts: [], tail: EMPTY, in_message: false, thinking: false, ...how };
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  say(state, "220 sink ESMTP\r\n", reply_ms);
  socket.on("data", (chunk) => {
    state.parts.push(chunk);
    if (state.in_message && !state.thinking && !endsWith(state, chunk)) return;
    state.buffer = Buffer.concat([state.buffer, ...state.parts]);
    state.parts = [];
    work(state);
  });
}

/** Whether the message that is coming in ends with, or in, this read. */
function endsWith(state: State, chunk: Buffer): boolean {
  const read = Buffer.concat([state.tail, chunk]);
  state.tail = read.subarray(1 - END.length);
  return read.includes(END);
}

function work(state: State): void {
  while (!state.thinking && step(state));
}

/** Handles a line or a message; false when more bytes are needed. */
function step(state: State): boolean {
  const mark = state.in_message ? END : LINE_END;
  const end = state.buffer.indexOf(mark);
  if (end === -1) {
    state.tail = state.buffer.subarray(1 - mark.length);
    return false;
  }
  const taken = state.buffer.subarray(0, end + 2);
  state.buffer = state.buffer.subarray(end + mark.length);
  if (state.in_message) takeMessage(state, taken);
  else {
    const verb = taken.toString("latin1", 0, 4).toUpperCase();
    state.in_message = verb === "DATA";
    say(state, replyTo(verb), state.reply_ms);
  }
  return true;
}

/** Counted before it is answered: the message is the sink's, whether the sender lives to hear of it or not. */
function takeMessage(state: State, message: Buffer): void {
  state.in_message = false;
  const { id, wait_ms, hang_up } = state.keep(message);
  if (hang_up) state.socket.destroy();
  else say(state, "250 2.0.0 ok\r\n", wait_ms + state.reply_ms, () => state.answered(id));
}

function say(state: State, text: string, waitMs: number, said: () => unknown = () => undefined): void {
  const { socket } = state;
  if (waitMs <= 0) {
    if (socket.destroyed) return;
    socket.write(text);
    said();
    return;
  }
  state.thinking = true;
  setTimeout(() => {
    state.thinking = false;
    if (socket.destroyed) return;
    socket.write(text);
    said();
    work(state);
  }, waitMs);
}

function replyTo(verb: string): string {
  if (verb === "EHLO") return EHLO;
  if (verb === "DATA") return "354 go\r\n";
  return verb === "QUIT" ? "221 bye\r\n" : "250 2.0.0 ok\r\n";
}
