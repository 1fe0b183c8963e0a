// Messages on their way in: in memory, on disk, given up, and what others left behind.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { until } from "../../../test/support/until.ts";
import type { Config } from "../../config.ts";
import { fixedClock } from "../clock.ts";
import { createBudget } from "../fair/budget.ts";
import type { Room } from "../process/pressure.ts";
import { createRandom } from "../random.ts";
import { createSpool, type Incomer, type Spool } from "./spool.ts";

const data_dir = mkdtempSync(join(tmpdir(), "postern-spool-"));
after(() => rmSync(data_dir, { recursive: true }));

const clock = fixedClock(Date.now());
const config = { data_dir, body_inline_bytes_max: 1_000 } as Config;
const world = { config, random: createRandom(clock) };
const own = join(data_dir, "spool", String(process.pid));

function open(spool: Spool, announced: number | null = null): Incomer {
  const incomer = spool.open(announced);
  assert.ok(incomer);
  return incomer;
}

/** Files of messages that were given up go a moment later. */
async function emptied(): Promise<void> {
  await until("the folder is empty", () => readdirSync(own).length === 0);
}

test("a small message stays in memory, a large one goes over the disk, both come back whole", async () => {
  const spool = createSpool(world);
  for (const sizes of [[400, 600], [400, 601], [2_000_000, 3, 1_500_000], []]) {
    const incomer = open(spool);
    const pieces = sizes.map((size, index) => Buffer.alloc(size, 65 + index));
    for (const piece of pieces) await incomer.write(piece);
    const { bytes, giveBack } = await incomer.whole();
    assert.ok(bytes.equals(Buffer.concat(pieces)), sizes.join());
    giveBack();
    assert.deepEqual(readdirSync(own), [], "nothing stays behind");
  }
});

test("a folder that holds another user's files says what to do", { skip: process.platform === "win32" }, () => {
  const foreign = mkdtempSync(join(tmpdir(), "postern-spool-"));
  const uid = process.geteuid?.() as number;
  mkdirSync(join(foreign, "spool"), { mode: 0o500 });
  try {
    if (uid === 0) {
      chmodSync(foreign, 0o755);
      process.seteuid?.(65_534);
    }
    assert.throws(
      () => createSpool({ ...world, config: { ...config, data_dir: foreign } }),
      /holds files of another user .*start Postern as the user whom it belongs to/,
    );
  } finally {
    process.seteuid?.(uid);
    rmSync(foreign, { recursive: true });
  }
});

test("a message that comes byte by byte costs its bytes, not the buffers they came in", async () => {
  const spool = createSpool({ ...world, config: { ...config, body_inline_bytes_max: 10_000 } });
  const incomer = open(spool);
  const before = memoryAtRest();
  for (let at = 0; at < 2_000; at += 1) incomer.write(Buffer.alloc(65_536, at % 251).subarray(0, 1));
  // 125 MiB if the buffers were kept. What is collected is given back by a thread that may come later on a busy machine.
  await until("the buffers are given back", () => memoryAtRest() - before < 32 * 1024 * 1024);
  incomer.write(Buffer.alloc(3_000, 1));
  const { bytes, giveBack } = await incomer.whole();
  const wanted = Buffer.from(Array.from({ length: 2_000 }, (_, at) => at % 251));
  assert.ok(bytes.equals(Buffer.concat([wanted, Buffer.alloc(3_000, 1)])));
  giveBack();
});

/** Bytes of buffers that somebody still holds. */
function memoryAtRest(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().arrayBuffers;
}

test("a writer is held back only when much waits for the disk", async () => {
  const incomer = open(createSpool(world));
  assert.equal(incomer.write(Buffer.alloc(900)), undefined);
  assert.equal(incomer.write(Buffer.alloc(900)), undefined);
  const held = incomer.write(Buffer.alloc(2 * 1024 * 1024));
  assert.ok(held instanceof Promise);
  await held;
  incomer.discard();
  await emptied();
});

test("when very many come at once even small ones go over the disk, and the memory comes back", async () => {
  const spool = createSpool({ ...world, config: { ...config, body_inline_bytes_max: 40 * 1024 * 1024 } as Config });
  const first = [open(spool), open(spool)];
  const block = Buffer.alloc(33 * 1024 * 1024, "a");
  await first[0]?.write(block);
  assert.deepEqual(readdirSync(own), []);
  await first[1]?.write(block);
  const small = open(spool);
  await small.write(Buffer.from("small"));
  assert.equal(readdirSync(own).length, 1, "the one that went over the line");
  for (const incomer of first) (await incomer.whole()).giveBack();
  assert.equal((await small.whole()).bytes.toString(), "small");
  const later = open(spool);
  await later.write(block);
  assert.deepEqual(readdirSync(own), []);
  later.discard();
});

test("a message that is given up leaves no file", async () => {
  const spool = createSpool(world);
  const incomer = open(spool);
  await incomer.write(Buffer.alloc(3_000_000));
  assert.equal(readdirSync(own).length, 1);
  incomer.discard();
  await emptied();
});

test("what a process left that is gone is removed, what a living one has is not", () => {
  const gone = join(data_dir, "spool", "999999999");
  const alive = join(data_dir, "spool", String(process.ppid));
  for (const dir of [gone, alive]) {
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "x"), "x");
  }
  createSpool(world);
  assert.deepEqual([existsSync(gone), existsSync(alive)], [false, true]);
});

test("a disk that refuses fails the message and no other", async () => {
  const spool = createSpool(world);
  rmSync(own, { recursive: true });
  writeFileSync(own, "a file where the folder was");
  const incomer = open(spool);
  incomer.write(Buffer.alloc(2_000));
  await assert.rejects(incomer.whole());
  rmSync(own);
  const next = open(spool);
  next.write(Buffer.alloc(2_000));
  assert.equal((await next.whole()).bytes.length, 2_000);
});

test("room is set aside before a message comes: many at once do not get the same", async () => {
  const spool = createSpool(world);
  const disk: Room = { bytes: 3_000_000, looks: 1 };
  spool.limitBy(() => disk);
  const first = open(spool, 2_000_000);
  assert.equal(spool.open(2_000_000), null);
  const second = open(spool, 1_000_000);
  assert.equal(spool.open(null), null);
  second.discard();
  await first.write(Buffer.alloc(2_000_000));
  assert.equal(spool.open(2_000_000), null, "what is on the disk was not seen yet");
  const { giveBack } = await first.whole();
  giveBack();
  Object.assign(disk, { bytes: 1_000_000, looks: 3 });
  open(spool, 1_000_000).discard();
  await emptied();
});

test("a message for which there is no more room than it announced is dropped, and its end says why", async () => {
  const spool = createSpool(world);
  const disk: Room = { bytes: 1_500_000, looks: 1 };
  spool.limitBy(() => disk);
  for (const announced of [null, 10]) {
    const incomer = open(spool, announced);
    for (let piece = 0; piece < 20; piece += 1) await incomer.write(Buffer.alloc(100_000));
    await emptied();
    await assert.rejects(incomer.whole(), { code: "ENOSPC" });
    disk.looks += 2;
  }
  const { bytes } = await writeAll(open(spool), 1_200_000);
  assert.equal(bytes.length, 1_200_000, "the room of the others is there again");
});

async function writeAll(incomer: Incomer, size: number) {
  await incomer.write(Buffer.alloc(size));
  return incomer.whole();
}

test("a budget is given in order, never over its size, and one that wants more than all waits for all", async () => {
  const budget = createBudget(100);
  const order: string[] = [];
  const take = async (name: string, bytes: number) => {
    const giveBack = await budget.take(bytes);
    order.push(name);
    return giveBack;
  };
  const a = await take("a", 60);
  const b = await take("b", 40);
  const c = take("c", 1_000);
  const d = take("d", 1);
  a();
  a();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(order, ["a", "b"], "giving back twice gives once; d does not overtake c");
  b();
  (await c)();
  await d;
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

test("one of each takes its turn: who has many waiting does not stand before another", async () => {
  const budget = createBudget(100);
  const order: string[] = [];
  const take = async (who: string) => {
    const giveBack = await budget.take(100, who);
    order.push(who);
    giveBack();
  };
  await Promise.all(["a", "a", "a", "b", "c", "b"].map(take));
  assert.deepEqual(order, ["a", "a", "b", "c", "a", "b"]);
});
