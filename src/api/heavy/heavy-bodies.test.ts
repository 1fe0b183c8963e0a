import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, it } from "node:test";
import { until } from "../../../test/support/until.ts";
import { createBodyReader, createBodyWriter } from "./heavy-bodies.ts";

/** Two ends of a connection. */
async function connection(): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [far] = (await once(server, "connection")) as [Socket];
  server.close();
  return [near, far];
}

/** What arrives of what is written; it is announced before its bytes, or when all of them are there. */
async function passOn(given: { name: string; pieces: Uint8Array[] }[], announced: "before" | "after") {
  const [near, far] = await connection();
  const arrived: { name: string; body: string }[] = [];
  let bytesThere = 0;
  far.on("data", ({ length }) => {
    bytesThere += length;
  });
  const reader = createBodyReader<string>((name, body) => arrived.push({ name, body: body.toString("latin1") }), far);
  const write = createBodyWriter(near);
  const late: (() => void)[] = [];
  let sent = 0;
  await Promise.all(
    given.map(({ name, pieces }) => {
      const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
      sent += bytes;
      const announce = (): void => reader.expect(name, bytes);
      return write(() => (announced === "before" ? announce() : late.push(announce)), pieces);
    }),
  );
  await until("all bytes are there", () => bytesThere === sent);
  for (const announce of late) announce();
  near.destroy();
  far.destroy();
  return arrived;
}

describe("bodies for the process of heavy requests", () => {
  const piece = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
  const requests = () => [
    { name: "two pieces", pieces: [piece("one "), piece("two")] },
    { name: "none", pieces: [] },
    { name: "empty ones", pieces: [piece(""), piece("three"), piece("")] },
    { name: "a large one", pieces: [piece("4".repeat(1_000_000))] },
  ];
  const all = [
    { name: "two pieces", body: "one two" },
    { name: "none", body: "" },
    { name: "empty ones", body: "three" },
    { name: "a large one", body: "4".repeat(1_000_000) },
  ];

  it("come whole and in order, when each is announced first", async () => {
    assert.deepEqual(await passOn(requests(), "before"), all);
  });

  it("come whole and in order, when the bytes are there before the announcements", async () => {
    assert.deepEqual(await passOn(requests(), "after"), all);
  });

  it("leave no memory held: the pieces are empty once they have left", async () => {
    const [first, second] = [piece("one"), piece("two")];
    await passOn([{ name: "x", pieces: [first, second] }], "before");
    assert.deepEqual([first.length, second.length, first.buffer.byteLength], [0, 0, 0]);
  });

  it("do not wait for a process that has ended", async () => {
    const [near, far] = await connection();
    const write = createBodyWriter(near);
    far.destroy();
    const large = Array.from({ length: 8 }, () => new Uint8Array(1 << 20));
    await write(() => undefined, large);
    near.destroy();
  });
});
