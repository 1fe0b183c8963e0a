// What a data folder testifies of its database, and what it no longer does once it was copied.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { keepMark, readMarks } from "./marks.ts";

const ID = "11111111-1111-4111-8111-111111111111";
const root = mkdtempSync(join(tmpdir(), "postern-marks-"));
after(() => rmSync(root, { recursive: true, force: true }));

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(root, "data-"));
});

const read = (where = folder) => readMarks(where, ID);

describe("the marks of a data folder", () => {
  it("are the last one that was kept, of each database apart, and none of a folder that is not there", async () => {
    const other = "22222222-2222-4222-8222-222222222222";
    for (const beats of [1, 2, 10]) await keepMark(folder, { id: ID, beats });
    await keepMark(folder, { id: other, beats: 5 });
    assert.deepEqual(await read(), { beats: 10, isOwn: true });
    assert.deepEqual(await readMarks(folder, other), { beats: 5, isOwn: true });
    assert.equal(readdirSync(folder).length, 2);
    assert.deepEqual(await read(join(folder, "absent")), { beats: 0, isOwn: false });
  });

  it("stay its own when it is moved, given to its owner again and opened or closed to others", async () => {
    await keepMark(folder, { id: ID, beats: 3 });
    const moved = `${folder}-moved`;
    renameSync(folder, moved);
    const [name = ""] = readdirSync(moved);
    chownSync(join(moved, name), process.getuid?.() ?? 0, process.getgid?.() ?? 0);
    chmodSync(join(moved, name), 0o640);
    execFileSync("chown", ["-R", String(process.getuid?.()), moved]);
    assert.deepEqual(await read(moved), { beats: 3, isOwn: true });
  });

  for (const [tool, copy] of [
    ["cp -a", (to: string) => execFileSync("cp", ["-a", folder, to])],
    [
      "tar",
      (to: string) => execFileSync("sh", ["-c", `mkdir ${to} && tar -C ${folder} -cf - . | tar -C ${to} -xpf -`]),
    ],
  ] as const) {
    it(`are known as a copy's where ${tool} brought them`, async () => {
      await keepMark(folder, { id: ID, beats: 3 });
      const to = `${folder}-copy`;
      copy(to);
      assert.deepEqual(await read(to), { beats: 3, isOwn: false });
      await keepMark(to, { id: ID, beats: 4 });
      assert.deepEqual(await read(to), { beats: 4, isOwn: true });
      assert.equal(readdirSync(to).length, 1);
    });
  }

  it("tell of what was sent since also where an older folder was copied over this one", async () => {
    await keepMark(folder, { id: ID, beats: 3 });
    const backup = `${folder}-backup`;
    execFileSync("cp", ["-a", folder, backup]);
    await keepMark(folder, { id: ID, beats: 4 });
    execFileSync("cp", ["-a", `${backup}/.`, folder]);
    assert.equal((await read()).beats, 4);
  });

  it("of a version before count as its own", async () => {
    writeFileSync(join(folder, `sending-${ID}.mark`), "7\n");
    assert.deepEqual(await read(), { beats: 7, isOwn: true });
    await keepMark(folder, { id: ID, beats: 8 });
    assert.deepEqual(readdirSync(folder), [`sending-${ID}-8.mark`]);
  });

  it("that are cut short testify their number only, and what is no file is an error", async () => {
    writeFileSync(join(folder, `sending-${ID}-9.mark`), "");
    assert.deepEqual(await read(), { beats: 9, isOwn: false });
    mkdirSync(join(folder, `sending-${ID}-10.mark`));
    await assert.rejects(read(), /EISDIR/);
  });
});
