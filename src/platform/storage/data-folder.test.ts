// When a data folder belongs to a database that is not there.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, it } from "node:test";
import { readConfig } from "../../config.ts";
import { noteDatabase, refuseEmptyDatabase, refuseLostDatabase } from "./data-folder.ts";

const root = mkdtempSync(join(tmpdir(), "postern-folder-"));
after(() => rmSync(root, { recursive: true, force: true }));

let data: string;

beforeEach(() => {
  data = mkdtempSync(join(root, "data-"));
});

const lost = (isThere = false): Promise<void> => refuseLostDatabase(data, async () => isThere);
const empty = (isEmpty = true): Promise<void> => refuseEmptyDatabase(data, async () => isEmpty);

async function refused(expected: RegExp): Promise<void> {
  await assert.rejects(lost(), expected);
  await assert.rejects(empty(), expected);
}

async function taken(): Promise<void> {
  await lost();
  await empty();
}

describe("a data folder", () => {
  it("may begin with a new database while it is not there, empty, or after a first start that was cut short", async () => {
    await taken();
    readConfig({ POSTERN_DATA: data }); // makes the key
    mkdirSync(join(data, "blobs/ab/cd"), { recursive: true });
    await taken();
    rmSync(data, { recursive: true });
    await taken();
  });

  it("may not with a master key that was put there: the database that it opens is missing", async () => {
    writeFileSync(join(data, "master.key"), "ab".repeat(32));
    readConfig({ POSTERN_DATA: data });
    await refused(/holds the master key of another one|but the master key of it/);
    await refused(/set POSTERN_DATA to another folder, and POSTERN_MASTER_KEY where a key that you have is to be used/);
    await lost(true);
    await empty(false);
  });

  it("is judged before its database: a first start of another process may be over in between", async () => {
    readConfig({ POSTERN_DATA: data });
    const started = async (): Promise<boolean> => {
      await noteDatabase(data, "11111111-1111-4111-8111-111111111111");
      return true;
    };
    await refuseLostDatabase(data, started);
    await refuseEmptyDatabase(data, async () => !(await started()));
  });

  it("may not with the id, a sending mark or a large body of another one, each of which is named", async () => {
    await noteDatabase(data, "11111111-1111-4111-8111-111111111111");
    await refused(/holds the id of another one|but the id of it/);
    writeFileSync(join(data, "sending-11111111-1111-4111-8111-111111111111-7.mark"), "7 -\n");
    mkdirSync(join(data, "blobs/ab/cd"), { recursive: true });
    writeFileSync(join(data, "blobs/ab/cd/abcd"), "x");
    await refused(/the id, the sending mark, the large bodies/);
    await assert.rejects(lost(), /is its volume mounted\? .*set POSTERN_DATA to another folder/);
    await assert.rejects(empty(), /does DATABASE_URL name the right database/);
  });

  it("notes each database once", async () => {
    for (const id of ["one", "two", "one"]) await noteDatabase(data, id);
    assert.equal(readFileSync(join(data, "database-ids"), "utf8"), "one\ntwo\n");
  });
});
