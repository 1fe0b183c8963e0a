// A real SMTP server on loopback that keeps what it gets (the library smtp-server). `answer` decides per recipient or
// message; everything received is counted by Message-ID.
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { until } from "./until.ts";

export type Received = {
  from: string;
  to: string[];
  bytes: Buffer;
  message_id: string;
  secure: boolean;
  at: number;
  /** The address the client came from, and the name it gave in EHLO. */
  remote_ip: string;
  ehlo: string;
  /** The user name of a login. */
  user: string | null;
};
export type SinkReply = { code: number; text: string } | null;

export type SmtpSink = {
  port: number;
  messages: Received[];
  connections: number;
  /** Decides the answer to RCPT; null accepts. */
  onRcpt(decide: (address: string) => SinkReply): void;
  /** Decides the answer to the final dot; null accepts and keeps the message. */
  onMessage(decide: (message: Received) => SinkReply | Promise<SinkReply>): void;
  waitFor(count: number, timeoutMs?: number): Promise<Received[]>;
  stop(): Promise<void>;
};

/**
 * Starts a sink; `options` go to smtp-server (TLS key and certificate, hidden STARTTLS, …). `at` is where: several servers
 * may share a port on different loopback addresses.
 */
export async function startSmtpSink(
  options: SMTPServerOptions = {},
  at: { host?: string; port?: number } = {},
): Promise<SmtpSink> {
  let rcpt: (address: string) => SinkReply = () => null;
  let message: (message: Received) => SinkReply | Promise<SinkReply> = () => null;
  const messages: Received[] = [];
  let connections = 0;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["AUTH"],
    disableReverseLookup: true,
    hideSTARTTLS: options.key === undefined,
    maxClients: 1_000,
    logger: false,
    onConnect(_session, done) {
      connections += 1;
      done();
    },
    onRcptTo(address, _session, done) {
      done(toError(rcpt(address.address)));
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", async () => {
        const bytes = Buffer.concat(chunks);
        const received: Received = {
          from: session.envelope.mailFrom ? session.envelope.mailFrom.address : "",
          to: session.envelope.rcptTo.map((recipient) => recipient.address),
          bytes,
          message_id: /^message-id:\s*<([^>]+)>/im.exec(bytes.subarray(0, 20_000).toString("latin1"))?.[1] ?? "",
          secure: session.secure,
          at: Date.now(),
          remote_ip: session.remoteAddress,
          ehlo: String(session.hostNameAppearsAs),
          user: typeof session.user === "string" ? session.user : null,
        };
        const reply = await message(received);
        if (!reply) messages.push(received);
        done(toError(reply));
      });
    },
    ...options,
  });
  server.on("error", () => undefined);
  await new Promise<void>((resolve) => server.listen(at.port ?? 0, at.host ?? "127.0.0.1", resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    messages,
    get connections() {
      return connections;
    },
    onRcpt: (decide) => {
      rcpt = decide;
    },
    onMessage: (decide) => {
      message = decide;
    },
    async waitFor(count, timeoutMs = 10_000) {
      await until(
        () => `the sink has ${messages.length} of ${count} messages`,
        () => messages.length >= count,
        timeoutMs,
      );
      return messages;
    },
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

function toError(reply: SinkReply): Error | null {
  return reply ? Object.assign(new Error(reply.text), { responseCode: reply.code }) : null;
}
