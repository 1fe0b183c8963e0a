// The fields that copies carry, and that nobody else's are taken for ours.
import assert from "node:assert/strict";
import { test } from "node:test";
import { spamFields, withoutSpamFields } from "./spam-fields.ts";

const symbols = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `SYMBOL_${index}` }));

test("spam is flagged, ham is not, and what nobody judged says nothing", () => {
  assert.equal(
    spamFields({ score: 5.5, verdict: "tag", symbols: symbols(2) }),
    "X-Spam-Flag: YES\r\nX-Spam-Score: 5.5\r\nX-Spam-Status: Yes, score=5.5 tests=SYMBOL_0,SYMBOL_1\r\n",
  );
  assert.equal(
    spamFields({ score: -1, verdict: "ham", symbols: [] }),
    "X-Spam-Score: -1\r\nX-Spam-Status: No, score=-1 tests=none\r\n",
  );
  assert.equal(spamFields({ score: null, verdict: null, symbols: [] }), "");
});

test("many symbols are folded into short lines, and their names can break nothing", () => {
  const field = spamFields({ score: 9, verdict: "reject", symbols: [{ name: "A\r\nB: c" }, ...symbols(80)] });
  const lines = field.split("\r\n").slice(0, -1);
  assert.ok(lines.every((line) => line.length <= 78 && (/^X-Spam-/.test(line) || line.startsWith("\t"))));
  assert.ok(field.includes("tests=A__B__c,"));
  assert.ok(lines.length > 5 && !field.includes("SYMBOL_60"));
});

test("received fields of these names are taken out, everything else stays byte for byte", () => {
  const message = Buffer.from(
    "x-spam-FLAG: NO\r\nSubject: x\r\nX-Spam-Status: No,\r\n score=0\r\nX-Spam-Level: *\r\n\r\nX-Spam-Flag: NO\r\n",
  );
  assert.equal(withoutSpamFields(message).toString(), "Subject: x\r\nX-Spam-Level: *\r\n\r\nX-Spam-Flag: NO\r\n");
  const plain = Buffer.from("Subject: x\r\n\r\nb\r\n");
  assert.equal(withoutSpamFields(plain), plain);
});
