// An SMTP client that says exactly what the test says, byte for byte, for tests of our servers: split packets, bare line
// feeds, half-closed connections, TLS in the middle. It knows replies and nothing else.
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

export type RawReply = { code: number; text: string; lines: string[] };

export type RawSmtp = {
  /** Sends bytes as they are. */
  write(bytes: string | Buffer): void;
  /** Sends a line and its CRLF, and gives the reply. */
  ask(line: string): Promise<RawReply>;
  /** The next reply; rejects when the connection ends before or nothing comes in time. */
  reply(timeoutMs?: number): Promise<RawReply>;
  /** EHLO, MAIL, RCPT…, DATA and the content with its final dot; the last reply. */
  deliver(mail: { from: string; to: string[]; content: string | Buffer; helo?: string }): Promise<RawReply>;
  startTls(): Promise<void>;
  /** Resolves when the server has closed. */
  closed: Promise<void>;
  /** Everything received so far. */
  received(): string;
  end(): void;
  destroy(): void;
  socket: Socket | TLSSocket;
};

const REPLY_WITHIN_MS = 10_000;

/** Connects; the greeting is the first reply. */
export async function rawSmtp(port: number, options: { localAddress?: string; host?: string } = {}): Promise<RawSmtp> {
  const plain = connect({ port, host: options.host ?? "127.0.0.1", localAddress: options.localAddress, noDelay: true });
  await new Promise<void>((resolve, reject) => plain.once("connect", resolve).once("error", reject));
  let socket: Socket | TLSSocket = plain;
  let text = "";
  let received = "";
  let isClosed = false;
  const waiters: (() => void)[] = [];
  const closed = Promise.withResolvers<void>();
  const wake = () => {
    for (const waiter of waiters.splice(0)) waiter();
  };
  const onData = (chunk: Buffer) => {
    text += chunk.toString("latin1");
    received += chunk.toString("latin1");
    wake();
  };
  const listen = (of: Socket | TLSSocket) => {
    of.on("data", onData).on("error", () => undefined);
    of.on("close", () => {
      if (of !== socket) return;
      isClosed = true;
      wake();
      closed.resolve();
    });
  };
  listen(plain);

  function takeReply(): RawReply | null {
    const match = /^(?:\d{3}-[^\n]*\n)*(\d{3})(?: [^\n]*)?\n/.exec(text);
    if (!match) return null;
    text = text.slice(match[0].length);
    const lines = match[0].trimEnd().split("\r\n");
    return { code: Number(match[1]), text: match[0].trimEnd(), lines };
  }

  async function reply(timeoutMs = REPLY_WITHIN_MS): Promise<RawReply> {
    const until = Date.now() + timeoutMs;
    for (;;) {
      const found = takeReply();
      if (found) return found;
      if (isClosed) throw new Error("the server closed the connection");
      if (Date.now() >= until) throw new Error(`no reply within ${timeoutMs} ms; so far ${JSON.stringify(text)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, until - Date.now());
        waiters.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  const client: RawSmtp = {
    write: (bytes) => {
      socket.write(bytes);
    },
    ask(line) {
      socket.write(`${line}\r\n`);
      return reply();
    },
    reply,
    async deliver({ from, to, content, helo = "client.example" }) {
      await client.ask(`EHLO ${helo}`);
      const steps = [`MAIL FROM:<${from}>`, ...to.map((address) => `RCPT TO:<${address}>`), "DATA"];
      let last: RawReply | null = null;
      for (const step of steps) {
        last = await client.ask(step);
        if (last.code >= 400) return last;
      }
      const stuffed = content.toString("latin1").replace(/^\./gm, "..");
      socket.write(Buffer.from(`${stuffed}${stuffed.endsWith("\r\n") ? "" : "\r\n"}.\r\n`, "latin1"));
      return reply();
    },
    async startTls() {
      const secured = connectTls({ socket: plain, rejectUnauthorized: false });
      await new Promise<void>((resolve, reject) => secured.once("secureConnect", resolve).once("error", reject));
      plain.off("data", onData);
      socket = secured;
      client.socket = secured;
      listen(secured);
    },
    closed: closed.promise,
    received: () => received,
    end: () => {
      socket.end();
    },
    destroy: () => {
      socket.destroy();
    },
    socket,
  };
  return client;
}
