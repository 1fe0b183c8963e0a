// The quick look of the leak gate may pass over nothing that the close look would find.
import assert from "node:assert/strict";
import { test } from "node:test";
import { carrier } from "../carriers.fixture.ts";
import { type Dice, diceOf, disguise } from "../random-tree.fixture.ts";
import { undisguised } from "./disguises.ts";
import { encodedReadings } from "./encoded-readings.ts";
import { holdsSecret, mayHold, needlesOf, octetsMayHold } from "./needles.ts";

const D = "anna.real@home.real.example";
const NEEDLES = needlesOf([D]);
const ROUNDS = 3_000;

const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;

/** The address as it is read only behind two disguises or more, in text that has its own signs. */
function written(dice: Dice): string {
  const once = dice(2) === 0 ? disguise(dice, D) : carrier(dice, D);
  const twice = pick(dice, [
    () => once,
    () => once.replace(/e/, "&#101;"),
    () => once.replace(/h/i, "%68"),
    () => once.replace(/(.{4,20})/, "$1\r\n> "),
    () => once.replace(/(.{4,9})/, '$1<b title="a>b">'),
    () => once.replace(/(.{4,9})/, "$1<br>\r\n"),
    () => Buffer.from(once).toString("base64"),
    () => Buffer.from(once, "utf16le").toString("base64"),
    () => Buffer.from(`<p>${once}</p> &amp; more`).toString("hex"),
  ])();
  const around = ["a & b &nbsp; 50% off ", "<p class=x>é\u00ad ", "\\40 AT&T=3D <!-- x --> ", ""];
  return `${pick(dice, around)}${twice}${pick(dice, around)}`;
}

test("what the quick look passes over holds no secret in any reading", () => {
  const tally = { found: 0, passed: 0 };
  const isFound = (texts: Iterable<string>, chance: boolean) =>
    [...texts].some((text) => holdsSecret({ text, chance }, NEEDLES));
  for (let seed = 1; seed <= ROUNDS; seed += 1) {
    const text = written(diceOf(seed));
    for (const isText of [true, false]) {
      const all = isFound(
        undisguised(text, isText, () => true),
        !isText,
      );
      const some = isFound(
        undisguised(text, isText, (one) => mayHold(one, NEEDLES)),
        !isText,
      );
      assert.equal(some, all, `seed ${seed}: ${text}`);
      tally.found += Number(all);
    }
    for (const { text: octets } of encodedReadings(text).texts) {
      if (octetsMayHold(octets, NEEDLES)) continue;
      tally.passed += 1;
      for (const one of [octets, octets.replaceAll("\0", "")]) {
        assert.ok(
          !isFound(
            undisguised(one, false, () => true),
            true,
          ),
          `seed ${seed}: ${text}`,
        );
      }
    }
  }
  assert.ok(tally.found > ROUNDS / 2 && tally.passed > ROUNDS / 10, JSON.stringify(tally));
});
