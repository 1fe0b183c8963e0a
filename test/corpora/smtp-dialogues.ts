// Conversations of another server's tests and sequences that smuggle messages, over raw sockets: to the MX and to
// submission (where a script logs in), and the other way round, what leaves our own client on the wire. Of an answer only
// its class is held, as the README says; names, passwords and sizes are ours.
import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { basename, join } from "node:path";
import { startSubmitting } from "../../src/app.ts";
import { splitMessage } from "../../src/mail/mime/parse-head.ts";
import { type RawSmtp, rawSmtp } from "../support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../support/receiving.ts";
import { receiveAt } from "../support/stories.ts";
import { caseFiles, readSide } from "./case-files.ts";
import { readScript, type Step } from "./cmy-script.ts";
import type { Corpus, Tally } from "./tally.ts";

const USER = "user@in.example";
const THEIR_USER = /\buser@testserver\b/g;
const THEIR_PASSWORD = "secretpassword";
/** Their server takes 1 MiB, ours 35: what is sent to be too large must be so here as well. */
const THEIR_SIZE_MAX = 1024 * 1024;
const OUR_SIZE = 36 * 1024 * 1024;
const REPLY_WITHIN_MS = 20_000;
const SENT_WITHIN_MS = 20_000;
const SUBMISSION_PORTS = new Set([1465, 1587, 465, 587]);

/** Where two servers may differ: what was said, what the script expects and what we answer. */
const REASONS: { said: RegExp; expected: string; got: string; reason: string }[] = [
  { said: /^VRFY/i, expected: "5", got: "2", reason: "252 to VRFY is for servers that do not tell (RFC 5321 §3.5.3)" },
  { said: /^HELP/i, expected: "5", got: "2", reason: "HELP is answered by 214 (RFC 5321 §4.1.1.8), which nobody must" },
  { said: /^EXPN/i, expected: "2", got: "5", reason: "EXPN may be refused with 502 (RFC 5321 §7.3)" },
  {
    said: /^AUTH/i,
    expected: "5",
    got: "4",
    reason: "a connection with too many failed logins ends with 421 (RFC 4954 §4, RFC 5321 §3.8)",
  },
  {
    said: /^a line that is no field$/,
    expected: "5",
    got: "2",
    reason: "no message is refused for defects of its header (RFC 5321 §3.3)",
  },
  { said: /^RCPT/i, expected: "4", got: "5", reason: "an unknown user is a permanent error (RFC 5321 §3.5.1, 550)" },
];

/** Stands for the end of a message whose header is none. */
const ODD_HEADER = "a line that is no field";

function isOddHeader(content: string): boolean {
  return splitMessage(Buffer.from(content.replace(/\.\r\n$/, ""), "latin1")).defects.includes("line_without_field");
}

export const smtpDialogues: Corpus = {
  name: "smtp-dialogues",
  slow: true,
  async run(dir, tally) {
    const sink = await startWireSink();
    const receiving = await startTestReceiving({
      POSTERN_SUBMISSION: "127.0.0.1:0",
      POSTERN_SUBMISSIONS: "127.0.0.1:0",
      POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    });
    const submission = await startSubmitting(receiving.api.world, receiving.api.engine);
    try {
      await addAlias(receiving, "user", { action: "store" });
      receiveAt(receiving.dns, "far.example");
      const ports = {
        mx: receiving.port,
        submission: submission.port,
        submissions: submission.implicit_port as number,
      };
      for (const file of caseFiles(dir, "**/*.cmy")) {
        const name = basename(file, ".cmy");
        await tally.attempt(name, async () => {
          const steps = readScript(readFileSync(join(dir, file), "utf8"));
          if (typeof steps === "string") tally.judge(name, "a script", steps);
          else await play(tally, name, steps, { receiving, ports });
        });
      }
      await smuggle(tally, join(dir, "end-of-data-sequences.json"), { receiving, ports, sink });
    } finally {
      await submission.stop();
      await receiving.close();
      await sink.stop();
    }
  },
};

async function smuggle(tally: Tally, path: string, place: Place & { sink: WireSink }): Promise<void> {
  const { inbound = [], outbound = [] } = readSide<{ inbound?: string[]; outbound?: string[] }>(tally, path) ?? {};
  for (const sequence of inbound) {
    const name = `inbound ${JSON.stringify(sequence)}`;
    await tally.attempt(name, async () => {
      const { expected, got } = await smuggleIn(place.receiving, sequence);
      tally.judge(name, expected, got);
    });
  }
  for (const sequence of outbound) {
    await tally.attempt(`outbound ${JSON.stringify(sequence)}`, () => smuggleOut(tally, place, sequence));
  }
}

type Ports = { mx: number; submission: number; submissions: number };
type Place = { receiving: Receiving; ports: Ports };

// --- scripts -----------------------------------------------------------------------------------------------------------

/** Plays one script; each expected answer is a case. */
async function play(tally: Tally, name: string, steps: Step[], place: Place): Promise<void> {
  const clients = new Map<string, RawSmtp>();
  let said = "";
  let content = "";
  let number = 0;
  for (const step of steps) {
    const client = clients.get(step.client);
    if (step.kind === "connect") clients.set(step.client, await connect(step, place.ports));
    else if (step.kind === "close") client?.destroy();
    else if (step.kind === "send") {
      said = step.bytes.toString("latin1", 0, 80).trim() || said;
      content = /^DATA$/i.test(said) ? "" : content + step.bytes.toString("latin1");
      client?.write(ourBytes(step.bytes, place.receiving));
    } else {
      number += 1;
      const got = await answerClass(client);
      const known = said === "." && isOddHeader(content) ? ODD_HEADER : said;
      const reason = REASONS.find(
        (one) => one.said.test(known) && one.got === got && step.classes.includes(one.expected),
      );
      const expected = step.classes.includes(got) ? got : step.classes.join(" or ");
      tally.judge(`${name} ${number}: ${step.line}`, expected, got, reason?.reason ?? null);
    }
  }
  for (const client of clients.values()) client.destroy();
}

async function connect({ tls, port }: Step & { kind: "connect" }, ports: Ports): Promise<RawSmtp> {
  const to = tls ? ports.submissions : SUBMISSION_PORTS.has(port) ? ports.submission : ports.mx;
  const client = await rawSmtp(to);
  if (tls) await client.startTls();
  return client;
}

/** First digit of the next answer; `closed` when the server ended the connection instead. */
async function answerClass(client: RawSmtp | undefined): Promise<string> {
  try {
    return (await client?.reply(REPLY_WITHIN_MS))?.text[0] ?? "no connection";
  } catch (error) {
    return (error as Error).message.includes("closed") ? "closed" : "no answer";
  }
}

/** Their user, password and size made ours. */
function ourBytes(bytes: Buffer, { api }: Receiving): Buffer {
  if (bytes.length > THEIR_SIZE_MAX) {
    return Buffer.from(bytes.toString("latin1").repeat(Math.ceil(OUR_SIZE / bytes.length)), "latin1");
  }
  const text = bytes
    .toString("latin1")
    .replace(THEIR_USER, USER)
    .replace(/\btestserver\b/g, "in.example");
  const ours = text.replace(/[A-Za-z0-9+/]{16,}={0,2}/g, (word) => {
    const parts = Buffer.from(word, "base64").toString("latin1").split("\0");
    if (parts.length !== 3 || parts[2] !== THEIR_PASSWORD) return word;
    return Buffer.from(`\0postern\0${api.live_key}`).toString("base64");
  });
  return Buffer.from(ours, "latin1");
}

// --- smuggling in --------------------------------------------------------------------------------------------------------

const ENVELOPE: [line: string, code: number][] = [
  ["EHLO x", 250],
  ["MAIL FROM:<a@b.example>", 250],
  [`RCPT TO:<${USER}>`, 250],
  ["DATA", 354],
];

const RIGHT = "refused, or one message";

/** A second message hidden behind the sequence must never be one: the first is refused, or taken with the rest as its text. */
async function smuggleIn(receiving: Receiving, sequence: string) {
  const client = await rawSmtp(receiving.port);
  await client.reply();
  const answers: number[] = [];
  for (const [line] of ENVELOPE) answers.push((await client.ask(line)).code);
  const before = client.received().length;
  const hidden = `MAIL FROM:<evil@b.example>\r\nRCPT TO:<${USER}>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n.\r\n`;
  client.write(Buffer.from(`Subject: outer\r\n\r\nbody${sequence}${hidden}`, "latin1"));
  client.write("QUIT\r\n");
  await Promise.race([client.closed, new Promise((done) => setTimeout(done, REPLY_WITHIN_MS).unref())]);
  const answer = client.received().slice(before);
  const taken = answer.match(/^250 2\.0\.0 taken/gm)?.length ?? 0;
  const isRight = taken === 1 || (taken === 0 && /^5\d\d /.test(answer));
  const { body } = await receiving.api.ask("GET", "/v1/inbound-emails?subject=smuggled");
  return {
    expected: { answers: ENVELOPE.map(([, code]) => code), outcome: RIGHT, smuggled: 0 },
    got: { answers, outcome: isRight ? RIGHT : answer, smuggled: body.total },
  };
}

// --- smuggling out -------------------------------------------------------------------------------------------------------

type WireSink = { port: number; messages: Buffer[]; stop(): Promise<void> };

/** Text with the sequence goes out by the API and by submission: refused, or on the wire without a bare CR, LF or NUL. */
async function smuggleOut(tally: Tally, place: Place & { sink: WireSink }, sequence: string): Promise<void> {
  const hidden = `before${sequence}MAIL FROM:<evil@in.example>\r\nRCPT TO:<x@far.example>\r\nDATA\r\nSubject: smuggled\r\n\r\nx`;
  const mail = { from: USER, to: ["b@far.example"], subject: "outer" };
  const bodies = [
    { text_body: hidden },
    { html_body: `<p>${hidden}</p>` },
    { text_body: "x", headers: { "X-A": sequence } },
  ];
  for (const body of bodies) {
    const before = place.sink.messages.length;
    const { status } = await place.receiving.api.ask("POST", "/v1/send", { ...mail, ...body });
    const got =
      status === 202 ? await onTheWire(place.sink, before) : status === 400 ? "refused" : `answered ${status}`;
    const name = `outbound, API, ${Object.keys(body).join(" and ")} ${JSON.stringify(sequence)}`;
    tally.judge(name, "normalised or refused", isSafe(got) ? "normalised or refused" : got);
  }
  const before = place.sink.messages.length;
  const code = await submit(place, `From: ${USER}\r\nSubject: outer\r\n\r\n${hidden}`);
  const got =
    code === 250 ? await onTheWire(place.sink, before) : code === 554 ? "refused" : `answered ${code}, not 554`;
  tally.judge(
    `outbound, SMTP ${JSON.stringify(sequence)}`,
    "normalised or refused",
    isSafe(got) ? "normalised or refused" : got,
  );
}

function isSafe(got: string): boolean {
  return got === "normalised" || got === "refused";
}

async function submit({ receiving, ports }: Place, content: string): Promise<number> {
  const client = await rawSmtp(ports.submissions);
  await client.startTls();
  await client.reply();
  const login = Buffer.from(`\0postern\0${receiving.api.live_key}`).toString("base64");
  const lines = ["EHLO x", `AUTH PLAIN ${login}`, `MAIL FROM:<${USER}>`, "RCPT TO:<b@far.example>", "DATA"];
  for (const line of lines) {
    const answer = await client.ask(line);
    if (answer.code >= 400) throw new Error(`${line.split(" ")[0]}: ${answer.text}`);
  }
  client.write(Buffer.from(`${content}\r\n.\r\n`, "latin1"));
  const { code } = await client.reply();
  client.destroy();
  return code;
}

/** Waits for exactly one more message and looks at its bytes. */
async function onTheWire(sink: WireSink, before: number): Promise<string> {
  const until = performance.now() + SENT_WITHIN_MS;
  while (sink.messages.length === before) {
    if (performance.now() > until) return "nothing was sent";
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  if (sink.messages.length !== before + 1) return `${sink.messages.length - before} messages were sent`;
  const bytes = sink.messages.at(-1)?.toString("latin1") ?? "";
  return /\r(?!\n)|(?<!\r)\n|\0/.test(bytes) ? "a bare CR, LF or NUL was sent" : "normalised";
}

/** A server that keeps what comes between DATA and CRLF.CRLF byte for byte, and says 250 to everything else. */
async function startWireSink(): Promise<WireSink> {
  const messages: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    converse(socket, messages);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    messages,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function converse(socket: Socket, messages: Buffer[]): void {
  let text = "";
  let inData = false;
  socket.write("220 sink.example ESMTP\r\n");
  socket
    .on("error", () => undefined)
    .on("data", (chunk) => {
      text += chunk.toString("latin1");
      for (;;) {
        const mark = inData ? "\r\n.\r\n" : "\r\n";
        const end = text.indexOf(mark);
        if (end === -1) return;
        const piece = text.slice(0, end);
        text = text.slice(end + mark.length);
        if (inData) messages.push(Buffer.from(`${piece}\r\n`, "latin1"));
        const isData = !inData && /^DATA$/i.test(piece);
        inData = isData;
        socket.write(isData ? "354 go on\r\n" : "250 OK\r\n");
      }
    });
}
