import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isUuid } from "../platform/database/db.ts";
import { checkSlug, readReference, slugFrom } from "./slug.ts";

const ID = "0198c0de-0000-7000-8000-00000000abcd";

test("a slug is made of the words of a name", () => {
  const cases: [name: string, slug: string][] = [
    ["Welcome", "welcome"],
    ["  Order #12: shipped! ", "order-12-shipped"],
    ["Passwort zurücksetzen", "passwort-zurucksetzen"],
    ["Crème brûlée", "creme-brulee"],
    ["ﬁne", "fine"],
    ["注文", "template-00000000abcd"],
    ["!", "template-00000000abcd"],
    ["é", "template-00000000abcd"],
    [ID, "template-00000000abcd"],
    ["x".repeat(150), "x".repeat(100)],
    [`${"x".repeat(99)} y`, "x".repeat(99)],
  ];
  for (const [name, slug] of cases) assert.equal(slugFrom(name, ID), slug, name);
});

test("whatever the name, what is made of it is a slug and no UUID", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" }), fc.uuid()), (name) => {
      const slug = slugFrom(name, ID);
      assert.equal(checkSlug(slug), slug);
      assert.ok(!isUuid(slug));
    }),
  );
});

test("a reference is a UUID, a slug, or nothing", () => {
  assert.deepEqual(readReference(ID), { id: ID });
  assert.deepEqual(readReference(ID.toUpperCase()), { id: ID });
  assert.deepEqual(readReference("welcome-2"), { slug: "welcome-2" });
  for (const text of ["", "a", "Welcome", "a_b", "-a", "a-", "a/b", "a\n", "a\0b", "ü2", "a".repeat(101)]) {
    assert.equal(readReference(text), null, text);
  }
});
