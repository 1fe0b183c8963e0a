// Transactions over real sockets against scripted servers: every outcome.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { until } from "../../../test/support/until.ts";
import { greet, type Peer, takeEnvelope } from "./scripted-server.fixture.ts";
import {
  closeOpened,
  ENVELOPE,
  failed,
  MESSAGE,
  opened,
  type Script,
  toData,
  tryOpen,
} from "./scripted-session.fixture.ts";
import type { Envelope } from "./transaction.ts";

afterEach(closeOpened);

const ON_THE_WIRE = "Subject: hello\r\n\r\n..first\r\n...\r\nlast\r\n.\r\n";
const LARGE = Buffer.from(
  `Subject: large\r\n\r\n${"a line of text that repeats itself many times over\r\n".repeat(200_000)}`,
);

test("messages are delivered one after another on one connection, stuffed exactly, in one packet of commands", async () => {
  const messages: string[] = [];
  let peerLines: string[] = [];
  const session = await opened(async (peer) => {
    peerLines = peer.lines;
    await greet(peer, "PIPELINING", "8BITMIME", "SIZE 1000000");
    while (await takeEnvelope(peer)) {
      peer.say("354 go ahead");
      messages.push((await peer.message())?.toString("latin1") ?? "");
      peer.say("250-2.6.0 taken", "250 2.6.0 as 17");
    }
  });
  for (const to of ["b@example.net", "c@example.net"]) {
    const outcome = await session.send({ ...ENVELOPE, to, require8bit: true }, [
      MESSAGE.subarray(0, 20),
      MESSAGE.subarray(20),
    ]);
    assert.deepEqual(outcome, { kind: "delivered", reply: { code: 250, enhanced: "2.6.0", text: "taken as 17" } });
  }
  await session.quit();
  assert.deepEqual(messages, [ON_THE_WIRE, ON_THE_WIRE]);
  const mail = `MAIL FROM:<a@example.com> SIZE=${MESSAGE.length} BODY=8BITMIME`;
  const both = [mail, "RCPT TO:<b@example.net>", "DATA", mail, "RCPT TO:<c@example.net>", "DATA", "QUIT"];
  assert.deepEqual(peerLines, ["EHLO out.example.com", ...both]);
  assert.equal(session.sent, 2);
  assert.equal(session.usable, false);
});

test("without PIPELINING every command waits for its reply", async () => {
  let early = "";
  const session = await opened(async (peer) => {
    await greet(peer);
    for (const reply of ["250 ok", "250 ok", "354 go"]) {
      await peer.line();
      await new Promise((resolve) => setImmediate(resolve));
      early += peer.lines.length > 4 ? "too soon" : "";
      peer.say(reply);
    }
    await peer.message();
    peer.say("250 ok");
  });
  assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
  assert.equal(early, "");
});

for (const pipelining of [["PIPELINING"], []]) {
  const how = pipelining.length > 0 ? "pipelined" : "in steps";
  test(`a refusal names its command, and RSET goes before the next message (${how})`, async () => {
    const refuse = async (peer: Peer, at: string) => {
      for (;;) {
        const line = await peer.line();
        if (line === null) return;
        if (line.startsWith(at)) {
          peer.say("550 5.1.1 no");
          if (pipelining.length === 0) return;
        } else if (line === "DATA") {
          peer.say(at === "final" ? "354 go" : "503 5.5.1 no valid recipients");
          if (at !== "final") return;
          await peer.message();
          peer.say("550 5.1.1 no");
          return;
        } else peer.say("250 ok");
        if (at === "DATA" && line === "DATA") return;
      }
    };
    let lines: string[] = [];
    const session = await opened(async (peer) => {
      lines = peer.lines;
      await greet(peer, ...pipelining);
      for (const at of ["MAIL", "RCPT", "DATA", "final"]) await refuse(peer, at);
      await takeEnvelope(peer);
      peer.say("354 go");
      await peer.message();
      peer.say("250 ok");
    });
    for (const stage of ["mail", "rcpt", "data", "final"] as const) {
      const outcome = await session.send(ENVELOPE, [MESSAGE]);
      assert.deepEqual(outcome, { kind: "refused", stage, reply: { code: 550, enhanced: "5.1.1", text: "no" } });
      assert.equal(session.usable, true);
    }
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
    const resets = lines.map((line, index) => (line === "RSET" ? lines[index + 1]?.slice(0, 4) : "")).filter(Boolean);
    assert.deepEqual(resets, ["MAIL", "MAIL", "MAIL"]);
  });
}

test("a recipient refused but DATA taken is ended by a single dot; the session goes on", async () => {
  let afterData: string | null = "";
  const session = await opened(async (peer) => {
    await greet(peer, "PIPELINING");
    for (const reply of ["250 ok", "550 no such user", "354 go"]) {
      await peer.line();
      peer.say(reply);
    }
    afterData = await peer.line();
    peer.say("554 no valid recipients");
    await takeEnvelope(peer);
    peer.say("354 go");
    await peer.message();
    peer.say("250 ok");
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind === "refused" && outcome.stage, "rcpt");
  assert.equal(afterData, ".");
  assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
});

test("a sender refused but DATA taken ends the connection", async () => {
  const session = await opened(async (peer) => {
    await greet(peer, "PIPELINING");
    for (const reply of ["550 no", "250 ok", "354 go"]) {
      await peer.line();
      peer.say(reply);
    }
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind === "refused" && outcome.stage, "mail");
  assert.equal(session.usable, false);
});

test("a connection lost before the dot is broken, at the stage it had reached", async () => {
  const afterReplies = (replies: string[]) => async (peer: Peer) => {
    await greet(peer);
    for (const reply of replies) {
      await peer.line();
      peer.say(reply);
    }
    await peer.line();
    peer.drop();
  };
  const stages: [string, Script][] = [
    ["mail", afterReplies([])],
    ["rcpt", afterReplies(["250 ok"])],
    ["data", afterReplies(["250 ok", "250 ok"])],
  ];
  for (const [stage, script] of stages) {
    const session = await opened(script);
    const outcome = await session.send(ENVELOPE, [MESSAGE]);
    assert.equal(outcome.kind === "broken" && outcome.stage, stage, JSON.stringify(outcome));
    assert.equal(session.usable, false);
  }
});

test("a connection lost in the middle of a large message is broken, not ambiguous", async () => {
  const session = await opened(async (peer) => {
    await toData(peer, "PIPELINING");
    peer.pause();
    setTimeout(() => peer.drop(), 50);
  });
  const outcome = await session.send({ ...ENVELOPE, size: LARGE.length }, [LARGE]);
  assert.equal(outcome.kind === "broken" && outcome.stage, "data", JSON.stringify(outcome));
});

test("a connection lost after the dot is ambiguous", async () => {
  let received = "";
  const session = await opened(async (peer) => {
    await toData(peer, "PIPELINING");
    received = (await peer.message())?.toString() ?? "";
    peer.drop();
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind, "ambiguous", JSON.stringify(outcome));
  assert.equal(received, ON_THE_WIRE);
  assert.equal(session.usable, false);
});

test("no answer after the dot is ambiguous at its own time limit", async () => {
  const session = await tryOpen({ timeouts: { final_ms: 80 } }, async (peer) => {
    await toData(peer);
    await peer.message();
  });
  assert.ok(session.kind === "session");
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind, "ambiguous");
  assert.match(outcome.kind === "ambiguous" ? outcome.detail : "", /80 ms/);
});

test("an answer to the message that is neither yes nor no is ambiguous", async () => {
  const session = await opened(async (peer) => {
    await toData(peer);
    await peer.message();
    peer.say("354 more please");
  });
  assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "ambiguous");
  assert.equal(session.usable, false);
});

/** Answers the client's commands one by one, each with the packets given. */
const answering = (extension: string, ...answers: string[][][]) => {
  return async (peer: Peer) => {
    await greet(peer, extension);
    for (const packets of answers) {
      await peer.line();
      for (const lines of packets) peer.say(...lines);
    }
  };
};
const ok = [["250 ok"]];
const liars: [string, Script][] = [
  ["in the same packet as 354", answering("8BITMIME", ok, ok, [["354 go", "250 taken"]])],
  ["in the packet after 354", answering("8BITMIME", ok, ok, [["354 go"], ["250 taken"]])],
  ["in the packet after 354, pipelined", answering("PIPELINING", ok, ok, [["354 go"], ["250 taken"]])],
  ["instead of 354", answering("8BITMIME", ok, ok, [["250 taken"]])],
  ["twice instead of 354", answering("8BITMIME", ok, ok, [["250 taken"], ["250 taken"]])],
  ["before DATA", answering("8BITMIME", [["250 ok", "250 ok", "354 go", "250 taken"]])],
  ["with all else, pipelined", answering("PIPELINING", [["250 ok", "250 ok", "354 go", "250 taken"]])],
];
for (const [when, script] of liars) {
  test(`a 250 sent ${when} is a broken protocol, never a delivery`, async () => {
    let rest: Buffer = Buffer.alloc(0);
    const session = await opened(async (peer) => {
      await script(peer);
      rest = await peer.gone();
    });
    const outcome = await session.send(ENVELOPE, [MESSAGE]);
    assert.equal(outcome.kind, "broken", JSON.stringify(outcome));
    assert.equal(session.usable, false);
    assert.ok(!rest.includes("Subject"), "nothing of the message left");
  });
}

test("a 250 that arrives between 354 and our first byte is a broken protocol", async () => {
  const session = await opened(async (peer) => {
    await toData(peer, "PIPELINING");
    // Two turns: written when the client has just read 354 and nothing else.
    setImmediate(() => setImmediate(() => peer.say("250 taken")));
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  assert.equal(outcome.kind === "broken" && outcome.stage, "data", JSON.stringify(outcome));
});

test("a 250 sent while the message is still being written is a broken protocol", async () => {
  const session = await opened(async (peer) => {
    await toData(peer, "PIPELINING");
    peer.pause();
    setTimeout(() => peer.say("250 taken"), 30);
  });
  const outcome = await session.send({ ...ENVELOPE, size: LARGE.length }, [LARGE]);
  assert.equal(outcome.kind === "broken" && outcome.stage, "data", JSON.stringify(outcome));
});

test("a 552 thrown in while the message is being written is a refusal", async () => {
  const session = await opened(async (peer) => {
    await toData(peer, "PIPELINING");
    peer.pause();
    setTimeout(() => peer.say("552 5.3.4 too large"), 30);
  });
  const outcome = await session.send({ ...ENVELOPE, size: LARGE.length }, [LARGE]);
  const reply = { code: 552, enhanced: "5.3.4", text: "too large" };
  assert.deepEqual(outcome, { kind: "refused", stage: "data", reply });
  assert.equal(session.usable, false);
});

test("a refusal thrown in behind the reply to MAIL is no answer to RCPT, which was never said", async () => {
  const session = await opened(async (peer) => {
    await greet(peer);
    await peer.line();
    peer.say("250 2.1.0 ok", "550 5.1.1 no such user");
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  const reply = { code: 550, enhanced: "5.1.1", text: "no such user" };
  assert.deepEqual(outcome, { kind: "refused", stage: "mail", reply });
});

test("a server that stops reading ends the attempt at the limit for a block", async () => {
  const session = await tryOpen({ timeouts: { data_block_ms: 100 } }, async (peer) => {
    await toData(peer);
    peer.pause();
  });
  assert.ok(session.kind === "session");
  const outcome = await session.send({ ...ENVELOPE, size: LARGE.length }, [LARGE]);
  assert.match(outcome.kind === "broken" ? outcome.detail : "", /does not read within 100 ms/);
});

test("a server that reads ever so slowly ends the attempt at the limit for the whole message", async () => {
  const session = await tryOpen({ timeouts: { data_block_ms: 60_000, data_ms: 150 } }, async (peer) => {
    await toData(peer);
    peer.pause();
  });
  assert.ok(session.kind === "session");
  const outcome = await session.send({ ...ENVELOPE, size: LARGE.length }, [LARGE]);
  assert.equal(outcome.kind, "broken");
  assert.match(outcome.kind === "broken" ? outcome.detail : "", /did not read the message within 150 ms/);
});

test("a 421 is the answer to its command and the end of the session", async () => {
  const session = await opened(async (peer) => {
    await greet(peer, "PIPELINING");
    await peer.line();
    peer.say("250 ok", "421 4.3.2 shutting down");
  });
  const outcome = await session.send(ENVELOPE, [MESSAGE]);
  const reply = { code: 421, enhanced: "4.3.2", text: "shutting down" };
  assert.deepEqual(outcome, { kind: "refused", stage: "rcpt", reply });
  assert.equal(session.usable, false);
});

test("a session the server ends while idle is no longer usable, and sending on it is broken", async () => {
  for (const end of [(peer: Peer) => peer.say("421 4.4.2 idle too long"), (peer: Peer) => peer.drop()]) {
    const session = await opened(async (peer) => {
      await toData(peer);
      await peer.message();
      peer.say("250 ok");
      setTimeout(() => end(peer), 10);
    });
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "delivered");
    while (session.usable) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, "broken");
  }
});

test("beforeData is asked once, after 354; false leaves the server without a byte of the message", async () => {
  let rest: Buffer | null = null;
  let asked = 0;
  const session = await opened(async (peer) => {
    await toData(peer, "PIPELINING");
    rest = await peer.gone();
  });
  const hooks = { beforeData: () => ++asked > 1 };
  const outcome = await session.send(ENVELOPE, [MESSAGE], hooks);
  assert.equal(outcome.kind === "broken" && outcome.stage, "data");
  assert.equal(asked, 1);
  assert.equal((await until("the rest is read", () => rest as Buffer | null)).length, 0);
});

test("an abort ends connecting, a command and the wait after the dot, each with its own outcome", async () => {
  const aborted = await failed({ signal: AbortSignal.abort() }, () => {});
  assert.equal(aborted.cause, "aborted");
  for (const [toDot, kind] of [
    [false, "broken"],
    [true, "ambiguous"],
  ] as const) {
    const controller = new AbortController();
    const session = await tryOpen({ signal: controller.signal }, async (peer) => {
      if (!toDot) {
        await greet(peer);
        await peer.line();
      } else {
        await toData(peer);
        await peer.message();
      }
      controller.abort();
    });
    assert.ok(session.kind === "session");
    assert.equal((await session.send(ENVELOPE, [MESSAGE])).kind, kind);
  }
});

test("a session takes 100 messages and then no more", async () => {
  const session = await opened(async (peer) => {
    await greet(peer, "PIPELINING");
    while (await takeEnvelope(peer)) {
      peer.say("354 go");
      await peer.message();
      peer.say("250 ok");
    }
  });
  let sent = 0;
  while (session.usable) sent += (await session.send(ENVELOPE, [MESSAGE])).kind === "delivered" ? 1 : 0;
  assert.equal(sent, 100);
  await assert.rejects(session.send(ENVELOPE, [MESSAGE]), /100 messages/);
});

test("two messages at once on one session are a bug of the caller", async () => {
  const session = await opened((peer) => greet(peer));
  const first = session.send(ENVELOPE, [MESSAGE]);
  await assert.rejects(session.send(ENVELOPE, [MESSAGE]), /busy/);
  session.close();
  assert.equal((await first).kind, "broken");
});

test("a hook that throws surfaces, and the session is closed", async () => {
  const session = await opened((peer) => toData(peer));
  const beforeData = () => {
    throw new Error("a bug");
  };
  await assert.rejects(session.send(ENVELOPE, [MESSAGE], { beforeData }), /a bug/);
  assert.equal(session.usable, false);
});

const unsendable: [string, Partial<Envelope>, string][] = [
  ["a line break in the sender", { from: "a@b.example>\r\nRCPT TO:<x@y.example" }, "5.1.7"],
  ["an angle bracket in the recipient", { to: "b@example.net> NOTIFY=NEVER" }, "5.1.3"],
  ["NUL in the recipient", { to: "b\0@example.net" }, "5.1.3"],
  ["a space in the recipient", { to: "b b@example.net" }, "5.1.3"],
  ["an empty recipient", { to: "" }, "5.1.3"],
  ["an endless sender", { from: `${"a".repeat(400)}@example.com` }, "5.1.7"],
  ["a non-ASCII address without SMTPUTF8", { to: "b\u00fcro@example.net" }, "5.6.7"],
  ["SMTPUTF8 that is not offered", { smtputf8: true }, "5.6.7"],
  ["8-bit text without 8BITMIME", { require8bit: true }, "5.6.3"],
  ["a message over the announced size", { size: 2000 }, "5.3.4"],
];
test("what cannot be said to this server is not said at all, and the session stays good", async () => {
  let lines: string[] = [];
  const session = await opened(async (peer) => {
    lines = peer.lines;
    await greet(peer, "SIZE 1000");
    await takeEnvelope(peer);
    peer.say("354 go");
    await peer.message();
    peer.say("250 ok");
  });
  for (const [what, change, enhanced] of unsendable) {
    const outcome = await session.send({ ...ENVELOPE, ...change }, [MESSAGE]);
    assert.equal(outcome.kind === "unsendable" && outcome.reply.enhanced, enhanced, what);
  }
  assert.equal(lines.length, 1);
  assert.equal((await session.send({ ...ENVELOPE, from: "", to: '"b b"@example.net' }, [MESSAGE])).kind, "delivered");
  assert.deepEqual(lines.slice(1, 3), [`MAIL FROM:<> SIZE=${MESSAGE.length}`, 'RCPT TO:<"b b"@example.net>']);
});

const SMUGGLING = join(import.meta.dirname, "../../../../shared/data/smtp-dialogues/end-of-data-sequences.json");
const smugglingMissing = existsSync(SMUGGLING) ? false : "shared/data/smtp-dialogues is not here";

test("no end-of-data sequence leaves: each is refused before a byte is sent, however it is cut", {
  skip: smugglingMissing,
}, async () => {
  const sequences: string[] = JSON.parse(readFileSync(SMUGGLING, "utf8")).outbound;
  assert.ok(sequences.length >= 9);
  let lines: string[] = [];
  let received = "";
  const session = await opened(async (peer) => {
    lines = peer.lines;
    await greet(peer, "PIPELINING");
    await takeEnvelope(peer);
    peer.say("354 go");
    received = (await peer.message())?.toString() ?? "";
    peer.say("250 ok");
    await peer.gone();
  });
  for (const sequence of sequences) {
    const body = Buffer.from(`Subject: x\r\n\r\ntext${sequence}MAIL FROM:<eve@example.org>\r\n`, "latin1");
    for (let cut = 0; cut <= body.length; cut++) {
      const outcome = await session.send(ENVELOPE, [body.subarray(0, cut), body.subarray(cut)]);
      assert.equal(outcome.kind, "unsendable", JSON.stringify(sequence));
    }
  }
  assert.equal(lines.length, 1);
  const honest = "a\r\n.\r\nMAIL FROM:<eve@example.org>\r\n..\r\n";
  assert.equal((await session.send(ENVELOPE, [Buffer.from(honest)])).kind, "delivered");
  assert.equal(received, "a\r\n..\r\nMAIL FROM:<eve@example.org>\r\n...\r\n.\r\n");
});

test("SMTPUTF8 that is wanted only where it is offered is asked for there, and the message goes without it elsewhere", async () => {
  for (const [offered, mail] of [
    [["SMTPUTF8"], "MAIL FROM:<a@example.com> SMTPUTF8"],
    [[], "MAIL FROM:<a@example.com>"],
  ] as const) {
    let lines: string[] = [];
    const session = await opened(async (peer) => {
      lines = peer.lines;
      await toData(peer, ...offered);
      await peer.message();
      peer.say("250 ok");
    });
    assert.equal((await session.send({ ...ENVELOPE, smtputf8: "offered" }, [MESSAGE])).kind, "delivered");
    assert.equal(lines[1], mail);
  }
});
