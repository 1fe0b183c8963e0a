// SMTP, both sides: command lines, whole dialogues, framing of DATA in both directions, replies, PROXY, logins.
import assert from "node:assert/strict";
import { isIP, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { normalizeDomain } from "../../../src/mail/address.ts";
import { classifyReply } from "../../../src/mail/smtp/classify.ts";
import { frameMessage } from "../../../src/mail/smtp/framing.ts";
import {
  parseReply,
  REPLY_LINES_MAX,
  REPLY_TEXT_LENGTH_MAX,
  ReplyReader,
  toReply,
} from "../../../src/mail/smtp/reply.ts";
import { readLogin } from "../../../src/mail/smtp-server/auth.ts";
import { parseCommand, parseHelo, parsePathCommand } from "../../../src/mail/smtp-server/command.ts";
import { createInput, LINE_OCTETS_MAX, type LineEnds } from "../../../src/mail/smtp-server/input.ts";
import { PROXY_BINARY_OCTETS_MAX, readProxyHeader } from "../../../src/mail/smtp-server/proxy-header.ts";
import { formatReply, reply } from "../../../src/mail/smtp-server/reply.ts";
import { serveSession } from "../../../src/mail/smtp-server/session.ts";
import { ServerWire } from "../../../src/mail/smtp-server/wire.ts";
import { type Chance, chanceOf } from "../../faults/seeded.ts";
import { assertOneLine, assertStorable } from "../invariants.ts";
import type { Target } from "../target.ts";

const VERBS = [
  ...["EHLO a.example\r\n", "HELO a\r\n", "MAIL FROM:<a@b.example>\r\n", "MAIL FROM:<> SIZE=100 BODY=8BITMIME\r\n"],
  ...[
    "RCPT TO:<c@d.example>\r\n",
    "DATA\r\n",
    "RSET\r\n",
    "NOOP\r\n",
    "QUIT\r\n",
    "VRFY a\r\n",
    "HELP\r\n",
    "STARTTLS\r\n",
    "XCLIENT ADDR=192.0.2.2 LOGIN=tls:TLSv1.3/A NAME=a\r\n",
  ],
  ...[
    "BDAT 5 LAST\r\n",
    "EXPN a\r\n",
    "AUTH PLAIN AGEAYg==\r\n",
    "AUTH LOGIN\r\n",
    "SMTPUTF8",
    " RET=HDRS",
    "<@a,@b:c@d.example>",
  ],
];
const DATA_PIECES = [
  ...[
    "\r\n",
    ".\r\n",
    "\r\n.\r\n",
    "\n.\n",
    "\r\n.\n",
    "\n.\r\n",
    "\r.\r",
    "\r\r\n.\r\n",
    "\r\n..\r\n",
    "\0",
    "\r\n.\0\r\n",
  ],
  ...[
    ".",
    "..",
    "a",
    "Subject: x\r\n\r\n",
    "MAIL FROM:<evil@x.example>\r\n",
    "\u00e9",
    "\r\n.\r\nMAIL FROM:<x@y.example>\r\n",
  ],
];

const smtpCommand: Target = {
  name: "smtp-command",
  holds: "a path that is read has no control characters, is read the same again, and its domain is one we would write",
  seeds: { lines: "smtp-command.jsonl" },
  words: [...VERBS, "FROM:", "TO:", "<", ">", '"', "\\", "SIZE=", "BODY="],
  check(input) {
    const command = parseCommand(input);
    if (!command) return "refused";
    assertOneLine("rest", command.rest);
    const helo = parseHelo(command.rest);
    assertOneLine("helo", helo);
    assertStorable("helo", helo, 1_000);
    const read = parsePathCommand(command.rest, command.verb === "RCPT" ? "TO" : "FROM");
    if (!read) return "no path";
    const { path, params } = read;
    assert.doesNotMatch(path.text, /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}<>]/u, "a path with what would end a command or a header");
    assert.ok(params.size <= 10);
    if (path.domain !== null) assert.equal(normalizeDomain(path.domain), path.domain);
    const again = parsePathCommand(`FROM:<${path.text}>`, "FROM");
    assert.deepEqual(again?.path, path, "the path as we store it is read as another one");
    return `${path.domain === null} ${path.smtputf8} ${params.size} ${path.text.startsWith('"')}`;
  },
};

/** Cuts the input at random places, the same for the same bytes. */
function cut(input: Buffer): Buffer[] {
  const chance = chanceOf(input.length * 31 + (input[0] ?? 0));
  const pieces: Buffer[] = [];
  for (let at = 0; at < input.length; ) {
    const length = chance.pick([1, 1, 2, 3, 7, 64, 1_024]);
    pieces.push(input.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

type Framed = { content: string; end: string; rest: string };

function readFrame(pieces: readonly Buffer[], lineEnds: LineEnds = "strict"): Framed {
  const input = createInput();
  const content: Buffer[] = [];
  input.startData(lineEnds);
  for (const [index, piece] of pieces.entries()) {
    input.push(piece);
    const progress = input.takeData((part) => content.push(Buffer.from(part)));
    if (progress === "more") {
      assert.ok(input.waiting() <= 3, "more than an undecided line end is held back");
      continue;
    }
    const end = progress === "end" ? "end" : progress.fault;
    const rest = Buffer.concat([input.takeAll(), ...pieces.slice(index + 1)]);
    return { content: Buffer.concat(content).toString("latin1"), end, rest: rest.toString("latin1") };
  }
  return { content: Buffer.concat(content).toString("latin1"), end: "more", rest: "" };
}

/** RFC 5321 §4.5.2 by the letter, slowly. */
function referenceFrame(wire: string): { end: string; content: string; rest: string } {
  const close = wire.startsWith(".\r\n") ? 0 : wire.indexOf("\r\n.\r\n") + 2;
  const closed = wire.startsWith(".\r\n") || wire.includes("\r\n.\r\n");
  const body = closed ? wire.slice(0, close) : wire;
  const fault = /\0|\r(?!\n)|(?<!\r)\n/.test(closed ? body : body.replace(/\r$/, ""));
  const content = body.replace(/(^|\r\n)\./g, "$1");
  return { end: fault ? "fault" : closed ? "end" : "more", content, rest: closed ? wire.slice(close + 3) : "" };
}

const dataFraming: Target = {
  name: "data-framing",
  holds: "only CRLF.CRLF ends a message, however the network cuts the bytes, and CR, LF or NUL alone never pass",
  seeds: { lines: "data-framing.jsonl", shared: ["smtp-dialogues/*"] },
  words: DATA_PIECES,
  generate: (chance) =>
    Buffer.from(Array.from({ length: chance.between(1, 12) }, () => chance.pick(DATA_PIECES)).join(""), "latin1"),
  check(input) {
    const whole = readFrame([input]);
    const inPieces = readFrame(cut(input));
    const reference = referenceFrame(input.toString("latin1"));
    const isFault = whole.end !== "end" && whole.end !== "more";
    assert.equal(isFault ? "fault" : whole.end, reference.end, "the reference reads another end");
    assert.equal(inPieces.end === "end" || inPieces.end === "more" ? inPieces.end : "fault", reference.end);
    if (isFault) return whole.end;
    assert.equal(inPieces.content, whole.content, "cutting the bytes changed the message");
    if (whole.end === "more") return "more";
    assert.equal(whole.content, reference.content);
    assert.equal(whole.rest, reference.rest);
    assert.equal(inPieces.rest, reference.rest);
    return `end ${whole.rest.length > 0}`;
  },
};

/** As the strict reading, of the same bytes with each LF alone made CRLF and what stands behind it hidden from the dots. */
function referenceMended(wire: string): { end: string; content: string; rest: string } {
  const close = wire.startsWith(".\r\n") ? 0 : wire.indexOf("\r\n.\r\n") + 2;
  const closed = wire.startsWith(".\r\n") || wire.includes("\r\n.\r\n");
  const body = closed ? wire.slice(0, close) : wire;
  const fault = /\0|\r(?!\n)/.test(closed ? body : body.replace(/\r$/, ""));
  const content = body.replace(/(^|\r\n)\.(?!\n)|(?<!\r)\n\.(?=\.)|(?<!\r)\n/g, (_found, before) => before ?? "\r\n");
  return { end: fault ? "fault" : closed ? "end" : "more", content, rest: closed ? wire.slice(close + 3) : "" };
}

const mendedFraming: Target = {
  name: "data-framing-mended",
  holds: "with line ends mended, only CRLF.CRLF ends a message, and what is read has no CR, LF or NUL alone",
  seeds: { lines: "data-framing.jsonl", shared: ["smtp-dialogues/*"] },
  words: DATA_PIECES,
  generate: (chance) =>
    Buffer.from(Array.from({ length: chance.between(1, 12) }, () => chance.pick(DATA_PIECES)).join(""), "latin1"),
  check(input) {
    const whole = readFrame([input], "mended");
    const inPieces = readFrame(cut(input), "mended");
    const reference = referenceMended(input.toString("latin1"));
    const isFault = whole.end !== "end" && whole.end !== "more";
    assert.equal(isFault ? "fault" : whole.end, reference.end, "the reference reads another end");
    assert.equal(inPieces.end === "end" || inPieces.end === "more" ? inPieces.end : "fault", reference.end);
    if (isFault) return whole.end;
    assert.equal(inPieces.content, whole.content, "cutting the bytes changed the message");
    if (whole.end === "more") return "more";
    assert.equal(whole.content, reference.content);
    assert.doesNotMatch(whole.content, /\0|\r(?!\n)|(?<!\r)\n/);
    assert.deepEqual([whole.rest, inPieces.rest], [reference.rest, reference.rest]);
    return `end ${whole.rest.length > 0}`;
  },
};

const commandLines: Target = {
  name: "smtp-lines",
  holds: "command lines are cut the same however the bytes come, and none is longer than its limit",
  seeds: { lines: "data-framing.jsonl", shared: ["smtp-dialogues/*"] },
  words: VERBS,
  check(input) {
    const read = (pieces: readonly Buffer[]): string[] => {
      const reader = createInput();
      const lines: string[] = [];
      for (const piece of pieces) {
        reader.push(piece);
        for (let line = reader.takeLine(); line; line = reader.takeLine()) {
          if (line.kind === "fault") return [...lines, `fault ${line.fault === "line_too_long"}`];
          assert.ok(line.bytes.length + 2 <= LINE_OCTETS_MAX);
          lines.push(line.bytes.toString("latin1"));
        }
        assert.ok(reader.waiting() <= LINE_OCTETS_MAX);
      }
      return lines;
    };
    const whole = read([input]);
    const inPieces = read(cut(input));
    const upToFault = (lines: string[]) => lines.filter((line) => !line.startsWith("fault"));
    assert.deepEqual(upToFault(inPieces), upToFault(whole));
    assert.equal(inPieces.length, whole.length, "a fault was seen in one way of cutting only");
    return `${Math.min(whole.length, 9)} ${whole.at(-1)?.startsWith("fault")}`;
  },
};

const framingOut: Target = {
  name: "framing-out",
  holds: "what our client frames, our server takes out again, byte for byte, with the next command behind it",
  seeds: { lines: "data-framing.jsonl", shared: ["mime-misc/**/*.eml", "spam-and-ham/**/*.eml"] },
  words: DATA_PIECES,
  async check(input) {
    const framed = await frameMessage(cut(input));
    const text = input.toString("latin1");
    const isClean = !/\0|\r(?!\n)|(?<!\r)\n/.test(text);
    assert.equal("defect" in framed, !isClean, "refused a clean message or let a careless one through");
    if ("defect" in framed) return framed.defect.replace(/\d+/g, "");
    const wire = Buffer.concat([...framed.chunks, framed.end, Buffer.from("QUIT\r\n")]);
    const read = readFrame(cut(wire));
    const want = text === "" || text.endsWith("\r\n") ? text : `${text}\r\n`;
    assert.deepEqual(read, { content: want, end: "end", rest: "QUIT\r\n" });
    return "framed";
  },
};

type Noted = { code: number; isLast: boolean; text: string };

function readReplies(said: string): Noted[] {
  assert.ok(said === "" || said.endsWith("\r\n"), "a reply does not end its line");
  return said
    .split("\r\n")
    .slice(0, -1)
    .map((line) => {
      const match = /^([2-5]\d\d)([ -])([\x20-\x7e]*)$/.exec(line);
      assert.ok(match, `this is no reply line: ${JSON.stringify(line)}`);
      assert.ok(line.length <= 510, "RFC 5321 §4.5.3.1.5");
      return { code: Number(match[1]), isLast: match[2] === " ", text: match[3]! };
    });
}

/** A socket that brings these pieces and then its end. */
function socketOf(pieces: Buffer[], said: string[]): Socket {
  const waiting = [...pieces];
  const stream = new Duplex({
    read() {
      this.push(waiting.shift() ?? null);
    },
    write(chunk: Buffer, _encoding, done) {
      said.push(chunk.toString("latin1"));
      done();
    },
  });
  return Object.assign(stream, { destroySoon: () => stream.destroy() }) as unknown as Socket;
}

const FOREVER_MS = 3_600_000;
const DATA_LIMITS = {
  pause_ms: FOREVER_MS,
  window_ms: FOREVER_MS,
  rate_bytes_min: 1,
  total_ms: FOREVER_MS,
  bytes_max: 8_192,
};
const SESSION_LIMITS = {
  ...{ command_ms: FOREVER_MS, command_under_load_ms: FOREVER_MS, handshake_ms: 1_000 },
  ...{ data: DATA_LIMITS, data_under_load: DATA_LIMITS, size_max: 4_096, recipients_max: 3, messages_max: 4 },
  ...{ commands_max: 40, errors_max: 10, errors_free: 20, tarpit_ms: 0 },
};

type Kept = { from: string; to: string[]; content: Buffer };

async function converse(input: Buffer): Promise<{ said: Noted[]; kept: Kept[]; failures: unknown[]; open: number }> {
  const said: string[] = [];
  const kept: Kept[] = [];
  const failures: unknown[] = [];
  let open = 0;
  const wire = new ServerWire(socketOf(cut(input), said), () => 0);
  await serveSession<string>(wire, {
    ...{
      name: "mx.fuzz.example",
      client: { ip: "192.0.2.1", port: 1 },
      has_door: true,
      limits: SESSION_LIMITS,
      tls: null,
    },
    ...{ isUnderLoad: () => false, isStopping: () => false, sleep: async () => undefined },
    slowDown: async () => true,
    onFailure: (error) => failures.push(error),
    hooks: {
      rcpt: async (_client, _transaction, path) => ({ kind: "accept", route: path.text }),
      data: async (_client, transaction) => {
        const pieces: Buffer[] = [];
        open += 1;
        return {
          write: (piece) => void pieces.push(Buffer.from(piece)),
          finish: async () => {
            open -= 1;
            const to = transaction.recipients.map(({ route }) => route);
            kept.push({ from: transaction.from.text, to, content: Buffer.concat(pieces) });
            return reply(250, "2.0.0", "kept");
          },
          abort: () => {
            open -= 1;
          },
        };
      },
    },
  });
  return { said: readReplies(said.join("")), kept, failures, open };
}

function dialogue(chance: Chance): Buffer {
  let text = "EHLO a.example\r\n";
  for (let turn = chance.between(1, 5); turn > 0; turn -= 1) {
    const odd = () => (chance.between(0, 3) === 0 ? chance.pick([...VERBS, ...DATA_PIECES]) : "");
    text += `MAIL FROM:<a${turn}@b.example>\r\n${odd()}RCPT TO:<c@d.example>\r\n${odd()}DATA\r\n`;
    text += `Subject: ${turn}\r\n\r\n${Array.from({ length: chance.between(0, 6) }, () => chance.pick(DATA_PIECES)).join("")}`;
    text += chance.pick(["\r\n.\r\n", "\r\n.\r\n", "\r\n.\r\n", "\n.\n", "\r\n.\n", ""]);
  }
  return Buffer.from(`${text}${chance.pick(["QUIT\r\n", ""])}`, "latin1");
}

const smtpDialogue: Target = {
  name: "smtp-dialogue",
  holds:
    "every reply is well formed, every message is closed once, and what is kept stood there between DATA and the dot",
  seeds: { lines: "smtp-dialogue.jsonl", shared: ["smtp-dialogues/*"] },
  words: [...VERBS, ...DATA_PIECES],
  bytes_max: 16_384,
  generate: dialogue,
  async check(input) {
    const { said, kept, failures, open } = await converse(input);
    assert.deepEqual(failures, [], "a bug in the session was answered with 451");
    assert.equal(open, 0, "a message was neither finished nor aborted");
    assert.equal(said[0]?.code, 220);
    assert.ok(said.filter(({ isLast }) => isLast).length <= SESSION_LIMITS.commands_max * 6 + 10);
    const withoutDots = input.toString("latin1").replace(/(^|\r\n)\./g, "$1");
    for (const { from, to, content } of kept) {
      assert.ok(to.length >= 1 && to.length <= SESSION_LIMITS.recipients_max);
      assert.ok(content.length <= SESSION_LIMITS.size_max);
      assertOneLine("sender", from);
      const text = content.toString("latin1");
      assert.doesNotMatch(text, /\0|\r(?!\n)|(?<!\r)\n/, "a message with CR, LF or NUL alone was kept");
      assert.ok(withoutDots.includes(text), "what is kept did not come in one piece before a dot");
    }
    const accepted = said.filter(({ text }) => text === "2.0.0 kept").length;
    assert.equal(accepted, kept.length);
    return said
      .map(({ code }) => code)
      .join(" ")
      .slice(0, 200);
  },
};

const smtpReply: Target = {
  name: "smtp-reply",
  holds:
    "a reply's text is one safe line of bounded length, read the same in pieces, and its class never suppresses on 4xx",
  seeds: { lines: "smtp-reply.jsonl", shared: ["smtp-reply-classification/*"] },
  words: ["250-", "550 ", "451 4.7.1 ", "5.1.1", "(#5.1.1)", "\r\n", "try again in 5 minutes", "550-5.7.1 "],
  check(input) {
    const read = (pieces: readonly Buffer[]) => {
      const replies: string[] = [];
      const reader = new ReplyReader((raw) => {
        assert.ok(raw.lines.length <= REPLY_LINES_MAX);
        replies.push(JSON.stringify(toReply(raw)));
      });
      for (const piece of pieces) if (reader.push(piece) !== null) return { replies, broken: true };
      return { replies, broken: false };
    };
    assert.deepEqual(read(cut(input)), read([input]), "cutting the bytes changed the replies");
    const parsed = parseReply(input);
    if (parsed === null) return "none";
    assertStorable("text", parsed.text, REPLY_TEXT_LENGTH_MAX);
    assert.doesNotMatch(parsed.text, /[\p{Cc}\u2028\u2029\u202a-\u202e\ufeff]/u);
    assert.ok(parsed.code >= 200 && parsed.code <= 599);
    for (const stage of ["connect", "mail", "rcpt", "data", "final"] as const) {
      const judged = classifyReply({ stage, ...parsed });
      assert.ok(!judged.suppress || (stage === "rcpt" && parsed.code >= 500), "suppressed on a temporary answer");
      assert.ok((judged.retry_after_min ?? 0) <= 240);
      if (stage === "rcpt" && judged.rule !== "") assert.deepEqual(classifyReply({ stage, ...parsed }), judged);
    }
    return classifyReply({ stage: "rcpt", ...parsed }).rule;
  },
};

const replyOut: Target = {
  name: "smtp-reply-out",
  holds: "whatever text goes into a reply of our server, our client reads one reply with that code",
  seeds: { lines: "smtp-reply.jsonl" },
  check(input) {
    const lines = input.toString("utf8").split("|");
    const written = formatReply(reply(550, "5.7.1", lines));
    const replies: number[] = [];
    const defect = new ReplyReader(({ code }) => replies.push(code)).push(Buffer.from(written));
    if (lines.length <= REPLY_LINES_MAX && written.length < 60_000) {
      assert.equal(defect, null);
      assert.deepEqual(replies, [550]);
    }
    readReplies(written);
  },
};

const proxyHeader: Target = {
  name: "proxy-header",
  holds:
    "only a well-formed address and port come out of a PROXY header, and a part of it is never read as another one",
  seeds: { lines: "proxy-header.jsonl" },
  words: ["PROXY TCP4 ", "PROXY TCP6 ", "UNKNOWN", "::1", "127.0.0.1", " 65536", "\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c"],
  bytes_max: 8_192,
  check(input) {
    const read = readProxyHeader(input);
    if (read.kind === "more") {
      assert.ok(input.length < PROXY_BINARY_OCTETS_MAX + 16, "waits for more than there may be");
      return "more";
    }
    assert.ok(read.octets <= input.length);
    const { header } = read;
    if (header.kind !== "bad") {
      for (let length = 0; length < Math.min(read.octets, 200); length += 1) {
        assert.equal(readProxyHeader(input.subarray(0, length)).kind, "more", "a part is read as the whole");
      }
    }
    if (header.kind !== "client") return header.kind;
    assert.notEqual(isIP(header.ip), 0, "the client's address is none");
    assert.ok(header.port >= 0 && header.port <= 65_535);
    return `${isIP(header.ip)} ${input[0] === 0x50}`;
  },
};

const smtpLogin: Target = {
  name: "smtp-login",
  holds: "a login comes out only of well-formed answers, within three challenges",
  seeds: { lines: "smtp-login.jsonl" },
  words: ["PLAIN", "LOGIN", "=", "*", "AGEAYg==", "YQBhAGI=", "\n"],
  bytes_max: 8_192,
  async check(input) {
    const [first = "", ...answers] = input.toString("latin1").split("\n");
    let asked = 0;
    const outcome = await readLogin(first, async (challenge) => {
      assert.match(challenge, /^[A-Za-z0-9+/=]*$/);
      const answer = answers[asked];
      asked += 1;
      return answer === undefined ? null : Buffer.from(answer, "latin1");
    });
    assert.ok(asked <= 3);
    if (outcome.kind !== "login") return outcome.kind;
    assert.equal(typeof outcome.login.user, "string");
    assert.equal(typeof outcome.login.password, "string");
    return `login ${asked}`;
  },
};

export const SMTP_TARGETS: readonly Target[] = [
  ...[
    smtpCommand,
    commandLines,
    smtpDialogue,
    dataFraming,
    mendedFraming,
    framingOut,
    smtpReply,
    replyOut,
    proxyHeader,
    smtpLogin,
  ],
];
