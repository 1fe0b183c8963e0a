import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { rounds } from "../../test/support/rounds.ts";
import { type ForwardsOrder, writeForwards } from "../masked/rewrite/write-forwards.ts";
import { createParsePool, type ParseOutcome, type ParsePool } from "./parse-pool.ts";

const pools: ParsePool[] = [];

function pool(options: Partial<Parameters<typeof createParsePool>[0]> = {}): ParsePool {
  const made = createParsePool({ size: 1, processor_ms: 10_000, memory_mib: 256, ...options });
  pools.push(made);
  return made;
}

const misbehaving = new URL("./misbehaving-worker.fixture.ts", import.meta.url);

function textOf(outcome: ParseOutcome): string | null {
  assert.equal(outcome.kind, "parsed");
  return outcome.kind === "parsed" ? outcome.mail.text : null;
}

const message = [
  "From: A <a@example.com>",
  "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=",
  'Content-Type: multipart/mixed; boundary="b"',
  "",
  "--b",
  "",
  "hello",
  "--b",
  "Content-Type: application/octet-stream; name=x.bin",
  "Content-Transfer-Encoding: base64",
  "",
  Buffer.alloc(100_000, 7).toString("base64"),
  "--b",
  "Content-Type: text/csv; name=y.csv",
  "",
  "1,2",
  "--b--",
].join("\r\n");

describe("the parse pool", () => {
  after(() => Promise.all(pools.map((made) => made.stop())));

  it("writes the forwards of a large mail while other work goes on, the same as without a worker", async () => {
    const links = Array.from(
      { length: rounds(3_000, 8_000) },
      (_, at) => `<p><a href="https://shop.example/?n=${at}&amp;x">${at}</a></p>`,
    );
    const head = "From: a@example.com\r\nSubject: x\r\nContent-Type: text/html\r\n\r\n";
    const bytes = Buffer.from(head + links.join("\r\n"));
    const own = { name: null, email: "k3x@mask.example" };
    const order: ForwardsOrder = {
      ...{
        tokens: [{ reverse: `r.${"a".repeat(26)}@mask.example`, email: "anna@home.example" }],
        linked: [],
        key: "00",
      },
      cut_pixels: false,
      forwards: [
        {
          ...{ from: own, to: [own], cc: [], reply_to: [], in_reply_to: [], references: [], calendar: [] },
          ...{
            message_id: { id: "<a@b.example>", is_given: true },
            received_ms: 1,
            authentication: null,
            pgp: null,
            loop_mark: "x",
          },
          unsubscribe_page: null,
        },
      ],
    };
    const made = pool({ size: 1, processor_ms: 60_000 });
    await made.parse(Buffer.from(message));
    let longest = 0;
    let last = performance.now();
    const beat = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    const started = performance.now();
    const outcome = await made.writeForwards(bytes, order);
    const took = performance.now() - started;
    clearInterval(beat);
    assert.equal(outcome.kind, "built");
    if (outcome.kind === "built") assert.deepEqual(outcome, writeForwards(bytes, order));
    assert.ok(longest < took / 2, `${longest} ms of ${took} ms without a beat`);
  });

  it("reads a message in a worker and hands over the attachments as Buffers", async () => {
    const bytes = Buffer.from(message);
    const outcome = await pool().parse(bytes);
    assert.equal(textOf(outcome), "hello");
    const { mail } = outcome as ParseOutcome & { kind: "parsed" };
    assert.equal(mail.subject, "Grüße");
    assert.deepEqual(
      mail.attachments.map(({ filename, size, content }) => [filename, size, Buffer.isBuffer(content), content.length]),
      [
        ["x.bin", 100_000, true, 100_000],
        ["y.csv", 3, true, 3],
      ],
    );
    assert.ok(mail.attachments[0]!.content.every((byte) => byte === 7));
    assert.equal(mail.attachments[1]!.content.toString(), "1,2");
    assert.equal(bytes.toString(), message, "the caller's bytes are untouched");
  });

  it("reads many messages at once with few workers, each with its own answer", async () => {
    const made = pool({ size: 2 });
    const texts = Array.from({ length: 200 }, (_, index) => `number ${index}`);
    const outcomes = await Promise.all(texts.map((text) => made.parse(Buffer.from(`Subject: x\n\n${text}`))));
    assert.deepEqual(outcomes.map(textOf), texts);
  });

  const failures: [order: string, reason: RegExp][] = [
    ["throw", /failed: TypeError/],
    ["exit", /ended/],
    ["eat", /out of memory/],
  ];
  for (const [order, reason] of failures) {
    it(`answers with a failure when the worker is asked to ${order}, and reads the next message`, async () => {
      const made = pool({ worker: misbehaving, memory_mib: 24 });
      const [outcome, next] = await Promise.all([made.parse(Buffer.from(order)), made.parse(Buffer.from("fine"))]);
      assert.equal(outcome.kind, "failed");
      assert.match(outcome.kind === "failed" ? outcome.reason : "", reason);
      assert.equal(textOf(next), "fine");
    });
  }

  it("takes small messages that wait on one trip, and large ones by themselves", async () => {
    const made = pool({ worker: misbehaving });
    const large = Buffer.alloc(200_000, "x");
    const given = ["first", "count", "count", "count", large, ...Array.from({ length: 9 }, () => "count")];
    const outcomes = await Promise.all(given.map((text) => made.parse(Buffer.from(text as string))));
    const counts = outcomes.map(textOf).filter((text) => text !== large.toString());
    assert.deepEqual(counts, ["first", "3", "3", "3", ...Array.from({ length: 8 }, () => "8"), "1"]);
  });

  for (const order of ["throw", "exit", "sleep", "hang"].slice(0, rounds(3, 4))) {
    it(`tries messages that came together with one asked to ${order} by themselves`, async () => {
      const made = pool({ worker: misbehaving, processor_ms: 500 });
      const given = ["first", "one", order, "two", "three"];
      const outcomes = await Promise.all(given.map((text) => made.parse(Buffer.from(text))));
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.kind === "parsed" ? outcome.mail.text : outcome.kind)),
        ["first", "one", "failed", "two", "three"],
      );
    });
  }

  // Each made lists of millions of matches once, and the failed allocation ended the whole process.
  const large: [what: string, body: Buffer][] = [
    ["line ends", Buffer.alloc(20_000_000, "\r\n")],
    ["bytes that are no UTF-8", Buffer.alloc(20_000_000, 0xff)],
    ["shifts of UTF-7", Buffer.alloc(20_000_000, "+AOQ-x")],
  ];
  for (const [what, body] of large.slice(0, rounds(1, large.length))) {
    it(`reads 20 MB of ${what} within its memory`, async () => {
      const charset = what.includes("UTF-7") ? "utf-7" : "utf-8";
      const head = Buffer.from(`Content-Type: text/plain; charset=${charset}\r\n\r\n`);
      assert.ok(textOf(await pool().parse(Buffer.concat([head, body])))!.length > 6_000_000);
    });
  }

  it("waits for a worker that others keep from the processor", async () => {
    const made = pool({ worker: misbehaving, processor_ms: 400 });
    assert.equal(textOf(await made.parse(Buffer.from("nap"))), "nap");
  });

  it("ends a worker that hangs, and counts the time of the next message from when a worker has it", async () => {
    const made = pool({ worker: misbehaving, processor_ms: 500 });
    const [hung, next] = await Promise.all([made.parse(Buffer.from("hang")), made.parse(Buffer.from("patient"))]);
    assert.deepEqual(hung, { kind: "failed", reason: "the parser took too long" });
    assert.equal(textOf(next), "patient");
  });

  it("builds a reply from a masked alias, and its bytes arrive as a Buffer", async () => {
    const order = {
      ...{ from: { name: null, email: "k3x@mask.example" }, to: [{ name: null, email: "c@x.example" }], cc: [] },
      ...{
        date_ms: 0,
        message_id: "m@mask.example",
        in_reply_to: [],
        references: [],
        sent: { key: "00", digests: [], tokens: [] },
        token_seed: "t",
      },
      ...{ hidden: [{ from: "a@example.com", to: "k3x@mask.example" }], restored: [], names: [] },
      redact: "all" as const,
      unopened_files: "hold" as const,
      own_name: "leave" as const,
    };
    const built = await pool().buildReply(Buffer.from(message), order);
    assert.ok(built.kind === "built" && Buffer.isBuffer(built.bytes), JSON.stringify(built));
    assert.match(built.bytes.toString(), /^From: k3x@mask\.example\r\n/);
  });

  it("fails what is under way and what waits when it stops, and everything afterwards", async () => {
    const made = pool({ worker: misbehaving });
    const outcomes = [made.parse(Buffer.from("hang")), made.parse(Buffer.from("waits"))];
    await made.stop();
    outcomes.push(made.parse(Buffer.from("late")));
    for (const outcome of await Promise.all(outcomes)) {
      assert.deepEqual(outcome, { kind: "failed", reason: "the parser has stopped" });
    }
  });
});
