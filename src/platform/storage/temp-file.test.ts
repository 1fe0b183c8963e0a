import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createRandom } from "../random.ts";
import type { World } from "../world.ts";
import { openTempFile } from "./temp-file.ts";

const data_dir = mkdtempSync(join(tmpdir(), "postern-temp-file-"));
const world = { config: { data_dir }, random: createRandom({ now: () => Date.now() }) } as unknown as World;
after(() => rmSync(data_dir, { recursive: true, force: true }));

test("what was written is read back in pieces, and the folder shows no file", async () => {
  const file = await openTempFile(world);
  const parts = [Buffer.from("abc"), Buffer.alloc(0), Buffer.alloc(100_000, "x"), Buffer.from("end")];
  for (const part of parts) await file.write(part);
  assert.equal(file.size(), 100_006);
  assert.deepEqual(readdirSync(join(data_dir, "uploads")), []);
  for (const pieceBytes of [1_000, 65_536, 1_000_000]) {
    const pieces: Buffer[] = [];
    for await (const piece of file.read(pieceBytes)) pieces.push(Buffer.from(piece));
    assert.ok(pieces.every(({ length }) => length <= pieceBytes));
    assert.ok(Buffer.concat(pieces).equals(Buffer.concat(parts)));
  }
  await file.discard();
  await file.discard();
  await assert.rejects(file.write(Buffer.from("x")));
});

test("an empty one has no pieces, and two do not meet", async () => {
  const [one, other] = await Promise.all([openTempFile(world), openTempFile(world)]);
  await other.write(Buffer.from("other"));
  for await (const _piece of one.read(10)) assert.fail("there is nothing");
  assert.equal(other.size(), 5);
  await Promise.all([one.discard(), other.discard()]);
});
