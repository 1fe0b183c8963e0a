// How many look-ups of routes are under way at once, and whose.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRoutes } from "./routes.ts";

type Answer = { kind: "absent"; reason: "nxdomain" };

/** A resolver whose answers are given by hand, and which fails as ours does when too much waits. */
function stage() {
  const asked: { name: string; answer(): void }[] = [];
  let most = 0;
  const ask = (name: string): Promise<Answer> =>
    new Promise((done) => {
      asked.push({ name, answer: () => done({ kind: "absent", reason: "nxdomain" }) });
      most = Math.max(most, asked.length);
    });
  const world = {
    resolver: { mx: ask, a: ask, aaaa: ask, txt: ask, tlsa: ask },
    random: { float: () => 0.5 },
    config: { testing: {} },
    clock: { now: () => 0, monotonic: () => 0 },
    db: { query: async () => [] },
  } as unknown as Parameters<typeof createRoutes>[0];
  const turn = () => new Promise((done) => setImmediate(done));
  return {
    routes: createRoutes(world),
    turn,
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
