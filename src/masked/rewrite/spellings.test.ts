// Other ways to write a mailbox that must not be seen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { spellings } from "./spellings.ts";

const of = (from: string, seen: string[] = []) => spellings({ from, to: "x" }, seen).map((one) => one.from);

test("a tag makes no other mailbox, and providers have several names", () => {
  assert.deepEqual(of("anna+mask@real.example"), ["anna+mask@real.example", "anna@real.example"]);
  assert.deepEqual(of("anna@gmail.com"), ["anna@gmail.com", "anna@googlemail.com"]);
  assert.ok(of("anna@pm.me").includes("anna@proton.me"));
  assert.deepEqual(of("+anna@real.example"), ["+anna@real.example"]);
});

test("an international domain is written in letters, in codes, and in letters that a wrong charset made of it", () => {
  const written = ["anna@xn--bcher-kva.example", "anna@bücher.example", "anna@bÃ¼cher.example"];
  assert.deepEqual(of("anna@xn--bcher-kva.example"), written);
  assert.ok(of("anna@straße.example").includes("anna@straÃŸe.example"));
});

test("who writes to the own mailbox is not kept from it", () => {
  assert.deepEqual(of("anna+mask@real.example", ["Anna@real.example"]), ["anna+mask@real.example"]);
  assert.deepEqual(of("an.na+mask@gmail.com", ["anna@googlemail.com"]), ["an.na+mask@gmail.com"]);
});
