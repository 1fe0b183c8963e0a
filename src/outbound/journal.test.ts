import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folderJournals, type InFlight, openJournal, readJournal } from "./journal.ts";

let folder: string;
let nodes = 0;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "postern-journal-"));
});

after(() => {
  rmSync(folder, { recursive: true, force: true });
});

function flight(n: number, attempts = 0): InFlight {
  return { message_id: `0190a000-0000-7000-8000-${String(n).padStart(12, "0")}`, position: n % 50, attempts };
}

test("what was noted is read back after a process that closed nothing", () => {
  const node = ++nodes;
  const journal = openJournal(folder, node);
  for (let n = 1; n <= 100; n += 1) journal.note(flight(n, n % 3));
  const found = readJournal(folder, node);
  assert.deepEqual(
    found,
    Array.from({ length: 100 }, (_, index) => flight(index + 1, (index + 1) % 3)),
  );
});

test("a node without a journal is told from one with an empty journal", () => {
  const node = ++nodes;
  assert.equal(readJournal(folder, node), null);
  const journal = openJournal(folder, node);
  assert.deepEqual(readJournal(folder, node), []);
  journal.close();
  assert.equal(readJournal(folder, node), null);
});

test("a slot is used again once its outcome is committed, so the file does not grow with the mail", () => {
  const node = ++nodes;
  const journal = openJournal(folder, node);
  const size = statSync(join(folder, `node-${node}.journal`)).size;
  for (let n = 1; n <= 50_000; n += 1) {
    journal.note(flight(n));
    journal.settle([flight(n)]);
  }
  assert.equal(statSync(join(folder, `node-${node}.journal`)).size, size);
  assert.equal(readJournal(folder, node)?.length, 1);
  folderJournals(folder).remove(node);
  assert.equal(readJournal(folder, node), null);
});

test("the next attempt of a delivery takes the place of the one before", () => {
  const node = ++nodes;
  const journal = openJournal(folder, node);
  journal.note(flight(1, 0));
  journal.note(flight(1, 1));
  assert.deepEqual(readJournal(folder, node), [flight(1, 1)]);
});

test("more in flight than there were slots makes the file longer and loses none", () => {
  const node = ++nodes;
  const journal = openJournal(folder, node);
  for (let n = 1; n <= 10_000; n += 1) journal.note(flight(n));
  assert.equal(readJournal(folder, node)?.length, 10_000);
});

test("a journal of an older database's node of the same number is begun anew", () => {
  const node = ++nodes;
  openJournal(folder, node).note(flight(1));
  openJournal(folder, node);
  assert.deepEqual(readJournal(folder, node), []);
});
