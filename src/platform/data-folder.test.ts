// When a data folder belongs to a database that is not there.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { noteDatabase, refuseEmptyDatabase, refuseLostDatabase } from "./data-folder.ts";

const root = mkdtempSync(join(tmpdir(), "postern-folder-"));
after(() => rmSync(root, { recursive: true, force: true }));

let data: string;

beforeEach(() => {
  data = mkdtempSync(join(root, "data-"));
});

async function refused(expected: RegExp): Promise<void> {
  await assert.rejects(refuseLostDatabase(data), expected);
  await assert.rejects(refuseEmptyDatabase(data), expected);
}

async function taken(): Promise<void> {
  await refuseLostDatabase(data);
  await refuseEmptyDatabase(data);
}

describe("a data folder", () => {
  it("may begin with a new database while it is not there, empty, or holds the master key alone", async () => {
    await taken();
    writeFileSync(join(data, "master.key"), "ab".repeat(32));
    mkdirSync(join(data, "blobs/ab/cd"), { recursive: true });
    await taken();
    rmSync(data, { recursive: true });
    await taken();
  });

  it("may not with the id, a sending mark or a large body of another one, each of which is named", async () => {
    await noteDatabase(data, "11111111-1111-4111-8111-111111111111");
    await refused(/holds the id of another one|but the id of it/);
    writeFileSync(join(data, "sending-11111111-1111-4111-8111-111111111111-7.mark"), "7 -\n");
    mkdirSync(join(data, "blobs/ab/cd"), { recursive: true });
    writeFileSync(join(data, "blobs/ab/cd/abcd"), "x");
    await refused(/the id, the sending mark, the large bodies/);
    await assert.rejects(refuseLostDatabase(data), /is its volume mounted\? .*set POSTERN_DATA to another folder/);
    await assert.rejects(refuseEmptyDatabase(data), /does DATABASE_URL name the right database/);
  });

  it("notes each database once", async () => {
    for (const id of ["one", "two", "one"]) await noteDatabase(data, id);
    assert.equal(readFileSync(join(data, "database-ids"), "utf8"), "one\ntwo\n");
  });
});
