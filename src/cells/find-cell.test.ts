import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, test } from "node:test";
import { until } from "../../test/support/until.ts";
import type { DoorCell } from "./cell-list.ts";
import { cellFinder } from "./find-cell.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** A cell that has these domains, hosts and keys; `has` may change, and `asked` counts. */
async function cellWith(name: string, has: Set<string> | "trouble", moving: Set<string> = new Set()) {
  const cell = { name, internal: "", http: "", mx: "", submission: "", asked: 0, has };
  const server = createServer((request, response) => {
    cell.asked += 1;
    const [value = ""] = new URL(request.url ?? "", "http://x").searchParams.values();
    if (cell.has === "trouble") response.writeHead(503).end("{}");
    else response.end(JSON.stringify({ owns: cell.has.has(value), ...(moving.has(value) && { moving: true }) }));
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await new Promise((done) => server.once("listening", done));
  cell.internal = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return cell;
}

const domain = (value: string) => ({ kind: "domain", value }) as const;
const nameOf = (found: Awaited<ReturnType<ReturnType<typeof cellFinder>>>) =>
  found.kind === "cell" ? found.cell.name : found.kind;

test("the cell that has it is found, the first of two, and none where each says no", async () => {
  const one = await cellWith("one", new Set(["a.example", "both.example"]));
  const two = await cellWith("two", new Set(["b.example", "both.example"]));
  const find = cellFinder([one, two] satisfies DoorCell[]);
  const names = ["a.example", "b.example", "both.example", "c.example"].map((name) => find(domain(name)));
  assert.deepEqual((await Promise.all(names)).map(nameOf), ["one", "two", "one", "none"]);
});

test("a cell that cannot be asked makes a no uncertain, and stops nobody who is well", async () => {
  const ill = await cellWith("ill", "trouble");
  const well = await cellWith("well", new Set(["a.example"]));
  const find = cellFinder([ill, { ...ill, name: "away", internal: "127.0.0.1:1" }, well]);
  assert.equal(nameOf(await find(domain("a.example"))), "well");
  assert.equal(nameOf(await find(domain("c.example"))), "unknown");
});

test("what was found is kept for a while, that nobody has it is not", async () => {
  const has = new Set<string>();
  const one = await cellWith("one", has);
  const find = cellFinder([one]);
  assert.equal(nameOf(await find(domain("new.example"))), "none");
  has.add("new.example");
  assert.equal(nameOf(await find(domain("new.example"))), "one");
  const asked = one.asked;
  has.delete("new.example");
  assert.equal(nameOf(await find(domain("new.example"))), "one");
  assert.equal(one.asked, asked);
  assert.equal(nameOf(await find(domain("new.example"), { fresh: true })), "none");

  const forgetful = cellFinder([one], { kept_ms: 20 });
  has.add("short.example");
  assert.equal(nameOf(await forgetful(domain("short.example"))), "one");
  has.delete("short.example");
  await until("it is asked about again", async () => nameOf(await forgetful(domain("short.example"))) === "none");
});

test("a host that is nobody's is kept, too: all requests at the shared name would ask every cell", async () => {
  const one = await cellWith("one", new Set());
  const find = cellFinder([one]);
  for (let n = 0; n < 5; n += 1) assert.equal(nameOf(await find({ kind: "host", value: "mail.example" })), "none");
  assert.equal(one.asked, 1);
});

test("a key that nobody has is asked about once in a few seconds, and a new one at once", async () => {
  const has = new Set<string>();
  const one = await cellWith("one", has);
  const find = cellFinder([one], { unknown_key_ms: 60_000 });
  const key = (value: string) => ({ kind: "key_digest", value }) as const;
  for (let n = 0; n < 5; n += 1) assert.equal(nameOf(await find(key("aa"))), "none");
  assert.equal(one.asked, 1);
  has.add("bb");
  assert.equal(nameOf(await find(key("bb"))), "one", "nobody asked about it before it was made");
  assert.equal(nameOf(await find(domain("aa"))), "none");
  assert.equal(nameOf(await find(domain("aa"))), "none");
  assert.equal(one.asked, 4, "a domain may be added at any time");

  const forgetful = cellFinder([one], { unknown_key_ms: 20 });
  assert.equal(nameOf(await forgetful(key("cc"))), "none");
  has.add("cc");
  await until("it is asked about again", async () => nameOf(await forgetful(key("cc"))) === "one");
});

test("that a cell could not be asked is kept of no key", async () => {
  const ill = await cellWith("ill", "trouble");
  const find = cellFinder([ill], { unknown_key_ms: 60_000 });
  assert.equal(nameOf(await find({ kind: "key_digest", value: "aa" })), "unknown");
  ill.has = new Set(["aa"]);
  assert.equal(nameOf(await find({ kind: "key_digest", value: "aa" })), "ill");
});

test("a flood of wrong keys and of strange hosts does not push out what was found", async () => {
  const one = await cellWith("one", new Set(["good"]));
  const find = cellFinder([one], { kept_max: 10 });
  assert.equal(nameOf(await find({ kind: "key_digest", value: "good" })), "one");
  for (let n = 0; n < 30; n += 1) {
    await find({ kind: "key_digest", value: `wrong${n}` });
    await find({ kind: "host", value: `strange${n}.example` });
  }
  const { asked } = one;
  assert.equal(nameOf(await find({ kind: "key_digest", value: "good" })), "one");
  assert.equal(one.asked, asked);
});

test("questions of one moment are one question", async () => {
  const one = await cellWith("one", new Set());
  const find = cellFinder([one]);
  await Promise.all(Array.from({ length: 20 }, () => find(domain("c.example"))));
  assert.equal(one.asked, 1);
});

test("what moves is answered by the cell that it leaves until the other one has it, and that is not kept", async () => {
  const has = new Set<string>();
  const former = await cellWith("former", new Set(["moves.example"]), new Set(["moves.example"]));
  const next = await cellWith("next", has);
  const find = cellFinder([former, next]);
  assert.equal(nameOf(await find(domain("moves.example"))), "former");
  has.add("moves.example");
  assert.equal(nameOf(await find(domain("moves.example"))), "next");
  const asked = next.asked;
  assert.equal(nameOf(await find(domain("moves.example"))), "next");
  assert.equal(next.asked, asked);
});
