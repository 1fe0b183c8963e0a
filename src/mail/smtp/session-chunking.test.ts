// Messages in one write with their envelope, where the server takes chunks (RFC 3030), against scripted servers.
import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { greet, type Peer, takeEnvelope } from "./scripted-server.fixture.ts";
import { closeOpened, ENVELOPE, MESSAGE, opened, openedWith, type Script } from "./scripted-session.fixture.ts";
import type { Session } from "./session.ts";

afterEach(closeOpened);

const CHUNKS = ["PIPELINING", "CHUNKING", "8BITMIME"];

/** Takes a message by DATA, as every session's first comes; the rest of the conversation is the test's. */
async function takeFirst(peer: Peer): Promise<void> {
  await greet(peer, ...CHUNKS);
  await takeByData(peer);
}

async function takeByData(peer: Peer): Promise<void> {
  await takeEnvelope(peer);
  peer.say("354 go");
  await peer.message();
  peer.say("250 taken");
}

/** Takes MAIL, RCPT and BDAT with its bytes, and answers all of it afterwards. */
async function takeChunk(peer: Peer, ...answers: string[]): Promise<Buffer | null> {
  for (;;) {
    const line = await peer.line();
    if (line === null) return null;
    const length = /^BDAT (\d+) LAST$/.exec(line)?.[1];
    if (length === undefined) continue;
    const message = await peer.chunk(Number(length));
    if (answers.length > 0) peer.say(...answers);
    return message;
  }
}

async function proven(script: Script, options = {}): Promise<Session> {
  const session = await openedWith(options, async (peer) => {
    await takeFirst(peer);
    await script(peer);
  });
  assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
  return session;
}

const TAKEN = ["250 ok", "250 ok", "250 2.6.0 taken"];

test("what follows an accepted message leaves with its envelope in one write, its bytes as they are", async () => {
  const messages: string[] = [];
  let lines: string[] = [];
  const session = await proven(async (peer) => {
    lines = peer.lines;
    messages.push((await takeChunk(peer, ...TAKEN))?.toString() ?? "");
    messages.push((await takeChunk(peer, ...TAKEN))?.toString() ?? "");
  });
  const delivered = { kind: "delivered", reply: { code: 250, enhanced: "2.6.0", text: "taken" } };
  assert.deepEqual(await session.send(ENVELOPE, [MESSAGE.subarray(0, 9), MESSAGE.subarray(9)]), delivered);
  const open = MESSAGE.subarray(0, -2);
  assert.deepEqual(await session.send(ENVELOPE, [open]), delivered);
  // No dot is doubled, and what lacks its last line end has it.
  assert.deepEqual(messages, [MESSAGE.toString(), MESSAGE.toString()]);
  const chunk = ["MAIL FROM:<a@example.com>", "RCPT TO:<b@example.net>", `BDAT ${MESSAGE.length} LAST`];
  assert.deepEqual(lines.slice(4), [...chunk, ...chunk]);
});

for (const [stage, answers] of [
  ["mail", ["550 5.1.1 no", "503 no sender", "503 no recipient"]],
  ["rcpt", ["250 ok", "550 5.1.1 no", "503 no recipient"]],
  ["final", ["250 ok", "250 ok", "550 5.1.1 no"]],
] as const) {
  test(`a refusal at ${stage} is that stage's, and the session goes on by DATA until a message is taken`, async () => {
    let lines: string[] = [];
    const session = await proven(async (peer) => {
      lines = peer.lines;
      await takeChunk(peer, ...answers);
      await takeByData(peer);
      await takeChunk(peer, ...TAKEN);
    });
    const outcome = await session.send(ENVELOPE, [MESSAGE]);
    assert.deepEqual(outcome, { kind: "refused", stage, reply: { code: 550, enhanced: "5.1.1", text: "no" } });
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
    const verbs = lines.slice(4).map((line) => line.slice(0, 4));
    const reset = stage === "final" ? [] : ["RSET"];
    assert.deepEqual(verbs, ["MAIL", "RCPT", "BDAT", ...reset, "MAIL", "RCPT", "DATA", "MAIL", "RCPT", "BDAT"]);
  });
}

test("a 421 in answer to MAIL is a refusal: the server cannot have taken the message", async () => {
  const session = await proven(async (peer) => {
    await takeChunk(peer, "421 4.3.2 closing");
    peer.drop();
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind === "refused" && outcome.stage, "mail", JSON.stringify(outcome));
});

test("a connection lost once all is written is ambiguous, whatever was answered before, unless that was a refusal", async () => {
  for (const [answers, kind] of [
    [[], "ambiguous"],
    [["250 ok"], "ambiguous"],
    [["250 ok", "250 ok"], "ambiguous"],
    [["250 ok", "550 no"], "refused"],
  ] as const) {
    const session = await proven(async (peer) => {
      await takeChunk(peer, ...answers);
      setImmediate(() => setImmediate(() => peer.drop()));
    });
    const outcome = await session.send(ENVELOPE, [MESSAGE]);
    assert.equal(outcome.kind, kind, JSON.stringify(outcome));
    assert.equal(session.usable, false);
  }
});

test("a server that takes a message of a sender or recipient it refused is not trusted with another", async () => {
  const session = await proven(async (peer) => void (await takeChunk(peer, "250 ok", "550 no", "250 taken")));
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind === "refused" && outcome.stage, "rcpt", JSON.stringify(outcome));
  assert.equal(session.usable, false);
});

test("a server that offers CHUNKING and does not know BDAT has not read the message, and is remembered", async () => {
  const refused = mock.fn();
  const options = { on_chunking_refused: refused };
  const session = await proven(
    async (peer) => void (await takeChunk(peer, "250 ok", "250 ok", "502 what is that")),
    options,
  );
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind === "broken" && outcome.stage, "data", JSON.stringify(outcome));
  assert.deepEqual([refused.mock.callCount(), session.usable], [1, false]);
});

test("what the caller withholds leaves nothing on the wire", async () => {
  for (const hook of ["beforeData", "beforeEnd"] as const) {
    const rest = Promise.withResolvers<Buffer>();
    const session = await proven(async (peer) => rest.resolve(await peer.gone()));
    const outcome = await session.send(ENVELOPE, [MESSAGE], { [hook]: () => false });
    assert.equal(outcome.kind, "broken");
    assert.equal(session.usable, false);
    assert.equal((await rest.promise).length, 0);
  }
});

const byData: [string, string[], object, Buffer][] = [
  ["a large message", CHUNKS, {}, Buffer.from(`Subject: x\r\n\r\n${"line\r\n".repeat(20_000)}`)],
  ["a server without PIPELINING", ["CHUNKING"], {}, MESSAGE],
  ["a session that is not to use chunks", CHUNKS, { chunking: false }, MESSAGE],
];
for (const [what, extensions, options, message] of byData) {
  test(`${what} goes by DATA`, async () => {
    let lines: string[] = [];
    const script: Script = async (peer) => {
      lines = peer.lines;
      await greet(peer, ...extensions);
      while (await takeEnvelope(peer)) {
        peer.say("354 go");
        await peer.message();
        peer.say("250 ok");
      }
    };
    const session = await (Object.keys(options).length === 0 ? opened(script) : openedWith(options, script));
    for (const body of [MESSAGE, message]) assert.equal((await session.send(ENVELOPE, [body])).kind, "delivered");
    assert.equal(lines.filter((line) => line === "DATA").length, 2);
  });
}

test("a session that has rested asks by MAIL first whether the server is still there", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    let lines: string[] = [];
    const session = await proven(async (peer) => {
      lines = peer.lines;
      await takeByData(peer);
    });
    mock.timers.tick(2_000);
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
    assert.equal(lines.at(-1), "DATA");
  } finally {
    mock.timers.reset();
  }
});
