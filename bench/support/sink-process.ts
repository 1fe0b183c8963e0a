// The receiving end of the benchmarks, a process of its own: accepts every message as fast as it can be read, counts
// unique Message-IDs, keeps every n-th message whole for the verification of its signature. Reports to the parent.
import { createServer, type Socket } from "node:net";

const SAMPLE_EVERY = 500;
const EHLO = "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE 52428800\r\n";
const END = Buffer.from("\r\n.\r\n");
const MESSAGE_ID = /^message-id:\s*<([^>\r\n]+)>/im;

const seen = new Set<string>();
const samples: string[] = [];
let received = 0;
let arrivals: [string, number][] = [];

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  let buffer = Buffer.alloc(0);
  let inData = false;
  socket.write("220 sink ESMTP\r\n");
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk]);
    let answer = "";
    for (;;) {
      if (inData) {
        const end = buffer.indexOf(END);
        if (end === -1) break;
        keep(buffer.subarray(0, end + 2));
        buffer = buffer.subarray(end + END.length);
        inData = false;
        answer += "250 2.0.0 ok\r\n";
        continue;
      }
      const end = buffer.indexOf("\r\n");
      if (end === -1) break;
      const verb = buffer.toString("latin1", 0, Math.min(end, 4)).toUpperCase();
      buffer = buffer.subarray(end + 2);
      answer += reply(verb);
      if (verb === "DATA") inData = true;
      if (verb === "QUIT") {
        socket.end(answer);
        return;
      }
    }
    if (answer !== "") socket.write(answer);
  });
}

function reply(verb: string): string {
  if (verb === "EHLO") return EHLO;
  if (verb === "DATA") return "354 go\r\n";
  if (verb === "QUIT") return "221 bye\r\n";
  return "250 2.0.0 ok\r\n";
}

function keep(message: Buffer): void {
  received += 1;
  const id = MESSAGE_ID.exec(message.toString("latin1", 0, 6_000))?.[1];
  if (id) seen.add(id);
  if (id) arrivals.push([id, performance.timeOrigin + performance.now()]);
  if (received % SAMPLE_EVERY === 1) samples.push(message.toString("base64"));
}

const server = createServer(serve);
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as { port: number }).port }));
process.on("message", (message: { ask: "counts" | "samples" | "arrivals" | "reset" }) => {
  if (message.ask === "reset") {
    seen.clear();
    samples.length = 0;
    arrivals = [];
    received = 0;
    process.send?.({ reset: true });
  } else if (message.ask === "samples") process.send?.({ samples });
  else if (message.ask === "arrivals") process.send?.({ arrivals });
  else process.send?.({ received, unique: seen.size });
});
process.on("disconnect", () => process.exit(0));
