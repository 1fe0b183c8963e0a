// An SMTP server that does exactly what a script says, on loopback, with TLS if asked.
// Knows no SMTP: the script says every reply, at the byte.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { TLSSocket, type TLSSocketOptions } from "node:tls";

export type Peer = {
  /** The lines the client has sent so far, in order, without line ends. */
  lines: string[];
  /** Writes text, adding CRLF to each line that lacks it. */
  say: (...lines: string[]) => void;
  raw: (bytes: Buffer | string) => void;
  /** The next line, or null once the client is gone. */
  line: () => Promise<string | null>;
  /** Everything up to and with CRLF.CRLF. */
  message: () => Promise<Buffer | null>;
  /** Waits until the client has gone, and gives what it had sent that nobody took. */
  gone: () => Promise<Buffer>;
  pause: () => void;
  drop: () => void;
  startTls: (pair: KeyPair & TLSSocketOptions) => Promise<void>;
  remoteAddress: string | undefined;
};

export type KeyPair = { key: string; cert: string };

export type ScriptedServer = { port: number; connections: () => number; close: () => Promise<void> };

/** Runs one script for each connection; the script of the first connection is the first given, the last repeats. */
export async function scriptedServer(...scripts: ((peer: Peer) => Promise<void> | void)[]): Promise<ScriptedServer> {
  const sockets = new Set<Socket>();
  const problems: unknown[] = [];
  let connections = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const script = scripts[Math.min(connections++, scripts.length - 1)]!;
    Promise.resolve(script(makePeer(socket))).catch((error) => problems.push(error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      if (problems.length > 0) throw problems[0];
    },
  };
}

function makePeer(plain: Socket): Peer {
  let socket: Socket = plain;
  let buffered = Buffer.alloc(0);
  let isGone = false;
  let wake = () => {};
  const listen = (to: Socket) => {
    to.on("data", (chunk) => {
      buffered = Buffer.concat([buffered, chunk]);
      wake();
    });
    to.on("error", () => {});
    to.on("close", () => {
      isGone = true;
      wake();
    });
  };
  listen(plain);
  const until = async (end: string): Promise<Buffer | null> => {
    for (;;) {
      const at = buffered.indexOf(end);
      if (at >= 0) {
        const taken = buffered.subarray(0, at + end.length);
        buffered = buffered.subarray(at + end.length);
        return taken;
      }
      if (isGone) return null;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const peer: Peer = {
    lines: [],
    remoteAddress: plain.remoteAddress,
    say: (...lines) => peer.raw(lines.map((line) => `${line}\r\n`).join("")),
    raw: (bytes) => {
      if (!isGone) socket.write(bytes);
    },
    line: async () => {
      const line = (await until("\r\n"))?.toString("latin1").slice(0, -2) ?? null;
      if (line !== null) peer.lines.push(line);
      return line;
    },
    message: () => until("\r\n.\r\n"),
    gone: async () => {
      while (!isGone) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return buffered;
    },
    pause: () => void socket.pause(),
    drop: () => void socket.destroy(),
    startTls: async (pair) => {
      plain.removeAllListeners("data");
      const secured = new TLSSocket(plain, { isServer: true, ...pair });
      socket = secured;
      listen(secured);
      await new Promise<void>((resolve) => {
        secured.once("secure", () => resolve());
        secured.once("close", () => resolve());
      });
    },
  };
  return peer;
}

/** Greeting and EHLO, then the rest of the conversation. */
export async function greet(peer: Peer, ...extensions: string[]): Promise<void> {
  peer.say("220 mx.test ESMTP");
  await peer.line();
  const lines = ["mx.test", ...extensions];
  peer.say(...lines.map((line, index) => `250${index === lines.length - 1 ? " " : "-"}${line}`));
}

/** Takes MAIL and RCPT (and RSET) with 250, up to and with DATA, which is not answered. False once the client is gone. */
export async function takeEnvelope(peer: Peer): Promise<boolean> {
  for (;;) {
    const line = await peer.line();
    if (line === null) return false;
    if (line === "DATA") return true;
    if (line === "QUIT") {
      peer.say("221 bye");
      return false;
    }
    peer.say("250 2.1.0 ok");
  }
}
