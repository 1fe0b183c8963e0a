import assert from "node:assert/strict";
import { test } from "node:test";
import { createSeal } from "../platform/storage/seal.ts";
import { SEALED_COLUMNS } from "../setup/sealed-columns.ts";
import { openRow, sealRow } from "./sealed-rows.ts";

const [here, there, lost] = [1, 2, 3].map((byte) => createSeal(Buffer.alloc(32, byte))) as [S, S, S];
type S = ReturnType<typeof createSeal>;
const column = SEALED_COLUMNS.find(({ table }) => table === "relay");
const key = { org_id: "01a00000-0000-7000-8000-000000000001", domain_id: "01a00000-0000-7000-8000-000000000002" };
const context = column?.context(key) ?? "";
const blobs = { get: async () => null };
const text = (bytes: Buffer) => `\\x${bytes.toString("hex")}`;

test("a secret is sealed with the other cell's keys", async () => {
  const opened = await openRow({ seal: here, blobs }, "relay", {
    ...key,
    password: text(here.seal(Buffer.from("word"), context)),
  });
  const { password } = sealRow(there, "relay", opened);
  assert.equal(there.open(Buffer.from(String(password).slice(2), "hex"), context).toString(), "word");
});

test("what no key opens here ends no move: it stays as it is, and nothing opens it there", async () => {
  const sealed = text(lost.seal(Buffer.from("word"), context));
  const opened = await openRow({ seal: here, blobs }, "relay", { ...key, password: sealed });
  const { password } = sealRow(there, "relay", opened);
  assert.equal(password, sealed);
  assert.throws(() => there.open(Buffer.from(String(password).slice(2), "hex"), context));
});
