// One outgoing SMTP connection as a pair of streams with rules: every reply has a question, every wait has an end.
// Counts on nothing the server does: replies are bounded (reply.ts), a wait ends at its deadline however slowly bytes
// trickle in, and a reply nobody asked for ends the connection. Knows no SMTP commands (session.ts, transaction.ts).
import { connect, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { tlsFailureWords } from "../../text/tls-words.ts";
import { type RawReply, ReplyReader, sanitizeText, toReply } from "./reply.ts";

/** Why a connection ended. `stray` is a reply that came without a question. */
export type WireFailure = {
  cause: "network" | "closed" | "timeout" | "protocol" | "tls" | "aborted";
  detail: string;
  stray: RawReply | null;
};

export type Dial = { address: string; port: number; local_address?: string; timeout_ms: number; signal?: AbortSignal };

const KEEP_ALIVE_MS = 30_000;

type Wait = { count: number; replies: RawReply[]; timeoutMs: number; resolve: (replies: RawReply[]) => void };

/** Opens a TCP connection to an address (never a name: resolving is the caller's). */
export function dialWire(dial: Dial): Promise<Wire | WireFailure> {
  if (isIP(dial.address) === 0) throw new Error("dialWire needs an IP address");
  return new Promise((resolve) => {
    if (dial.signal?.aborted) return resolve({ cause: "aborted", detail: "aborted before connecting", stray: null });
    const socket = connect({
      host: dial.address,
      port: dial.port,
      localAddress: dial.local_address,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    });
    const settle = (failure: WireFailure | null) => {
      clearTimeout(timer);
      socket.off("connect", onConnect).off("error", onError);
      dial.signal?.removeEventListener("abort", onAbort);
      if (!failure) return resolve(new Wire(socket, dial.signal));
      socket.on("error", ignore).destroy();
      resolve(failure);
    };
    const onConnect = () => settle(null);
    const onError = (error: Error) => settle({ cause: "network", detail: networkWords(error), stray: null });
    const onAbort = () => settle({ cause: "aborted", detail: "aborted while connecting", stray: null });
    const timer = setTimeout(() => {
      settle({ cause: "timeout", detail: `no connection within ${dial.timeout_ms} ms`, stray: null });
    }, dial.timeout_ms);
    dial.signal?.addEventListener("abort", onAbort);
    socket.once("connect", onConnect).once("error", onError);
  });
}

/** Under TLS an alert may come after the handshake: TLS 1.3 servers ask for a client's certificate that late. */
function isOpenSsl(error: NodeJS.ErrnoException): boolean {
  return error.code?.startsWith("ERR_SSL_") === true;
}

/** What the system says of a connection by a code, for people who read timelines. */
const NETWORK = new Map([
  ["ECONNREFUSED", "the server refuses connections"],
  ["ECONNRESET", "the server broke the connection off"],
  ["EPIPE", "the server broke the connection off"],
  ["ETIMEDOUT", "the server does not answer"],
  ["EHOSTUNREACH", "there is no way to the server from here"],
  ["ENETUNREACH", "there is no way to the server's network from here"],
  ["EADDRNOTAVAIL", "this machine does not have the address that the mail is to leave from"],
]);

/** The code stays, in parentheses: it is what one searches for. */
function networkWords({ code = "", message }: NodeJS.ErrnoException): string {
  const words = NETWORK.get(code);
  return words === undefined ? sanitizeText(message) : `${words} (${code})`;
}

function ignore(): void {}

export class Wire {
  failure: WireFailure | null = null;
  #socket: Socket;
  #reader: ReplyReader;
  #wait: Wait | null = null;
  #drain: ((ok: boolean) => void) | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.fail("aborted", "aborted by the caller");

  constructor(socket: Socket, signal?: AbortSignal) {
    this.#socket = socket;
    this.#reader = new ReplyReader((reply) => this.#onReply(reply));
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort);
    this.#listen(socket);
  }

  get socket(): Socket {
    return this.#socket;
  }

  readonly #onData = (chunk: Buffer) => {
    const defect = this.failure ? null : this.#reader.push(chunk);
    if (defect) this.fail("protocol", defect);
  };
  readonly #onDrain = () => this.#drained(true);
  readonly #onEnd = () => this.fail("closed", "the server closed the connection");
  readonly #onError = (error: Error) =>
    this.fail("network", isOpenSsl(error) ? tlsFailureWords(error) : networkWords(error));
  readonly #onClose = () => this.fail("closed", "the connection was closed");

  /** Nothing is read before the first question: the greeting may be there before anyone waits for it. */
  #listen(socket: Socket): void {
    socket.pause();
    socket.on("data", this.#onData).on("drain", this.#onDrain);
    socket.on("end", this.#onEnd).on("error", this.#onError).on("close", this.#onClose);
  }

  #unlisten(socket: Socket): void {
    socket.off("data", this.#onData).off("drain", this.#onDrain);
    socket.off("end", this.#onEnd).off("error", this.#onError).off("close", this.#onClose);
    socket.on("error", ignore);
  }

  /**
   * Writes commands and waits for as many replies. Each reply may take `timeoutMs`. Gives fewer replies than asked for
   * when the connection failed or the server said 421, after which it only closes (RFC 5321 §3.8).
   */
  ask(commands: string | Buffer, count: number, timeoutMs: number): Promise<RawReply[]> {
    if (this.failure) return Promise.resolve([]);
    return new Promise((resolve) => {
      if (commands.length > 0) this.#socket.write(commands);
      this.#wait = { count, replies: [], timeoutMs, resolve };
      this.#arm(timeoutMs, "no reply");
      if (this.#socket.isPaused()) this.#socket.resume();
    });
  }

  #onReply(reply: RawReply): void {
    // A reply in the same packet as the one that ended the connection means nothing any more.
    if (this.failure) return;
    const wait = this.#wait;
    if (!wait) {
      this.#end("protocol", `reply ${reply.code} without a question: ${toReply(reply).text}`, reply);
      return;
    }
    wait.replies.push(reply);
    if (reply.code === 421) this.#end("closed", "the server said 421", null);
    else if (wait.replies.length === wait.count) this.#answer();
    else this.#arm(wait.timeoutMs, "no reply");
  }

  #answer(): void {
    const wait = this.#wait;
    this.#wait = null;
    clearTimeout(this.#timer);
    wait?.resolve(wait.replies);
  }

  /** Writes a piece of the message; true once there is room for more. */
  write(chunk: Buffer, timeoutMs: number): Promise<boolean> {
    if (this.failure) return Promise.resolve(false);
    if (this.#socket.write(chunk)) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#drain = resolve;
      this.#arm(timeoutMs, "the server does not read");
    });
  }

  #drained(ok: boolean): void {
    const drain = this.#drain;
    if (!drain) return;
    this.#drain = null;
    clearTimeout(this.#timer);
    drain(ok);
  }

  /**
   * Writes the last piece and waits for its reply. `isFlushed` tells whether the kernel took the very last byte: if it
   * did not, the server cannot have it.
   */
  async askLast(chunk: Buffer, timeoutMs: number): Promise<{ reply: RawReply | undefined; isFlushed: boolean }> {
    if (this.failure) return { reply: undefined, isFlushed: false };
    // Under TLS the moment the kernel has the bytes is less certain: count the call itself.
    let isFlushed = "encrypted" in this.#socket;
    this.#socket.write(chunk, (error) => {
      if (!error) isFlushed = true;
    });
    const [reply] = await this.ask("", 1, timeoutMs);
    return { reply, isFlushed };
  }

  #arm(timeoutMs: number, what: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.fail("timeout", `${what} within ${timeoutMs} ms`), timeoutMs);
  }

  /**
   * Starts TLS on this connection. Bytes that came before the handshake are never taken for replies of the protected
   * session (RFC 3207 §6, CVE-2011-0411). Certificates are judged by the caller, before anything else is sent.
   */
  upgrade(options: ConnectionOptions, timeoutMs: number): Promise<TLSSocket | null> {
    if (!this.failure && this.#reader.isPartial) this.fail("protocol", "bytes in clear after the reply to STARTTLS");
    if (this.failure) return Promise.resolve(null);
    const plain = this.#socket;
    this.#unlisten(plain);
    return new Promise((resolve) => {
      const secured = connectTls({ ...options, socket: plain });
      this.#socket = secured;
      const settle = (result: TLSSocket | null) => {
        clearTimeout(timer);
        secured.off("secureConnect", onSecure).off("error", onLost).off("close", onLost);
        if (result) this.#listen(result);
        resolve(result);
      };
      const onSecure = () => settle(this.failure ? null : secured);
      const onLost = (error?: Error | boolean) => {
        const reason =
          error instanceof Error ? tlsFailureWords(error) : "the connection was closed during the TLS handshake";
        this.fail("tls", reason);
        settle(null);
      };
      const timer = setTimeout(() => {
        this.fail("timeout", `no TLS handshake within ${timeoutMs} ms`);
        settle(null);
      }, timeoutMs);
      secured.once("secureConnect", onSecure).once("error", onLost).once("close", onLost);
    });
  }

  /** Ends the connection at once; the first reason stays. Every wait gets what there is. */
  fail(cause: WireFailure["cause"], detail: string): void {
    this.#end(cause, detail, null);
  }

  #end(cause: WireFailure["cause"], detail: string, stray: RawReply | null): void {
    if (this.failure) return;
    this.failure = { cause, detail: sanitizeText(detail), stray };
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#answer();
    this.#drained(false);
    clearTimeout(this.#timer);
    this.#socket.on("error", ignore).destroy();
  }
}

/** Resolves after the event loop has read every socket that had bytes waiting. */
export function nextPoll(): Promise<void> {
  return new Promise((resolve) => {
    // The first runs at the end of this turn, the second after the next turn's poll phase.
    setImmediate(() => setImmediate(resolve));
  });
}
