// How many connections a path makes towards a site that may not be there, how many messages it takes to work, and which wait in the
// queue.
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { until } from "../../../test/support/until.ts";
import {
  assertDelivered,
  closePaths,
  greetAll,
  push,
  type Sink,
  type Stage,
  stageFor,
  startGreeter,
  startSink,
} from "./path.fixture.ts";
import type { Path } from "./path-types.ts";
import { createShares, type Shares } from "./shares.ts";
import { add, drive } from "./worker.ts";

afterEach(closePaths);

const MESSAGES = 12;

describe("a path", () => {
  it("makes two connections to a site that never answered, and more once one of them is open", async () => {
    const sink = await startSink();
    const stage = stageFor(sink);
    push(stage, MESSAGES);
    drive(stage);
    await until("the connections are made", () => sink.sockets.length >= 2);
    drive(stage);
    assert.deepEqual([stage.path.dialling, stage.path.workers], [2, 2]);
    greetAll(sink);
    await until("every message has its outcome", () => stage.outcomes.length === MESSAGES);
    assert.ok(stage.outcomes.every(({ kind }) => kind === "delivered"));
    assert.ok(sink.sockets.length > 2, `${sink.sockets.length} connections`);
  });

  it("makes two connections when all its sessions are lost at once, and loses no message over it", async () => {
    const sink = await startSink();
    const stage = stageFor(sink);
    greetAll(sink);
    push(stage, MESSAGES * 20);
    drive(stage);
    await until(
      "every message has its outcome",
      () => stage.outcomes.length === MESSAGES * 20 && stage.path.workers === 0,
    );
    assert.ok(stage.path.idle.length > 2, `${stage.path.idle.length} sessions`);
    const before = stage.outcomes.length;
    sink.greets = false;
    // The sessions look usable until they are used: each is lost at its first command.
    for (const socket of sink.sockets) {
      socket.removeAllListeners("data");
      socket.on("data", () => socket.destroy());
    }
    const opened = sink.sockets.length;
    push(stage, MESSAGES);
    drive(stage);
    await until("two are being made", () => stage.path.dialling === 2 && stage.path.workers === 2);
    await until("the connections are made", () => sink.sockets.length === opened + 2);
    assert.equal(stage.outcomes.length, before);
    greetAll(sink);
    await until("every message has its outcome", () => stage.outcomes.length === before + MESSAGES);
    assert.ok(stage.outcomes.every(({ kind }) => kind === "delivered"));
  });

  it("has no more messages at work than its organization's share, and sends all of them", async () => {
    const sink = await startSink();
    greetAll(sink);
    let most = 0;
    const kinds = [{ bytes_max: Number.POSITIVE_INFINITY, slots: 4 }];
    const shares: Shares<Path> = createShares<Path>((path) => drive({ ...stage, path }), kinds);
    const enter: Shares<Path>["enter"] = (path, delivery) => {
      const mayEnter = shares.enter(path, delivery);
      most = Math.max(most, shares.size());
      return mayEnter;
    };
    const stage = stageFor(sink, { shares: { ...shares, enter } });
    push(stage, MESSAGES * 5);
    drive(stage);
    await until("every message has its outcome", () => stage.outcomes.length === MESSAGES * 5);
    await until("nothing is at work", () => shares.size() === 0 && stage.path.workers === 0);
    assertDelivered(stage, MESSAGES * 5);
    assert.equal(most, 2);
  });

  it("begins mail to servers that were never met while as many as may be tried at once keep silent", async () => {
    const silent = await startSink();
    const good = await startGreeter();
    const stages: Stage[] = [];
    const ofPath = (path: Path) => stages.find((stage) => stage.path === path) as Stage;
    const kinds = [{ bytes_max: Number.POSITIVE_INFINITY, slots: 8 }];
    const shares = createShares<Path>((path) => drive(ofPath(path)), kinds, 100);
    const stageOf = (sink: Sink) => {
      const stage = stageFor(sink, { shares });
      stages.push(stage);
      push(stage, 1);
      drive(stage);
      return stage;
    };
    const hanging = Array.from({ length: 9 }, () => stageOf(silent));
    await until("three hang", () => silent.sockets.length === 3);
    const well = stageOf(good);
    await until("it is delivered", () => well.outcomes.length === 1, 30_000);
    assertDelivered(well, 1);
    assert.equal(hanging.flatMap(({ outcomes }) => outcomes).length, 0, "the others still hang");
    greetAll(silent);
    await until("they have their outcomes", () => hanging.every(({ outcomes }) => outcomes.length === 1));
    for (const stage of hanging) assertDelivered(stage, 1);
    await until("nothing is at work", () => shares.size() === 0);
  });

  it("sends the next large message while the server thinks about the ones before", async () => {
    let thinking = 0;
    const sink = await startGreeter({
      answer: (verb) => {
        if (verb !== ".") return null;
        thinking += 1;
        return "";
      },
    });
    const kinds = [
      { bytes_max: 10, slots: 100 },
      { bytes_max: Number.POSITIVE_INFINITY, slots: 2 },
    ];
    const shares = createShares<Path>((path) => drive({ ...stage, path }), kinds);
    const stage = stageFor(sink, { shares });
    push(stage, MESSAGES);
    drive(stage);
    await until("every connection has sent one", () => thinking === 5);
    assert.equal(stage.outcomes.length, 0);
    sink.answer = () => null;
    for (const socket of sink.sockets) socket.write("250 ok\r\n");
    await until("all are answered", () => stage.outcomes.length === MESSAGES);
    assertDelivered(stage, MESSAGES);
  });

  it("does not keep one message waiting for the server's answer to another", async () => {
    let sent = 0;
    const sink = await startGreeter({
      answer: (verb) => {
        if (verb !== ".") return null;
        sent += 1;
        return sent === 2 ? "" : null;
      },
    });
    const stage = stageFor(sink);
    push(stage, 1);
    drive(stage);
    await until("the site is there", () => stage.outcomes.length === 1 && stage.path.workers === 0);
    push(stage, 1);
    drive(stage);
    await until("the second one is sent", () => sent === 2);
    push(stage, 1);
    drive(stage);
    await until("the other one is delivered", () => stage.outcomes.length === 2);
    assert.deepEqual([sink.sockets.length, stage.path.workers], [2, 1]);
  });

  it("is slow by a message that took longer than its size explains, and quick again by one that did not", async () => {
    let lateMs = 0;
    const sink = await startGreeter({
      answer: (verb) => {
        if (verb === ".") stage.moveClock(lateMs);
        return null;
      },
    });
    const stage = stageFor(sink);
    const paces: string[] = [stage.path.pace];
    for (const late of [0, 11_000, 0, 9_000]) {
      lateMs = late;
      push(stage, 1);
      drive(stage);
      await until("its outcome", () => stage.outcomes.length === paces.length && stage.path.workers === 0);
      paces.push(stage.path.pace);
    }
    assert.deepEqual(paces, ["new", "quick", "slow", "quick", "quick"]);
  });

  it("lets a sender's domain that is asked to slow down wait, alone: one message a quarter of a minute, others at once", async () => {
    const sink = await startSink();
    greetAll(sink);
    let tenants = 0;
    sink.answer = (verb) => {
      if (verb !== "DATA" || tenants++ > 0) return null;
      return "421 4.7.28 unusual rate of unsolicited mail originating from your DKIM domain [shop.example 36]";
    };
    const stage = stageFor(sink);
    stage.path.limit = 1;
    const go = () => drive(stage);
    push(stage, 3, { sender: "shop.example" });
    go();
    await until("the first is deferred", () => stage.outcomes.length === 1 && stage.path.workers === 0);
    assert.deepEqual([stage.outcomes[0]?.class, stage.path.limit], ["rate_limited", 1]);
    push(stage, 3, { sender: "other.example" });
    go();
    await until("the other sender's leave", () => stage.outcomes.length === 4 && stage.path.workers === 0);
    assert.deepEqual([stage.path.fairness.size(), stage.noted], [2, []]);
    stage.moveClock(15_000);
    go();
    await until("it goes on", () => stage.outcomes.length === 6);
    assert.ok(stage.outcomes.slice(1).every(({ kind }) => kind === "delivered"));
  });
});

describe("a session that took a message and refuses the next MAIL", () => {
  for (const reply of [
    "554 5.7.0 Too many messages in this session",
    "452 4.5.3 Too many messages, come again",
    "503 5.5.1 Sender already specified",
  ]) {
    it(`has that message decided by a fresh one: ${reply}`, async () => {
      const sink = await startGreeter({
        answer: (verb, { message }) => (verb === "MAIL" && message === 2 ? reply : null),
      });
      const stage = stageFor(sink);
      stage.path.limit = 1;
      push(stage, 6);
      drive(stage);
      await until("all are sent", () => stage.outcomes.length === 6);
      assertDelivered(stage, 6);
      assert.equal(sink.sockets.length, 3);
    });
  }

  it("is believed when the fresh one says so too, and no further message has a session of its own for it", async () => {
    const sink = await startGreeter({
      answer: (verb, { connection, message }) =>
        verb === "MAIL" && connection + message > 0 ? "550 5.1.8 this sender's domain is not known here" : null,
    });
    const stage = stageFor(sink);
    stage.path.limit = 1;
    push(stage, 5);
    drive(stage);
    await until("all have their outcome", () => stage.outcomes.length === 5);
    assert.deepEqual(
      stage.outcomes.map(({ kind }) => kind),
      ["delivered", "bounced", "bounced", "bounced", "bounced"],
    );
    assert.equal(sink.sockets.length, 2);
  });
});

describe("what must wait in the queue while all workers of a path are busy", () => {
  it("goes there when it comes to the path, but for what is past its sender's own time at a destination that waits", async () => {
    const sink = await startGreeter();
    const held = { isHeld: () => false, isSuspended: () => false };
    const stage = stageFor(sink, { isHeld: () => held.isHeld(), isSuspended: () => held.isSuspended() });
    push(stage, 3);
    const deliveries = stage.path.fairness.drain();
    stage.path.workers = 99;
    const come = () => {
      for (const delivery of deliveries) add(stage, delivery);
    };
    come();
    assert.deepEqual([stage.noted, stage.path.fairness.drain().length], [[], 3]);
    for (const order of ["isHeld", "isSuspended"] as const) {
      stage.noted.length = 0;
      held[order] = () => true;
      come();
      held[order] = () => false;
      assert.deepEqual([stage.noted.length, stage.path.fairness.size()], [3, 0], order);
    }
    const [first] = deliveries;
    if (first) first.job.about.has_expiry = true;
    stage.moveClock(2 * 86_400_000);
    held.isHeld = () => true;
    come();
    assert.deepEqual([stage.path.fairness.size(), stage.noted.length], [1, 5]);
    stage.path.workers = 0;
    drive(stage);
    assert.deepEqual(
      stage.outcomes.map(({ kind }) => kind),
      ["expired"],
    );
  });
});
