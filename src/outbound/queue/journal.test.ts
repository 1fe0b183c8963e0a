import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deferredLocally } from "../path/attempt.ts";
import type { Outcome } from "../types.ts";
import { folderJournals, journalFolders, type Noted, openJournal, readJournal } from "./journal.ts";

let folder: string;
let nodes = 0;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "postern-journal-"));
});

after(() => {
  rmSync(folder, { recursive: true, force: true });
});

function flight(n: number, attempts = 0, outcome: Outcome | null = null): Noted {
  const message_id = `0190a000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  return { message_id, position: n % 50, attempts, outcome };
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

test("a node without a journal is distinguished from one with an empty journal", () => {
  const node = ++nodes;
  assert.equal(readJournal(folder, node), undefined);
  assert.equal(folderJournals([folder]).read(node), null);
  const journal = openJournal(folder, node);
  assert.deepEqual(readJournal(folder, node), []);
  journal.close();
  assert.equal(readJournal(folder, node), undefined);
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
  folderJournals([folder]).remove(node);
  assert.equal(readJournal(folder, node), undefined);
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

test("a journal of an older database's node of the same number is begun again", () => {
  const node = ++nodes;
  openJournal(folder, node).note(flight(1));
  openJournal(folder, node);
  assert.deepEqual(readJournal(folder, node), []);
});

const delivered: Outcome = { ...deferredLocally("250 taken", "2.0.0", ""), kind: "delivered", smtp_code: "250" };

test("what the server answered is read back, until another attempt takes the place", () => {
  const node = ++nodes;
  const journal = openJournal(folder, node);
  for (const n of [1, 2]) journal.note(flight(n));
  journal.conclude(flight(1), delivered);
  journal.conclude(flight(3), delivered);
  assert.deepEqual(readJournal(folder, node), [flight(1, 0, delivered), flight(2)]);
  journal.note(flight(1, 1));
  assert.deepEqual(readJournal(folder, node), [flight(1, 1), flight(2)]);
});

test("an answer of any length is kept, its text cut; one that fits in no slot leaves its message in doubt", () => {
  const node = ++nodes;
  const journal = openJournal(folder, node);
  for (const n of [1, 2]) journal.note(flight(n));
  journal.conclude(flight(1), { ...delivered, message: "x".repeat(5_000) });
  journal.conclude(flight(2), { ...delivered, mx_host: "x".repeat(5_000) });
  assert.deepEqual(readJournal(folder, node), [flight(1, 0, { ...delivered, message: "x".repeat(300) }), flight(2)]);
});

test("a journal that is not whole says nothing: cut, of another make, or changed in any byte of a slot", () => {
  const path = (node: number) => join(folder, `node-${node}.journal`);
  const make = (): number => {
    const node = ++nodes;
    const journal = openJournal(folder, node);
    for (const n of [1, 2]) journal.note(flight(n));
    journal.conclude(flight(2), delivered);
    return node;
  };
  const cut = make();
  truncateSync(path(cut), 4_096);
  assert.equal(readJournal(folder, cut), null);
  truncateSync(path(cut), 0);
  assert.equal(readJournal(folder, cut), null, "as a file system leaves it that had not written it yet");
  assert.equal(folderJournals([folder]).read(cut), null);
  const whole = readFileSync(path(make()));
  for (const at of [0, 1_024, 1_030, 1_045, 1_049, 2_048 + 20, 2_048 + 60]) {
    const node = ++nodes;
    const bytes = Buffer.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path(node), bytes);
    assert.equal(readJournal(folder, node), null, `byte ${at}`);
  }
});

test("journals lie in shared memory where there is any, go with their node, and elsewhere where that takes none", () => {
  const data_dir = mkdtempSync(join(folder, "data-"));
  const folders = journalFolders({ config: { data_dir } });
  assert.equal(folders.at(-1), join(data_dir, "outbound"));
  if (process.platform === "linux") assert.match(folders[0] ?? "", /^\/dev\/shm\/postern-\d+-[0-9a-f]{16}$/);
  const journals = folderJournals(folders);
  const journal = journals.open(1);
  journal.note(flight(1));
  assert.deepEqual(journals.read(1), [flight(1)]);
  journal.close();
  assert.equal(existsSync(folders[0] ?? ""), false, "nothing is left in memory");
  writeFileSync(join(folder, "no-folder"), "");
  const elsewhere = folderJournals([join(folder, "no-folder"), folder]);
  elsewhere.open(++nodes).note(flight(1));
  assert.deepEqual(elsewhere.read(nodes), [flight(1)]);
});
