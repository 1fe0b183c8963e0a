// Whether port 25 is closed: what counts as a sign, what ends it, and who hears of it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { until } from "../../../test/support/until.ts";
import { openSession } from "../../mail/smtp/session.ts";
import { fixedClock } from "../../platform/clock.ts";
import { type Reach, watchReach } from "./reach.ts";
import * as queries from "./relay-queries.ts";

const MACHINE = "machine/boot/space";
const greeter = createServer((socket) => socket.on("error", () => undefined).end("554 not for you\r\n"));

let api: TestApi;
let clock: ReturnType<typeof fixedClock>;
let noted: number;
let open: Reach[];

before(async () => {
  greeter.listen(0, "127.0.0.1");
  await once(greeter, "listening");
  const { port } = greeter.address() as { port: number };
  api = await testApi({ POSTERN_TESTING_OUTBOUND_PORT: String(port) });
});
beforeEach(async () => {
  for (const reach of open ?? []) await reach.stop();
  open = [];
  clock = fixedClock(Date.now());
  noted = 0;
  await api.world.db.query("delete from port_closed");
});
after(async () => {
  for (const reach of open) await reach.stop();
  greeter.close();
  await api.close();
});

/** Started a quiet minute ago. */
async function watch(machine = MACHINE): Promise<Reach> {
  const reach = await watchFromNow(machine);
  clock.advance(60_000);
  return reach;
}

async function watchFromNow(machine = MACHINE): Promise<Reach> {
  const reach = await watchReach({ ...api.world, clock, open: openSession }, machine, () => {
    noted += 1;
  });
  open.push(reach);
  return reach;
}

/** Where nobody listens. */
const hop = (n: number) => ({ host: `mx${n}.example`, address: "127.0.0.77" });

function closedOf(machine = MACHINE) {
  return until("it is written down", async () => (await queries.findClosed(api.world.db, machine))[0]);
}

test("three sites out of reach, and none within it, mean that the machine is", async () => {
  const reach = await watch();
  reach.unreachable("one", hop(1));
  reach.unreachable("two", hop(2));
  reach.unreachable("two", hop(2));
  assert.equal(reach.isClosed(), false, "two sites may well be down");
  reach.unreachable("three", hop(3));
  assert.deepEqual([reach.isClosed(), noted], [true, 1]);
  reach.unreachable("four", hop(4));
  assert.equal(noted, 1, "once");
  assert.deepEqual((await closedOf())?.targets, ["127.0.0.77", "127.0.0.77", "127.0.0.77"]);
});

test("sites that are down right after a start say nothing yet: their mail is what waits for it", async () => {
  const reach = await watchFromNow();
  for (const n of [1, 2, 3, 4]) reach.unreachable(`site ${n}`, hop(n));
  clock.advance(59_999);
  reach.unreachable("site 5", hop(5));
  assert.equal(reach.isClosed(), false);
  clock.advance(1);
  reach.unreachable("site 5", hop(5));
  assert.equal(reach.isClosed(), true);
});

test("sites are only down while others could be reached within the minute", async () => {
  const reach = await watch();
  reach.connected(hop(0));
  for (const n of [1, 2, 3, 4]) reach.unreachable(`site ${n}`, hop(n));
  assert.equal(reach.isClosed(), false);
  clock.advance(60_000);
  reach.unreachable("site 5", hop(5));
  await until("what was reached before was asked as well", () => reach.isClosed());
});

test("sites are only down while one that was reached hours ago still answers", async () => {
  const reach = await watch();
  const asked = once(greeter, "connection");
  reach.connected({ host: "mx.example", address: "127.0.0.1" });
  clock.advance(3_600_000);
  for (const n of [1, 2, 3, 4]) reach.unreachable(`site ${n}`, hop(n));
  await asked;
  await reach.stop();
  assert.equal(reach.isClosed(), false);
  reach.unreachable("site 5", hop(5));
  assert.deepEqual([reach.isClosed(), noted], [false, 0]);
});

test("it is looked for at a site that was reached before, though those that failed stay dead", async () => {
  const reach = await watch();
  reach.connected({ host: "mx.example", address: "127.0.0.79" });
  clock.advance(60_000);
  for (const n of [1, 2, 3]) reach.unreachable(`site ${n}`, hop(n));
  await until("it is closed", () => reach.isClosed());
  assert.equal(await reach.look(), false);
  const { port } = greeter.address() as { port: number };
  const again = createServer((socket) => socket.on("error", () => undefined).end("554 no\r\n"));
  again.listen(port, "127.0.0.79");
  await once(again, "listening");
  assert.equal(await reach.look(), true);
  assert.equal(reach.isClosed(), false);
  again.close();
});

test("one connection ends it, here and in the database", async () => {
  const reach = await watch();
  for (const n of [1, 2, 3]) reach.unreachable(`site ${n}`, hop(n));
  await closedOf();
  reach.connected(hop(0));
  assert.equal(reach.isClosed(), false);
  await until("it is taken back", async () => (await queries.findClosed(api.world.db, MACHINE)).length === 0);
});

test("it is looked for by connecting; any greeting will do", async () => {
  const reach = await watch();
  for (const n of [1, 2]) reach.unreachable(`site ${n}`, hop(n));
  reach.unreachable("site 3", { host: "mx3.example", address: "127.0.0.78" });
  assert.equal(await reach.look(), false);
  assert.equal(reach.isClosed(), true);
  const { port } = greeter.address() as { port: number };
  const late = createServer((socket) => socket.on("error", () => undefined).end("554 no\r\n"));
  late.listen(port, "127.0.0.78");
  await once(late, "listening");
  assert.equal(await reach.look(), true);
  assert.equal(reach.isClosed(), false);
  late.close();
});

test("the machine's other processes, and the next start, know it from the database", async () => {
  const first = await watch();
  for (const n of [1, 2, 3]) first.unreachable(`site ${n}`, hop(n));
  await closedOf();
  const second = await watch();
  assert.equal(second.isClosed(), true);
  assert.equal((await watch("another machine")).isClosed(), false);
});

test("mail is placed behind relays only when no sending machine has a way out", async () => {
  const { db } = api.world;
  const everywhere = async () => (await queries.isClosedEverywhere(db))[0]?.closed;
  assert.equal(await everywhere(), false, "nobody sends");
  await db.query(
    "insert into node (machine, pid, roles) values ('a', 1, '{mta}'), ('b', 2, '{mta}'), ('c', 3, '{api}')",
  );
  await queries.noteClosed(db, { machine: "a", at: new Date(), targets: [] });
  assert.equal(await everywhere(), false);
  await queries.noteClosed(db, { machine: "b", at: new Date(), targets: [] });
  assert.equal(await everywhere(), true);
  await queries.noteOpen(db, "a");
  assert.equal(await everywhere(), false);
  await db.query("delete from node");
});
