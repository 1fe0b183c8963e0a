import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { processorMs } from "../../../test/support/processor-time.ts";
import { rounds } from "../../../test/support/rounds.ts";
import { addressesMax, parseAddressList } from "./parse-addresses.ts";

type Pair = [name: string | null, email: string | null];

describe("parseAddressList", () => {
  const cases: [value: string, addresses: Pair[]][] = [
    ["a@b.c", [[null, "a@b.c"]]],
    ["<a@b.c>", [[null, "a@b.c"]]],
    ["Ann Lee <a@b.c>", [["Ann Lee", "a@b.c"]]],
    [
      '"Lee, Ann" <a@b.c>, d@e.f',
      [
        ["Lee, Ann", "a@b.c"],
        [null, "d@e.f"],
      ],
    ],
    ["a@b.c (Ann Lee)", [["Ann Lee", "a@b.c"]]],
    ["Ann (the first) <a@b.c>", [["Ann", "a@b.c"]]],
    ['"Ann \\"Z\\" Lee" <a@b.c>', [['Ann "Z" Lee', "a@b.c"]]],
    ["=?utf-8?q?J=C3=B6rg=2C_M?= <j@b.c>", [["Jörg, M", "j@b.c"]]],
    ['"=?utf-8?q?J=C3=B6rg?=" <j@b.c>', [["Jörg", "j@b.c"]]],
    [
      "=?utf-8?q?J=C3=B6rg_=3Cj=40b.c=3E?=, d@e.f",
      [
        ["Jörg", "j@b.c"],
        [null, "d@e.f"],
      ],
    ],
    ["=?utf-8?b?SsO2cmc=?= =?utf-8?b?IDxqQGIuYz4=?=", [["Jörg", "j@b.c"]]],
    ["=?us-ascii?q?j=40b.c?=", [[null, "j@b.c"]]],
    ["=?us-ascii?q?j@b.c?=", [[null, "j@b.c"]]],
    ["=?us-ascii?q?j@b.c?= a@b.c", [["j@b.c", "a@b.c"]]],
    ["=?us-ascii?q?j=40b.c_or_k=40b.c?=", [["j@b.c or k@b.c", null]]],
    ['"=?us-ascii?q?J_=3Cj=40b.c=3E?="', [["J <j@b.c>", null]]],
    [
      "Team: a@b.c, Dee <d@e.f>;, g@h.i",
      [
        [null, "a@b.c"],
        ["Dee", "d@e.f"],
        [null, "g@h.i"],
      ],
    ],
    ["undisclosed-recipients:;", []],
    ["<@r.s,@t.u:a@b.c>", [[null, "a@b.c"]]],
    ['"a b"@c.d', [[null, '"a b"@c.d']]],
    ['"a@b"@c.d', [[null, '"a@b"@c.d']]],
    ['<"a > b"@c.d>', [[null, '"a > b"@c.d']]],
    ["a @ b . c", [[null, "a@b.c"]]],
    ["a@[IPv6:2001:db8::1]", [[null, "a@[IPv6:2001:db8::1]"]]],
    ["Ann a@b.c", [["Ann", "a@b.c"]]],
    [
      "a@b.c d@e.f",
      [
        [null, "a@b.c"],
        [null, "d@e.f"],
      ],
    ],
    [
      "<a@b.c> <d@e.f>",
      [
        [null, "a@b.c"],
        [null, "d@e.f"],
      ],
    ],
    [
      '"unclosed <a@b.c>, d@e.f',
      [
        ['"unclosed', "a@b.c"],
        [null, "d@e.f"],
      ],
    ],
    ["(unclosed a@b.c", [["(unclosed", "a@b.c"]]],
    ["<a@b.c", [[null, "a@b.c"]]],
    [
      "<a@b.c, d@e.f",
      [
        [null, "a@b.c"],
        [null, "d@e.f"],
      ],
    ],
    ["nobody", [["nobody", null]]],
    ["Ann <<a@b.c>>", [["Ann", "a@b.c"]]],
    ["(Ann Lee)", [["Ann Lee", null]]],
    ["Team:a@b.c; (the end of the group)", [[null, "a@b.c"]]],
    ["(Empty list)(start)Hidden recipients  :(nobody(that I know))  ;", []],
    ["<>", [[null, null]]],
    ["", []],
    [" , ;, ", []],
    ["jörg@bücher.example", [[null, "jörg@bücher.example"]]],
  ];
  for (const [value, addresses] of cases) {
    it(`reads ${JSON.stringify(value)}`, () => {
      assert.deepEqual(
        parseAddressList(value).map(({ name, email }): Pair => [name, email]),
        addresses,
      );
    });
  }

  it("gives a thousand addresses at most", () => {
    assert.equal(parseAddressList("a@b.c,".repeat(addressesMax + 1)).length, addressesMax);
    assert.equal(parseAddressList("<a@b.c>".repeat(addressesMax + 1)).length, addressesMax);
  });

  it("finds an address wherever it stands between commas, and gives well-formed text", () => {
    const word = fc.constantFrom(
      '"',
      "(",
      ")",
      "<",
      ">",
      "\\",
      " ",
      ":",
      ";",
      "=?utf-8?q?=00?=",
      "x",
      "@",
      "é",
      "\0",
      "\ud83d",
    );
    const noise = fc.array(word, { maxLength: 12 }).map((words) => words.join(""));
    fc.assert(
      fc.property(noise, (text) => {
        for (const { name, email } of parseAddressList(text)) {
          assert.ok((name ?? "").isWellFormed() && (email ?? "").isWellFormed());
          assert.ok(!/\p{Cc}/u.test(`${name}${email}`));
        }
      }),
      { numRuns: rounds(200, 2_000) },
    );
    const plain = fc.string({ unit: fc.constantFrom("x", " ", ".", "é"), maxLength: 10 });
    fc.assert(
      fc.property(plain, plain, (before, behind) => {
        const emails = parseAddressList(`${before}, a@b.c, ${behind}`).map(({ email }) => email);
        assert.ok(emails.includes("a@b.c"));
      }),
    );
  });

  it("reads a long field of quotes that never close in a second", () => {
    for (const text of [`${'\\"'.repeat(100_000)}@a.example`, `"${'\\"'.repeat(100_000)}@a.example`]) {
      assert.ok(processorMs(() => parseAddressList(text)) < 1_000);
    }
  });

  it("gives the first thousand of a field that is nothing but addresses, without commas too", () => {
    for (const separator of [" ", ",", ", ", ";"]) {
      const found = parseAddressList(`@${separator}`.repeat(131_072));
      assert.ok(found.length <= 1_000, separator);
    }
    assert.equal(parseAddressList("a@b.example ".repeat(20_000)).length, 1_000);
    for (const text of [`${"<>".repeat(131_000)},`, "<".repeat(262_000)]) {
      assert.equal(parseAddressList(text).length, 1_000, text.slice(0, 4));
    }
    assert.deepEqual(parseAddressList(`${"<".repeat(262_000)};`), [{ name: null, email: ";" }]);
  });

  it("reads an encoded word as one piece, with commas, colons and parentheses that it must not hold", () => {
    const jane = "jane@a.example";
    assert.deepEqual(parseAddressList("=?utf-8?q?Doe,_Jane?= <jane@a.example>"), [{ name: "Doe, Jane", email: jane }]);
    assert.deepEqual(parseAddressList("=?UTF-8?Q?Shop:_(News);_x?= <jane@a.example>, b@c.example"), [
      { name: "Shop: (News); x", email: jane },
      { name: null, email: "b@c.example" },
    ]);
    assert.deepEqual(parseAddressList("Team =?utf-8?q?a,b?= =?utf-8?q?,c?= <jane@a.example>"), [
      { name: "Team a,b,c", email: jane },
    ]);
    // What is no encoded word ends where it always did, and no address is hidden in one that has blanks or brackets.
    for (const text of ["=?utf-8?q?x, jane@a.example", "=?utf-8?q?x,_<jane@a.example>?=", "=?x,jane@a.example"]) {
      assert.ok(
        parseAddressList(text).some(({ email }) => email === jane),
        text,
      );
    }
    assert.ok(processorMs(() => parseAddressList("=?x?q?".repeat(40_000))) < 1_000);
    // Octets that are no UTF-8 are U+FFFD for the verdict and Latin-1 for the reader: both see the same mailboxes.
    for (const octet of ["\xa0", "\x85", "\ufffd", "\x01"]) {
      const found = parseAddressList(`=?x?q?a,${octet}?= <jane@a.example>`);
      assert.equal(found.length, parseAddressList("=?x?q?a,\ufffd?= <jane@a.example>").length, JSON.stringify(octet));
      assert.equal(found.length, 2);
    }
  });
});
