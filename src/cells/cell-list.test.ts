import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readCells, splitPlace } from "./cell-list.ts";

const dir = mkdtempSync(join(tmpdir(), "postern-cells-"));
const file = join(dir, "cells.json");
after(() => rmSync(dir, { recursive: true, force: true }));

const CELL = {
  name: "one",
  internal: "10.0.0.1:9180",
  http: "one.lan:8080",
  mx: "[::1]:2525",
  submission: "10.0.0.1:2587",
};

function read(value: unknown) {
  writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value));
  return readCells(file);
}

test("a list is read as it is written", () => {
  assert.deepEqual(read({ cells: [CELL, { ...CELL, name: "two" }] }), [CELL, { ...CELL, name: "two" }]);
});

test("what is wrong in it is named with its place", () => {
  const wrong: [unknown, RegExp][] = [
    ["{", /cells\.json cannot be read as JSON/],
    [[], /"cells" must be a list/],
    [{ cells: [] }, /"cells" must be a list/],
    [{ cells: [CELL, { ...CELL, name: "Two!" }] }, /cells\[1\]\.name must be lower-case letters/],
    [{ cells: [CELL, CELL] }, /two cells of the name one/],
    [{ cells: [{ ...CELL, mx: "10.0.0.1" }] }, /cells\[0\]\.mx must be host:port/],
    [{ cells: [{ ...CELL, http: undefined }] }, /cells\[0\]\.http must be host:port/],
    [{ cells: [{ ...CELL, smtp: "x:1" }] }, /cells\[0\]\.smtp: a cell has name, internal, http, mx, submission/],
    [{ cells: [{ ...CELL, mx: "mx.lan:25" }] }, /cells\[0\]\.mx: nginx takes an IP address/],
    [{ cells: ["one"] }, /cells\[0\]\.name must be/],
  ];
  for (const [value, message] of wrong) assert.throws(() => read(value), message, JSON.stringify(value));
  assert.throws(() => readCells(join(dir, "absent.json")), /absent\.json cannot be read as JSON: ENOENT/);
});

test("a place is a host and a port", () => {
  assert.deepEqual(splitPlace("[2001:db8::1]:25"), { host: "2001:db8::1", port: 25 });
  assert.deepEqual(splitPlace("mx.example:2525"), { host: "mx.example", port: 2525 });
  for (const text of [
    "",
    "mx.example",
    "mx.example:0",
    "mx.example:65536",
    "2001:db8::1:25",
    "a b:1",
    "a;b:1",
    "{:1",
  ]) {
    assert.equal(splitPlace(text), null, text);
  }
});
