// Where a database was made it stays. Placing one elsewhere takes root, finding it does not.
import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { databaseFolder, findDatabase } from "./database-folder.ts";

const asRoot = process.getuid?.() === 0;

let dir: string;
let count = 0;
let data: string;
let elsewhere: string;

before(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-place-"));
});

after(() => {
  rmSync(dir, { recursive: true, force: true });
});

beforeEach(() => {
  chmodSync(dir, 0o711);
  data = join(dir, `data-${count}`);
  elsewhere = join(dir, `elsewhere-${count}`);
  count += 1;
  mkdirSync(data, { mode: 0o711 });
});

/** As after a start: there is a database in that folder. */
function makeCluster(folder: string): void {
  mkdirSync(join(folder, "cluster"), { recursive: true });
}

/** The data folder's database is in `elsewhere`. */
function makeMoved(name = "ab".repeat(16)): string {
  makeCluster(join(elsewhere, name));
  writeFileSync(join(data, "database-name"), `${name}\n`);
  return join(elsewhere, name);
}

describe("the place of the embedded database", () => {
  it("is not there before the first start, and looking makes nothing", async () => {
    assert.equal(await findDatabase(join(dir, "nowhere"), elsewhere), null);
    assert.equal(await findDatabase(data, elsewhere), null);
  });

  it("stays in the data folder when nobody else can pass through the folders above any more", async () => {
    makeCluster(join(data, "postgres"));
    chmodSync(dir, 0o700);
    const wanted = { folder: join(data, "postgres"), moved: false, unused: null };
    assert.deepEqual(await databaseFolder(data, elsewhere), wanted);
  });

  it("stays elsewhere when the folders above are opened, or another user starts", async () => {
    const folder = makeMoved();
    assert.deepEqual(await databaseFolder(data, elsewhere), { folder, moved: true, unused: null });
    assert.deepEqual(await findDatabase(data, elsewhere), { folder, moved: true, unused: null });
  });

  it("is the one in the data folder when there are two, and the other is named", async () => {
    const unused = makeMoved();
    makeCluster(join(data, "postgres"));
    assert.deepEqual(await databaseFolder(data, elsewhere), { folder: join(data, "postgres"), moved: false, unused });
  });

  it("is never made again where it should have been", async () => {
    rmSync(makeMoved(), { recursive: true });
    await assert.rejects(
      databaseFolder(data, elsewhere),
      /The database of .* was in .*, which is not there: put it back/,
    );
    writeFileSync(join(data, "database-name"), "../../etc\n");
    await assert.rejects(databaseFolder(data, elsewhere), /database-name is damaged/);
  });

  it("is elsewhere for root below a closed folder, and found there by the next start", { skip: !asRoot }, async () => {
    chmodSync(dir, 0o700);
    const { folder, moved } = await databaseFolder(data, elsewhere);
    assert.deepEqual([moved, folder.startsWith(elsewhere)], [true, true]);
    assert.equal(
      (await databaseFolder(data, elsewhere)).folder,
      folder,
      "a start that ended before the cluster was made",
    );
    chmodSync(dir, 0o711);
    assert.equal((await databaseFolder(data, elsewhere)).folder, folder);
    assert.equal(readFileSync(join(folder, "data-folder"), "utf8"), `${data}\n`);
  });

  it("belongs to one data folder: a copy is refused, one that was moved is not", { skip: !asRoot }, async () => {
    const folder = makeMoved();
    await databaseFolder(data, elsewhere);
    const copy = `${data}-copy`;
    cpSync(data, copy, { recursive: true });
    await assert.rejects(databaseFolder(copy, elsewhere), new RegExp(`${copy} is a copy of ${data}, and the database`));
    renameSync(data, `${data}-old`);
    assert.equal((await databaseFolder(copy, elsewhere)).folder, folder);
    await assert.rejects(findDatabase(`${data}-old`, elsewhere), /is a copy of/, "now that one is the copy");
  });
});
