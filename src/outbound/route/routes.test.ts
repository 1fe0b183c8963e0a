// How many look-ups of routes are under way at once, and whose.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRoutes } from "./routes.ts";

type Answer = { kind: "absent"; reason: "nxdomain" };

/** A resolver whose answers are given by hand, and which fails as ours does when too much waits; `found` have an MX at once. */
function stage(found: string[] = []) {
  const asked: { name: string; answer(): void }[] = [];
  let most = 0;
  const ask = (name: string): Promise<Answer> =>
    new Promise((done) => {
      asked.push({ name, answer: () => done({ kind: "absent", reason: "nxdomain" }) });
      most = Math.max(most, asked.length);
    });
  const records = async <T>(name: string, record: T) => {
    asked.push({ name, answer: () => undefined });
    return { kind: "found", records: [record], authenticated: false, ttl_s: 60 };
  };
  const isOf = (name: string) => found.some((domain) => name.endsWith(domain));
  let nowMs = 0;
  const resolver = {
    mx: (name: string) => (isOf(name) ? records(name, { exchange: `mx.${name}`, preference: 10 }) : ask(name)),
    a: (name: string) => (isOf(name) ? records(name, "127.0.0.1") : ask(name)),
    aaaa: (name: string) => (isOf(name) ? { kind: "absent", reason: "nodata" } : ask(name)),
    txt: (name: string) => (isOf(name) ? { kind: "absent", reason: "nodata" } : ask(name)),
    tlsa: ask,
  };
  const world = {
    resolver,
    random: { float: () => 0.5 },
    config: { testing: { allow_loopback: true } },
    clock: { now: () => nowMs, monotonic: () => nowMs },
    db: { query: async () => [] },
  } as unknown as Parameters<typeof createRoutes>[0];
  const turn = () => new Promise((done) => setImmediate(done));
  return {
    routes: createRoutes(world),
    turn,
    passMinutes(minutes: number): void {
      nowMs += minutes * 60_000;
    },
    names: () => asked.map(({ name }) => name),
    most: () => most,
    async answerAll(): Promise<void> {
      for (const { answer } of asked.splice(0)) answer();
      await turn();
    },
  };
}

test("ten thousand new domains are asked for a few at a time, and every one gets its answer", async () => {
  const { routes, turn, names, most, answerAll } = stage();
  const all = Array.from({ length: 10_000 }, (_none, n) => routes.find(`d${n}.example`, "flood"));
  await turn();
  assert.ok(names().length > 50, `${names().length} questions`);
  while (names().length > 0) await answerAll();
  assert.ok((await Promise.all(all)).every(({ kind }) => kind === "none"));
  assert.ok(most() <= 256, `${most()} questions at once`);
});

test("another organization's domain is asked for at once beside them", async () => {
  const { routes, turn, names } = stage();
  for (let n = 0; n < 10_000; n += 1) void routes.find(`d${n}.example`, "flood");
  await turn();
  void routes.find("customer.example", "shop");
  await turn();
  assert.ok(names().includes("customer.example"));
});

test("nor does it wait for them where they want the same domain, and what was begun is not begun again", async () => {
  const { routes, turn, names } = stage();
  for (let n = 0; n < 10_000; n += 1) void routes.find(`d${n}.example`, "flood");
  await turn();
  void routes.find("d9999.example", "shop");
  void routes.find("d0.example", "shop");
  await turn();
  assert.ok(names().includes("d9999.example"));
  assert.equal(names().filter((name) => name === "_mta-sts.d0.example").length, 1);
});

test("a domain that is written to all day is asked for again at once beside ten thousand whose name servers are silent", async () => {
  const { routes, turn, names, passMinutes } = stage(["daily.example"]);
  assert.equal((await routes.find("daily.example", "shop")).kind, "route");
  passMinutes(6);
  for (let n = 0; n < 10_000; n += 1) void routes.find(`d${n}.example`, "shop");
  await turn();
  const again = routes.find("daily.example", "shop");
  await turn();
  assert.equal(names().filter((name) => name === "daily.example").length, 2);
  assert.equal((await again).kind, "route");
});
