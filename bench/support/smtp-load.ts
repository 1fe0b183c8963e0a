// The load generator for receiving: connections that each deliver one message after another, MAIL, RCPT and DATA in one
// packet (RFC 2920), and count what was taken.
import { connect, type Socket } from "node:net";

export type SmtpLoad = { accepted: number; refused: Map<string, number>; seconds: number };

/** Delivers `count` messages (given by number, CRLF-ended and dot-stuffed) over `connections` connections. */
export async function deliverMany(options: {
  port: number;
  count: number;
  connections: number;
  sender: string;
  recipient(n: number): string;
  message(n: number): Buffer;
}): Promise<SmtpLoad> {
  const load: SmtpLoad = { accepted: 0, refused: new Map(), seconds: 0 };
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: options.connections }, async () => {
      const socket = connect({ port: options.port, host: "127.0.0.1", noDelay: true });
      const replies = readReplies(socket);
      await replies(1);
      socket.write("EHLO client.example\r\n");
      await replies(1);
      for (let n = next++; n < options.count; n = next++) {
        socket.write(`MAIL FROM:<${options.sender}>\r\nRCPT TO:<${options.recipient(n)}>\r\nDATA\r\n`);
        let answer = (await replies(3)).find((line) => !/^[23]/.test(line));
        if (answer === undefined) {
          socket.write(Buffer.concat([options.message(n), Buffer.from(".\r\n")]));
          [answer = ""] = await replies(1);
        } else {
          socket.write("RSET\r\n");
          await replies(1);
        }
        if (answer.startsWith("250")) load.accepted += 1;
        else load.refused.set(answer.slice(0, 9), (load.refused.get(answer.slice(0, 9)) ?? 0) + 1);
      }
      socket.end("QUIT\r\n");
    }),
  );
  load.seconds = (performance.now() - startedAt) / 1000;
  return load;
}

/** Waits for so many replies; the last lines of each. Rejects when the connection ends before. */
function readReplies(socket: Socket): (count: number) => Promise<string[]> {
  let text = "";
  let last: string[] = [];
  let isClosed = false;
  let waiting: { count: number; done: (lines: string[]) => void; fail: (error: Error) => void } | null = null;
  const check = () => {
    if (!waiting || last.length < waiting.count) return;
    const { count, done } = waiting;
    waiting = null;
    done(last.splice(0, count));
  };
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    const lines = text.split("\r\n");
    text = lines.pop() ?? "";
    last = [...last, ...lines.filter((line) => line[3] === " ")];
    check();
  });
  const ended = () =>
    new Error(`the server closed the connection; its last words: ${last.join(" ") || text || "none"}`);
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    isClosed = true;
    waiting?.fail(ended());
  });
  return (count) =>
    new Promise((done, fail) => {
      waiting = { count, done, fail };
      check();
      if (isClosed) fail(ended());
    });
}
