// What a path makes of servers that are gone, that refuse us before they hear of any message, that close sessions, and of a
// process that may not send.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { afterEach, describe, it } from "node:test";
import { until } from "../../../test/support/until.ts";
import { BlobsUnavailable } from "../../platform/storage/blobs.ts";
import { assertDelivered, closePaths, push, type Stage, stageFor, startGreeter, startSink } from "./path.fixture.ts";
import { drive } from "./worker.ts";

afterEach(closePaths);

const MINUTE_MS = 60_000;
const away = () => Promise.reject(Object.assign(new Error("the database is away"), { code: "ECONNREFUSED" }));
const body = Buffer.from("Subject: stored\r\n\r\nhello\r\n");

/** One message at a time, with the pauses between them passed over. */
async function attemptOnce(stage: Stage): Promise<void> {
  const before = stage.outcomes.length;
  push(stage, 1);
  stage.moveClock(5_000);
  drive(stage);
  await until("its outcome", () => stage.outcomes.length === before + 1 && stage.path.workers === 0);
}

/** A port where nobody listens. */
async function deadPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function suspendDead(stage: Stage): Promise<void> {
  for (let n = 0; n < 20; n += 1) await attemptOnce(stage);
  assert.match(stage.noted.at(-1) ?? "", /^suspend: .*ECONNREFUSED/);
}

const minutesLeft = ({ world, path }: Stage) => Math.round((path.suspended.untilMs - world.clock.now()) / MINUTE_MS);

describe("while stored messages cannot be loaded, a path", () => {
  it("makes no connection after connection: the sessions it has serve the next try", async () => {
    const sink = await startGreeter();
    let tries = 0;
    const stage = stageFor(sink, {
      loadBody: () => {
        tries += 1;
        return tries <= 40 ? away() : Promise.resolve(body);
      },
    });
    push(stage, 8, { mime: null });
    const driving = setInterval(() => {
      stage.moveClock(200);
      drive(stage);
    }, 5);
    await until("all are sent", () => stage.outcomes.length === 8).finally(() => clearInterval(driving));
    assert.ok(stage.outcomes.every(({ kind }) => kind === "delivered"));
    assert.ok(sink.sockets.length <= 5, `${sink.sockets.length} connections for ${tries} tries`);
    assert.equal(stage.path.idle.length, sink.sockets.filter(({ destroyed }) => !destroyed).length);
  });

  it("defers mail whose large bodies cannot be read, and sends the rest", async () => {
    const sink = await startGreeter();
    let tries = 0;
    const stage = stageFor(sink, {
      loadBody: async () => {
        tries += 1;
        throw new BlobsUnavailable("the store fails", { cause: { code: "ECONNREFUSED" } });
      },
    });
    push(stage, 2, { mime: null });
    push(stage, 2);
    drive(stage);
    await until("each has its outcome", () => stage.outcomes.length === 4);
    const kinds = stage.outcomes.map(({ kind, class: why, suppress }) => `${kind} ${why} ${suppress}`);
    assert.deepEqual(kinds.sort(), [
      "deferred local false",
      "deferred local false",
      "delivered null false",
      "delivered null false",
    ]);
    assert.equal(tries, 2);
  });

  it("ends only those of which nothing is stored any more", async () => {
    const stage = stageFor(await startGreeter(), { loadBody: async () => null });
    push(stage, 1, { mime: null });
    drive(stage);
    await until("its outcome", () => stage.outcomes.length === 1);
    assert.equal(stage.outcomes[0]?.kind, "failed");
  });
});

describe("while nothing may be sent, a path", () => {
  it("does not even connect, and goes on by itself", async () => {
    const sink = await startGreeter();
    let asked = 0;
    let may = false;
    const stage = stageFor(sink, {
      mayStart: () => {
        asked += 1;
        return may;
      },
    });
    push(stage, 3);
    drive(stage);
    await until("it asked again", () => asked >= 3);
    assert.deepEqual([sink.sockets.length, stage.outcomes.length, stage.path.fairness.size()], [0, 0, 3]);
    may = true;
    await until("all are sent", () => stage.outcomes.length === 3);
    assertDelivered(stage, 3);
  });
});

describe("a site that is not there", () => {
  it("is suspended after twenty failures in a row, for 1, 2, 5, 10, 15 and 15 minutes", async () => {
    const stage = stageFor({ port: await deadPort() });
    await suspendDead(stage);
    const minutes = [minutesLeft(stage)];
    for (let n = 0; n < 5; n += 1) {
      stage.moveClock(stage.path.suspended.untilMs - stage.world.clock.now());
      await attemptOnce(stage);
      minutes.push(minutesLeft(stage));
    }
    assert.deepEqual(minutes, [1, 2, 5, 10, 15, 15]);
  });

  it("hears of no mail that comes while it is suspended", async () => {
    const stage = stageFor({ port: await deadPort() });
    await suspendDead(stage);
    const before = stage.outcomes.length;
    push(stage, 1);
    stage.moveClock(5_000);
    drive(stage);
    assert.equal(stage.noted.at(-1), "park");
    assert.deepEqual([stage.path.workers, stage.outcomes.length], [0, before]);
  });

  it("is there again with the first connection, whatever its server says to the mail", async () => {
    const stage = stageFor({ port: await deadPort() });
    await suspendDead(stage);
    const sink = await startGreeter({ answer: (verb) => (verb === "RCPT" ? "451 4.3.0 later" : null) });
    stage.world.config.testing.outbound_port = sink.port;
    stage.moveClock(MINUTE_MS);
    await attemptOnce(stage);
    assert.equal(stage.outcomes.at(-1)?.smtp_code, "451");
    assert.equal(stage.noted.at(-1), "resume");
    const { failures, suspensions, suspended } = stage.path;
    assert.deepEqual([failures, suspensions, suspended.untilMs], [0, 0, 0]);
  });
});

describe("mail that no server could be reached for", () => {
  it("has no outcome where its relay takes it, and the site has failed all the same", async () => {
    const diverted: string[] = [];
    const port = await deadPort();
    const stage = stageFor({ port }, { intake: { divert: ({ job }) => diverted.push(job.message_id) > 0 } });
    push(stage, 1);
    drive(stage);
    await until("it took its relay", () => diverted.length === 1 && stage.path.workers === 0);
    assert.deepEqual([stage.outcomes, stage.path.failures], [[], 1]);
  });
});

describe("a server that refuses us at the door", () => {
  const LISTED = "554 5.7.1 Service unavailable; client host [192.0.9.1] blocked using zen.spamhaus.org";

  it("gets three connections, and then a quarter of an hour of peace", async () => {
    const sink = await startGreeter({ banner: LISTED });
    const stage = stageFor(sink);
    for (let n = 0; n < 3; n += 1) await attemptOnce(stage);
    assert.match(stage.noted.join(), /^suspend: .*spamhaus/);
    assert.equal(minutesLeft(stage), 15);
    assert.ok(stage.outcomes.every(({ kind, class: why }) => kind === "deferred" && why === "blocked"));
    push(stage, 1);
    stage.moveClock(10 * MINUTE_MS);
    drive(stage);
    assert.deepEqual([stage.noted.at(-1), sink.sockets.length], ["park", 3]);
  });

  it("gives the message to another address of the pool, where there is one", async () => {
    const asked: string[] = [];
    const sink = await startGreeter({ banner: LISTED });
    const stage = stageFor(sink, {
      otherSource: { note: (job, { id }) => asked.push(`${job.message_id} from ${id}`) > 0 },
    });
    await attemptOnce(stage);
    assert.deepEqual(asked, ["message-0 from source"]);
    assert.deepEqual([stage.outcomes[0]?.kind, stage.outcomes[0]?.retry_at_once], ["deferred", true]);
  });

  it("and speaks of a rate is given less, and its time", async () => {
    const sink = await startGreeter({ banner: "421 4.7.0 too many connections from your address, try again later" });
    const stage = stageFor(sink);
    const before = stage.path.limit;
    await attemptOnce(stage);
    assert.equal(stage.outcomes[0]?.class, "rate_limited");
    assert.ok(stage.path.limit <= before / 2, `${stage.path.limit} connections`);
    const waitMs = stage.path.notBeforeMs - stage.world.clock.monotonic();
    assert.ok(waitMs > 10_000, `it waits for ${waitMs} ms`);
  });
});

describe("a server that closes a session", () => {
  it("at the next message's MAIL gets that message on a fresh one, as if nothing had been said", async () => {
    const sink = await startGreeter({
      answer: (verb, { message }) => (verb === "MAIL" && message === 2 ? "421 4.7.0 too many messages" : null),
    });
    const stage = stageFor(sink);
    stage.path.limit = 1;
    push(stage, 6);
    drive(stage);
    await until("all are sent", () => stage.outcomes.length === 6);
    assertDelivered(stage, 6);
    assert.equal(sink.sockets.length, 3);
  });

  it("at RSET, after a refusal, as well", async () => {
    const sink = await startGreeter({
      answer: (verb, { connection }) => {
        if (connection > 0) return null;
        if (verb === "RSET") return "421 4.4.2 goodbye";
        return verb === "RCPT" ? "550 5.1.1 no such user" : null;
      },
    });
    const stage = stageFor(sink);
    stage.path.limit = 1;
    push(stage, 2);
    drive(stage);
    await until("both have their outcome", () => stage.outcomes.length === 2);
    assert.deepEqual(
      stage.outcomes.map(({ kind }) => kind),
      ["bounced", "delivered"],
    );
  });

  it("at the first message's MAIL has its word: that is no session that had grown old", async () => {
    const sink = await startGreeter({ answer: (verb) => (verb === "MAIL" ? "421 4.3.2 shutting down" : null) });
    const stage = stageFor(sink);
    await attemptOnce(stage);
    assert.deepEqual([stage.outcomes[0]?.kind, stage.outcomes[0]?.smtp_code], ["deferred", "421"]);
    assert.equal(sink.sockets.length, 1);
  });
});

describe("of several mail servers", () => {
  it("what one of them said is reported, not that the next one is dead", async () => {
    const sink = await startGreeter({ banner: "421 4.3.2 closed for the night" });
    const stage = stageFor(sink);
    push(stage, 1, { addresses: ["127.0.0.1", "127.0.0.66"] });
    drive(stage);
    await until("its outcome", () => stage.outcomes.length === 1);
    const [{ smtp_code, mx_host }] = stage.outcomes as [Stage["outcomes"][number]];
    assert.deepEqual([smtp_code, mx_host], ["421", "mx.example"]);
  });

  it("four are tried of those that the source can reach", async () => {
    const sink = await startSink();
    const opened: string[] = [];
    const stage = stageFor(sink, {
      open: async ({ address }) => {
        opened.push(address);
        return { kind: "failed", stage: "connect", cause: "network", reply: null, detail: "down", tls_failed: false };
      },
    });
    stage.path.source = { ...stage.path.source, ip: "2a01:4f8::1" };
    const v4 = ["192.0.9.1", "192.0.9.2", "192.0.9.3", "192.0.9.4"];
    const v6 = ["2a01:4f8::2", "2a01:4f8::3", "2a01:4f8::4", "2a01:4f8::5", "2a01:4f8::6"];
    push(stage, 1, { addresses: [...v4, ...v6] });
    drive(stage);
    await until("its outcome", () => stage.outcomes.length === 1);
    assert.deepEqual(opened, v6.slice(0, 4));
  });

  it("the second one is among the four, however many addresses the first has", async () => {
    const opened: string[] = [];
    const stage = stageFor(await startSink(), {
      open: async ({ address }) => {
        opened.push(address);
        return { kind: "failed", stage: "connect", cause: "network", reply: null, detail: "down", tls_failed: false };
      },
    });
    push(stage, 1, {
      addresses: ["192.0.9.1", "192.0.9.2", "192.0.9.3", "192.0.9.4", "192.0.9.5", "192.0.8.1"],
      firsts: 5,
    });
    drive(stage);
    await until("its outcome", () => stage.outcomes.length === 1);
    assert.deepEqual(opened, ["192.0.9.1", "192.0.9.2", "192.0.9.3", "192.0.8.1"]);
  });
});

describe("a first mail server that greets and then cannot take the message", () => {
  const ADDRESSES = ["127.0.0.1", "127.0.0.2"];
  type Answer = (verb: string, at: { connection: number; message: number }) => string | null;

  /** The outcome of one message when the first server answers so, and the second so. */
  async function tell(first: Answer, second: Answer = () => null, change: Partial<Stage["parts"]> = {}) {
    const one = await startGreeter({ answer: first });
    const two = await startGreeter({ answer: second }, { host: "127.0.0.2", port: one.port });
    const stage = stageFor(one, change);
    push(stage, 1, { addresses: ADDRESSES });
    drive(stage);
    await until("its outcome", () => stage.outcomes.length === 1 && stage.path.workers === 0);
    const [{ kind, mx_host, smtp_code, ambiguous }] = stage.outcomes as [Stage["outcomes"][number]];
    return {
      stage,
      reported: [kind, mx_host, smtp_code, ambiguous],
      sessions: [one.sockets.length, two.sockets.length],
    };
  }
  const at =
    (wanted: string, said: string): Answer =>
    (verb) =>
      verb === wanted ? said : null;

  it("leaves it to the second one in the same attempt, whenever it says so", async () => {
    for (const [verb, said] of [
      ["MAIL", "452 4.3.1 Insufficient system storage"],
      ["RCPT", "451 4.3.0 <r0@customer.example>: Temporary lookup failure"],
      ["DATA", "451 4.3.5 Server configuration problem"],
      [".", "451 4.3.0 queue file write error"],
      ["MAIL", "421 4.3.2 shutting down"],
    ] as const) {
      const { reported, sessions } = await tell(at(verb, said));
      assert.deepEqual(
        [reported, sessions],
        [
          ["delivered", "mx1.example", "250", false],
          [1, 1],
        ],
        `${verb}: ${said}`,
      );
    }
  });

  it("leaves it to the second one when it breaks off before the final dot", async () => {
    for (const verb of ["MAIL", "RCPT", "DATA"]) {
      const { reported, stage } = await tell((said) => {
        if (said === verb) throw new Error("breaks off");
        return null;
      });
      assert.deepEqual(reported, ["delivered", "mx1.example", "250", false], verb);
      assert.deepEqual(stage.noted, []);
    }
  });

  it("serves the next messages by the session that works", async () => {
    const one = await startGreeter({ answer: at("MAIL", "452 4.3.1 Insufficient system storage") });
    const two = await startGreeter({}, { host: "127.0.0.2", port: one.port });
    const stage = stageFor(one);
    for (let n = 0; n < 10; n += 1) {
      push(stage, 1, { addresses: ADDRESSES });
      drive(stage);
      await until("its outcome", () => stage.outcomes.length === n + 1 && stage.path.workers === 0);
    }
    assertDelivered(stage, 10);
    assert.deepEqual([one.sockets.length, two.sockets.length], [1, 1]);
  });

  it("is the one that is reported when the second cannot take it either", async () => {
    const full = "452 4.3.1 Insufficient system storage";
    const { reported } = await tell(at("MAIL", full), at("RCPT", "451 4.3.0 try again later"));
    assert.deepEqual(reported, ["deferred", "mx.example", "452", false]);
    const { reported: ended } = await tell(at("MAIL", full), at("RCPT", "550 5.1.1 no such user"));
    assert.deepEqual(ended, ["bounced", "mx1.example", "550", false]);
  });

  it("is not left for a second one that cannot be had either more than once a minute", async () => {
    const one = await startGreeter({ answer: at("MAIL", "452 4.3.1 Insufficient system storage") });
    const opened: string[] = [];
    const stage = stageFor(one);
    const { open } = stage.parts;
    stage.parts.open = (options) => {
      opened.push(options.address);
      return open(options);
    };
    const next = async () => {
      const before = stage.outcomes.length;
      push(stage, 1, { addresses: ADDRESSES });
      drive(stage);
      await until("its outcome", () => stage.outcomes.length === before + 1 && stage.path.workers === 0);
    };
    for (let n = 0; n < 5; n += 1) await next();
    assert.deepEqual(opened, ["127.0.0.1", "127.0.0.2"], "the first one's session goes on");
    stage.moveClock(MINUTE_MS);
    await next();
    assert.equal(opened.filter((address) => address === "127.0.0.2").length, 2);
    assert.ok(stage.outcomes.every(({ kind, smtp_code }) => kind === "deferred" && smtp_code === "452"));
  });

  it("is believed about the sender, the message and the mailbox: no other is asked", async () => {
    for (const said of [
      "450 4.7.1 Greylisted",
      "452 4.2.2 mailbox full",
      "421 4.7.0 too many messages",
      "451 4.7.1 blocked using zen.spamhaus.org",
      "450 4.7.25 cannot find your reverse hostname",
      "550 5.1.1 no such user",
    ]) {
      const { reported, sessions } = await tell(at("RCPT", said));
      assert.deepEqual(
        [reported.slice(1, 3), sessions],
        [
          ["mx.example", said.slice(0, 3)],
          [1, 0],
        ],
        said,
      );
    }
  });

  it("may have the message when its last answer is lost: nobody else gets it then", async () => {
    const { reported, sessions } = await tell((verb) => {
      if (verb === ".") throw new Error("breaks off");
      return null;
    });
    assert.deepEqual(
      [reported, sessions],
      [
        ["deferred", "mx.example", null, true],
        [1, 0],
      ],
    );
  });

  it("is not left for another when it is we who may not send", async () => {
    const { reported, sessions } = await tell(
      () => null,
      () => null,
      { mayEnd: () => false },
    );
    assert.deepEqual(
      [reported.slice(0, 2), sessions],
      [
        ["deferred", "mx.example"],
        [1, 0],
      ],
    );
  });
});

describe("the mail of an organization that was suspended, on a path", () => {
  it("is put back when its turn comes, also when its time seems to be over: it was given more in the queue", async () => {
    const sink = await startGreeter();
    const stage = stageFor(sink, { isSuspended: () => true });
    push(stage, 2);
    stage.moveClock(2 * 86_400_000);
    drive(stage);
    assert.deepEqual(stage.noted, ["put back: message-0", "put back: message-1"]);
    assert.deepEqual([stage.outcomes, stage.path.workers, stage.path.fairness.size()], [[], 0, 0]);
    assert.equal(stage.parts.shares.size(), 0);
  });
});

describe("mail that waited for long on a path", () => {
  it("ends without an attempt when it may not leave any more, and the session goes on with the next", async () => {
    const sink = await startGreeter();
    const ended = { kind: "suppressed", class: "suppressed" } as Stage["outcomes"][number];
    const stage = stageFor(sink, {
      recheck: { findAgain: ({ job }) => (job.message_id === "message-1" ? Promise.resolve(ended) : null) },
    });
    stage.path.limit = 1;
    push(stage, 3);
    drive(stage);
    await until("each has its outcome", () => stage.outcomes.length === 3 && stage.path.workers === 0);
    assert.deepEqual(
      stage.outcomes.map(({ kind }) => kind),
      ["delivered", "suppressed", "delivered"],
    );
    assert.equal(sink.sockets.length, 1);
  });

  it("waits on where that cannot be asked, and no session is left open over it", async () => {
    const sink = await startGreeter();
    let looks = 0;
    const stage = stageFor(sink, {
      recheck: {
        findAgain({ job }) {
          if (job.message_id !== "message-1") return null;
          looks += 1;
          return looks === 1 ? away() : Promise.resolve(null);
        },
      },
    });
    stage.path.limit = 1;
    push(stage, 2);
    const driving = setInterval(() => {
      stage.moveClock(200);
      drive(stage);
    }, 5);
    await until("both are sent", () => stage.outcomes.length === 2).finally(() => clearInterval(driving));
    assert.ok(stage.outcomes.every(({ kind }) => kind === "delivered"));
    assert.equal(stage.path.idle.length, sink.sockets.filter(({ destroyed }) => !destroyed).length);
  });
});
