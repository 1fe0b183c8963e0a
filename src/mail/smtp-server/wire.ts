// One incoming SMTP connection: bytes in through input.ts, replies out in as few packets as pipelining allows
// (RFC 2920 §3.2), and an end to every wait. The socket is read only while somebody waits for it, so a client cannot fill
// our memory by talking. Knows no commands (session.ts).
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";
import { createInput, type InputFault, type Line, type LineEnds } from "./input.ts";

/** `closed`: the client went away. `timeout`: it was too slow. `interrupted`: `interrupt` was called. */
export type Ended = { kind: "ended"; why: "closed" | "timeout" | "interrupted" };
/** `flood`: more came than is worth reading, even to refuse it in good order. */
export type DataEnd = { kind: "end" } | { kind: "flood" } | { kind: "fault"; fault: InputFault } | Ended;

export type DataLimits = {
  /** A pause this long ends the connection. */
  pause_ms: number;
  /** In each window of this length at least `rate_bytes_min` bytes must come. */
  window_ms: number;
  rate_bytes_min: number;
  total_ms: number;
  /** Above the size that is taken: what is read (and dropped) before the connection is cut. */
  bytes_max: number;
};

/** Takes pieces of a message; a promise holds the client back until it resolves. */
export type Sink = (piece: Buffer) => void | Promise<void>;

const CLOSE_WITHIN_MS = 5_000;
/** What a client may still send before a closing connection is cut. */
const DISCARDED_BYTES_MAX = 1_000_000;
const UNSENT_BYTES_MAX = 64 * 1024;

export class ServerWire {
  #socket: Socket;
  readonly #input = createInput();
  #unsent = "";
  #waiter: ((why: "bytes" | Ended["why"]) => void) | null = null;
  #ended: Ended["why"] | null = null;
  #closing = false;
  #isHeldBack = false;
  readonly #now: () => number;

  /** `now`: monotonic milliseconds. */
  constructor(socket: Socket, now: () => number) {
    this.#socket = socket;
    this.#now = now;
    this.#listen(socket);
  }

  get socket(): Socket {
    return this.#socket;
  }

  /** TLS ends before us, at a load balancer on whose word it is taken. Never together with STARTTLS. */
  isCovered = false;

  /** Protocol and cipher, `TLS` where it ends before us; null in the clear. */
  get tls(): string | null {
    if (this.isCovered) return "TLS";
    if (!(this.#socket instanceof TLSSocket)) return null;
    return `${this.#socket.getProtocol() ?? "TLS"} ${this.#socket.getCipher()?.standardName ?? ""}`.trim();
  }

  readonly #onData = (chunk: Buffer) => {
    this.#socket.pause();
    this.#input.push(chunk);
    this.#wake("bytes");
  };
  readonly #onEnd = () => this.#finish("closed");
  readonly #onError = () => this.#finish("closed");
  readonly #onClose = () => this.#finish("closed");

  #listen(socket: Socket): void {
    socket.pause();
    socket.on("data", this.#onData).on("end", this.#onEnd).on("error", this.#onError).on("close", this.#onClose);
    // A data listener alone makes a paused-at-birth socket flow.
    socket.pause();
  }

  #unlisten(socket: Socket): void {
    socket.off("data", this.#onData).off("end", this.#onEnd).off("error", this.#onError).off("close", this.#onClose);
    socket.on("error", () => undefined);
  }

  #wake(why: "bytes" | Ended["why"]): void {
    const waiter = this.#waiter;
    this.#waiter = null;
    waiter?.(why);
  }

  #finish(why: Ended["why"]): void {
    this.#ended ??= why;
    this.#wake(this.#ended);
  }

  /** Makes the current or next wait for a command end: the process stops. */
  interrupt(): void {
    this.#finish("interrupted");
  }

  #more(waitMs: number): Promise<"bytes" | Ended["why"]> {
    if (this.#ended) return Promise.resolve(this.#ended);
    this.flush();
    const woken = this.#wokenWithin(waitMs);
    this.#socket.resume();
    return woken;
  }

  #wokenWithin(waitMs: number): Promise<"bytes" | Ended["why"]> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake("timeout"), waitMs);
      this.#waiter = (why) => {
        clearTimeout(timer);
        resolve(why);
      };
    });
  }

  /**
   * What stands before the first command: `read` is shown all bytes that are there and says how many were its own, or
   * null for more. Null when it was not complete within `waitMs`.
   */
  async readFirst<T>(waitMs: number, read: (bytes: Buffer) => { value: T; octets: number } | null): Promise<T | null> {
    const until = this.#now() + waitMs;
    for (;;) {
      const bytes = this.#input.takeAll();
      const found = read(bytes);
      this.#input.push(found ? bytes.subarray(found.octets) : bytes);
      if (found) return found.value;
      if ((await this.#more(Math.max(1, until - this.#now()))) !== "bytes") return null;
    }
  }

  /** Reads nothing for `ms`; false, and sooner, when the connection ends or is interrupted meanwhile. */
  async holdBack(ms: number): Promise<boolean> {
    const until = this.#now() + ms;
    this.flush();
    this.#isHeldBack = true;
    for (let leftMs = ms; leftMs > 0 && !this.#ended; leftMs = until - this.#now()) {
      await this.#wokenWithin(leftMs);
    }
    this.#isHeldBack = false;
    return this.#ended === null;
  }

  get isHeldBack(): boolean {
    return this.#isHeldBack;
  }

  /** The next command line. The whole line must be there within `waitMs`, however it trickles in. */
  async nextLine(waitMs: number): Promise<Line | Ended> {
    let leftMs = waitMs;
    for (;;) {
      const line = this.#input.takeLine();
      if (line) return line;
      const startedAt = this.#now();
      const why = await this.#more(leftMs);
      if (why !== "bytes") return { kind: "ended", why };
      leftMs = Math.max(1, leftMs - (this.#now() - startedAt));
    }
  }

  /** Reads one message into `sink`. A message that is whole is read whole, also while the process stops. */
  async readData(sink: Sink, limits: DataLimits, lineEnds: LineEnds): Promise<DataEnd> {
    const pace = createPace(limits, this.#now);
    const held: Promise<void>[] = [];
    let bytes = 0;
    const take = (piece: Buffer): void => {
      bytes += piece.length;
      pace.count(piece.length);
      const hold = sink(piece);
      if (hold) held.push(hold);
    };
    this.#input.startData(lineEnds);
    for (;;) {
      const progress = this.#input.takeData(take);
      if (held.length > 0) await Promise.all(held.splice(0));
      if (progress === "end") return { kind: "end" };
      if (progress !== "more") return progress;
      if (bytes > limits.bytes_max) return { kind: "flood" };
      const waitMs = pace.waitMs();
      if (waitMs <= 0) return { kind: "ended", why: "timeout" };
      // A stop waits for messages that are on their way.
      if (this.#ended === "interrupted") this.#ended = null;
      const why = await this.#more(waitMs);
      if (why === "interrupted" || (why === "timeout" && pace.waitMs() > 0)) continue;
      if (why !== "bytes") return { kind: "ended", why };
    }
  }

  /** True if a whole command line (or more content) is here already. */
  hasInput(): boolean {
    return this.#input.waiting() > 0;
  }

  /** Queues a reply; it leaves when the client is waited for. */
  send(text: string): void {
    this.#unsent += text;
    if (this.#unsent.length > UNSENT_BYTES_MAX) this.flush();
  }

  flush(): void {
    if (this.#unsent === "") return;
    if (this.#socket.writable) this.#socket.write(this.#unsent);
    this.#unsent = "";
  }

  /**
   * Answers STARTTLS and goes on under TLS; false when the handshake failed. What the client said in clear behind
   * STARTTLS is forgotten (RFC 3207 §4.2).
   */
  async startTls(context: SecureContext, goAhead: string, waitMs: number): Promise<boolean> {
    this.#input.clear();
    this.send(goAhead);
    this.flush();
    return this.#secure(context, waitMs);
  }

  /** Begins with TLS (RFC 8314 §3); false when the handshake failed. What came already is part of the handshake. */
  beginTls(context: SecureContext, waitMs: number): Promise<boolean> {
    const early = this.#input.takeAll();
    if (early.length > 0) this.#socket.unshift(early);
    return this.#secure(context, waitMs);
  }

  async #secure(context: SecureContext, waitMs: number): Promise<boolean> {
    const plain = this.#socket;
    this.#unlisten(plain);
    const secured = new TLSSocket(plain, { isServer: true, secureContext: context });
    const done = await handshake(secured, waitMs);
    if (!done) {
      secured.destroy();
      this.#ended = "closed";
      return false;
    }
    this.#socket = secured;
    this.#listen(secured);
    return true;
  }

  /** Sends what is queued, closes our side, and gives the client a moment to read it before the connection is cut. */
  close(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.flush();
    const socket = this.#socket;
    this.#unlisten(socket);
    if (socket.destroyed) return;
    let discarded = 0;
    const cut = setTimeout(() => socket.destroy(), CLOSE_WITHIN_MS);
    socket.on("data", (chunk: Buffer) => {
      discarded += chunk.length;
      if (discarded > DISCARDED_BYTES_MAX) socket.destroy();
    });
    socket.on("close", () => clearTimeout(cut));
    // The client's FIN, when it comes, ends it sooner.
    socket.on("end", () => socket.destroySoon());
    socket.end();
    socket.resume();
  }
}

function handshake(secured: TLSSocket, waitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (done: boolean): void => {
      clearTimeout(timer);
      secured.off("secure", onSecure).off("error", onLost).off("close", onLost);
      if (!done) secured.on("error", () => undefined);
      resolve(done);
    };
    const onSecure = () => settle(true);
    const onLost = () => settle(false);
    const timer = setTimeout(() => settle(false), waitMs);
    secured.once("secure", onSecure).once("error", onLost).once("close", onLost);
  });
}

/** How long the client may still take: for the next piece, for its window's bytes, for all of it. */
function createPace(limits: DataLimits, clock: () => number): { count(bytes: number): void; waitMs(): number } {
  const startedAt = clock();
  let windowAt = startedAt;
  let windowBytes = 0;
  let lastAt = startedAt;
  return {
    count(bytes) {
      lastAt = clock();
      windowBytes += bytes;
      if (lastAt - windowAt >= limits.window_ms && windowBytes >= limits.rate_bytes_min) {
        windowAt = lastAt;
        windowBytes = 0;
      }
    },
    waitMs() {
      const now = clock();
      const byWindow = windowBytes >= limits.rate_bytes_min ? Number.POSITIVE_INFINITY : windowAt + limits.window_ms;
      return Math.min(lastAt + limits.pause_ms, byWindow, startedAt + limits.total_ms) - now;
    },
  };
}
