import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { rounds } from "../../test/support/rounds.ts";
import {
  domainOf,
  formatMailbox,
  normalizeDomain,
  parseAddress,
  parseMailbox,
  parseWrittenAddress,
  withAsciiDomain,
} from "./address.ts";

const folder = fileURLToPath(new URL("../../../shared/data/address-syntax/", import.meta.url));
const missing = existsSync(folder) ? false : "third-party cases are not here (../shared/data/address-syntax)";

type Difference = { address: string; source: string; reason: string };
type IsemailCase = { set: string; id: string; address: string; category: string; diagnosis: string };

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, "utf8"));
}

// What we hold of isemail's categories: plain and DNS-only doubts are accepted, so is a quoted string; what is legal in a
// header only (comments, obsolete forms, other literals) and what no public mailbox has (literals, one label) is refused.
function isAccepted({ category, diagnosis }: IsemailCase): boolean {
  if (category === "ISEMAIL_RFC5321") return diagnosis === "ISEMAIL_RFC5321_QUOTEDSTRING";
  return category === "ISEMAIL_VALID_CATEGORY" || category === "ISEMAIL_DNSWARN";
}

describe("published address suites", { skip: missing }, () => {
  const isemail = missing ? [] : (readJson(`${folder}isemail.json`) as IsemailCase[]);
  const flanker = missing ? {} : (readJson(`${folder}flanker.json`) as Record<string, string[]>);
  const differences = readJson(fileURLToPath(new URL("./address.differences.json", import.meta.url))) as Difference[];

  it("the suites are here in full", () => {
    assert.ok(isemail.length > 200);
    assert.ok(flanker.mailbox_valid!.length > 70 && flanker.mailbox_invalid!.length > 40);
  });

  for (const given of isemail) {
    const verb = isAccepted(given) ? "accepts" : "refuses";
    it(`${verb} isemail ${given.set} ${given.id} ${JSON.stringify(given.address)} (${given.diagnosis})`, () => {
      assert.equal(parseAddress(given.address).ok, isAccepted(given));
    });
  }

  const lists = [
    { source: "mailbox_valid", suffix: "", accepted: true },
    { source: "mailbox_invalid", suffix: "", accepted: false },
    { source: "abridged_localpart_valid", suffix: "@example.com", accepted: true },
    { source: "abridged_localpart_invalid", suffix: "@example.com", accepted: false },
  ];
  for (const { source, suffix, accepted } of lists) {
    it(`agrees with flanker's ${source}, but for the reasoned differences`, () => {
      const ours = new Set(differences.filter((d) => d.source === `flanker ${source}`).map((d) => d.address));
      const found = flanker[source]!.map((text) => text + suffix).filter((text) => parseAddress(text).ok !== accepted);
      // Both ways: a new difference fails, and so does an entry that is no longer needed.
      assert.deepEqual(new Set(found), ours);
    });
  }

  it("reads what people mistype as a domain without falling over", () => {
    for (const pair of flanker.domain_typos_valid!) {
      const [typo, right] = pair.split(",");
      assert.equal(normalizeDomain(right!), right);
      assert.ok(normalizeDomain(typo!) !== right);
    }
  });
});

describe("parseAddress", () => {
  it("keeps the case of the local part and lowers the domain", () => {
    assert.deepEqual(parseAddress("Jane.Doe@Example.COM"), {
      ok: true,
      address: { local: "Jane.Doe", domain: "example.com", email: "Jane.Doe@example.com", smtputf8: false },
    });
  });

  it("brings quoted local parts to the form with the least quoting", () => {
    assert.equal(emailOf('"jane"@example.com'), "jane@example.com");
    assert.equal(emailOf('"j\\a\\n\\e"@example.com'), "jane@example.com");
    assert.equal(emailOf('"a\\ b"@example.com'), '"a b"@example.com');
    assert.equal(emailOf('"a@b"@example.com'), '"a@b"@example.com');
    assert.equal(emailOf('"a\\"b"@example.com'), '"a\\"b"@example.com');
    assert.equal(emailOf('"a..b"@example.com'), '"a..b"@example.com');
  });

  it("takes the last @ as the border, so a quoted @ never changes the destination", () => {
    const result = parseAddress('"victim@bank.example x"@attacker.example');
    assert.ok(result.ok && result.address.domain === "attacker.example");
    assert.equal(parseAddress("victim@bank.example@attacker.example").ok, false);
  });

  it("converts international domains with UTS #46", () => {
    assert.equal(emailOf("info@Müller.example"), "info@xn--mller-kva.example");
    assert.equal(emailOf("info@faß.de"), "info@xn--fa-hia.de");
    assert.equal(emailOf("info@例え。テスト"), "info@xn--r8jz45g.xn--zckzah");
    assert.equal(emailOf("info@ＥＸＡＭＰＬＥ.com"), "info@example.com");
  });

  it("accepts UTF-8 local parts in NFC and flags them", () => {
    const result = parseAddress("jose\u0301@example.com");
    assert.deepEqual(result, {
      ok: true,
      address: { local: "jos\u00e9", domain: "example.com", email: "jos\u00e9@example.com", smtputf8: true },
    });
    assert.ok(parseAddress("δοκιμή@παράδειγμα.ελ").ok);
  });

  it("checks what normalization makes of a letter, not the letter", () => {
    // U+037E GREEK QUESTION MARK is `;` in NFC.
    assert.equal(parseAddress("a\u037eb@example.com").ok, false);
  });

  it("measures octets: 64 for the local part, 254 together", () => {
    const domain = `${"d".repeat(60)}.`.repeat(3) + "example";
    assert.ok(parseAddress(`${"a".repeat(64)}@example.com`).ok);
    assert.equal(parseAddress(`${"a".repeat(65)}@example.com`).ok, false);
    assert.ok(parseAddress(`${"é".repeat(32)}@example.com`).ok);
    assert.equal(parseAddress(`${"é".repeat(33)}@example.com`).ok, false);
    assert.equal(domain.length, 190);
    assert.ok(parseAddress(`${"a".repeat(63)}@${domain}`).ok);
    assert.equal(parseAddress(`${"a".repeat(64)}@${domain}`).ok, false);
    assert.equal(parseAddress(`a@${"b.".repeat(1_000_000)}com`).ok, false);
  });

  it("refuses routes, literals, groups, lists, angle brackets and spaces around", () => {
    const refused = ["@a.example:b@c.example", "a@[127.0.0.1]", "g:a@b.example;", "a@b.example,c@d.example"];
    refused.push("<a@b.example>", " a@b.example", "a@b.example ", "a b@c.example", "a@b c.example", "", "@", "a@", "a");
    for (const text of refused) assert.equal(parseAddress(text).ok, false, text);
  });

  it("refuses invisible and direction-changing characters", () => {
    for (const char of ["\u200b", "\u202e", "\u2066", "\ufeff", "\u00a0", "\u2028", "\u3000", "\u00ad", "\ud800"]) {
      assert.equal(parseAddress(`a${char}b@example.com`).ok, false, JSON.stringify(char));
      assert.equal(parseAddress(`ab@exa${char}mple.com`).ok, false, JSON.stringify(char));
    }
  });

  it("never accepts a control character, wherever it stands", () => {
    const controls = [...Array(32).keys(), 0x7f, ...Array.from({ length: 32 }, (_, i) => 0x80 + i)];
    const bases = ["jane@example.com", '"a b"@example.com', "jörg@münchen.example"];
    for (const code of controls) {
      for (const base of bases) {
        for (let at = 0; at <= base.length; at++) {
          const text = base.slice(0, at) + String.fromCharCode(code) + base.slice(at);
          assert.equal(parseAddress(text).ok, false, JSON.stringify(text));
          assert.equal(parseMailbox(`Jane <${text}>`).ok, false, JSON.stringify(text));
          assert.equal(parseMailbox(text).ok, false, JSON.stringify(text));
        }
      }
    }
  });

  it("is a fixed point: what it returns, it reads again unchanged", () => {
    const piece = fc.string({
      unit: fc.constantFrom(..."ab.\"\\@é日 <>()[],;:-_'+\u037e"),
      maxLength: 12,
      size: "max",
    });
    fc.assert(
      fc.property(piece, fc.constantFrom("example.com", "münchen.example", "a.b.c"), (local, domain) => {
        for (const text of [`${local}@${domain}`, `"${local}"@${domain}`]) {
          const first = parseAddress(text);
          if (!first.ok) continue;
          assert.deepEqual(parseAddress(first.address.email), first);
          assert.match(first.address.email, /^[^\x00-\x1f\x7f<>]+@[a-z0-9.-]+$/);
        }
      }),
      { numRuns: rounds(300, 3_000) },
    );
  });

  it("answers any string with a value", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 60, size: "max" }),
        (text) => typeof parseAddress(text).ok === "boolean",
      ),
    );
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 60, size: "max" }),
        (text) => typeof parseMailbox(text).ok === "boolean",
      ),
    );
  });
});

describe("normalizeDomain", () => {
  it("refuses what is not a public domain name", () => {
    const refused = ["", "com", "example.com.", ".example.com", "a..com", "-a.com", "a-.com", "a_b.com", "1.2.3.4"];
    refused.push("example.123", "0x7f.0x1", "[1.2.3.4]", "exam ple.com", "example.com/x", "example.com:25", "a@b.com");
    refused.push(
      "a%41.com",
      "example.com\u3002",
      "xn--example.com",
      "xn--a.com",
      "１２７.1",
      "a.com\n",
      `${"a".repeat(64)}.com`,
    );
    for (const text of refused) assert.equal(normalizeDomain(text), null, text);
    assert.equal(normalizeDomain(`${"a.".repeat(126)}com`), null);
  });

  it("accepts A-labels that decode, double hyphens, and 253 octets", () => {
    for (const text of ["xn--mnchen-3ya.de", "c--n.com", "a1.b2.co", "1.de", `${"a.".repeat(125)}com`]) {
      assert.equal(normalizeDomain(text), text);
    }
    assert.equal(normalizeDomain("XN--MNCHEN-3YA.de"), "xn--mnchen-3ya.de");
  });
});

describe("withAsciiDomain", () => {
  it("writes a domain, or a part of one, as addresses have it, and leaves all other text alone", () => {
    const written = [
      "ü@Bücher.example",
      "@bücher",
      "bücher.",
      "a@b.example",
      "ünï@b.example",
      "ü b",
      "ü/x",
      "ü%41",
      "",
    ];
    const kept = ["a@b.example", "ünï@b.example", "ü b", "ü/x", "ü%41", ""];
    assert.deepEqual(written.map(withAsciiDomain), [
      "ü@xn--bcher-kva.example",
      "@xn--bcher-kva",
      "xn--bcher-kva.",
      ...kept,
    ]);
  });
});

describe("parseMailbox", () => {
  const cases: [string, string | null, string][] = [
    ["jane@example.com", null, "jane@example.com"],
    ["<jane@example.com>", null, "jane@example.com"],
    [" Jane Doe  <jane@example.com> ", "Jane Doe", "jane@example.com"],
    ["Jane<jane@example.com>", "Jane", "jane@example.com"],
    ['"Doe, Jane" <jane@example.com>', "Doe, Jane", "jane@example.com"],
    ['"a \\"b\\" \\\\c" <jane@example.com>', 'a "b" \\c', "jane@example.com"],
    ['Jane "JD" Doe <jane@example.com>', "Jane JD Doe", "jane@example.com"],
    ['"" <jane@example.com>', null, "jane@example.com"],
    ["Acme Inc. (Sales) [EU] <a@b.example>", "Acme Inc. (Sales) [EU]", "a@b.example"],
    ["jane@example.com <jane@example.com>", "jane@example.com", "jane@example.com"],
    ["Jürgen 😀 <j@münchen.example>", "Jürgen 😀", "j@xn--mnchen-3ya.example"],
    ['Jane <"a b"@example.com>', "Jane", '"a b"@example.com'],
    ['"a b"@example.com', null, '"a b"@example.com'],
  ];
  for (const [text, name, email] of cases) {
    it(`reads ${text}`, () => {
      const result = parseMailbox(text);
      assert.ok(result.ok, JSON.stringify(result));
      assert.equal(result.name, name);
      assert.equal(result.address.email, email);
    });
  }

  it("says so when a text holds several addresses, and not when a name has a comma", () => {
    for (const text of [
      "a@b.example, c@d.example",
      "a@b.example;c@d.example",
      "A <a@b.example>, B <c@d.example>",
      '"Doe, J" <a@b.example>,c@d.example,',
    ]) {
      const result = parseMailbox(text);
      assert.equal(!result.ok && result.reason, "holds more than one address; each must stand alone", text);
    }
    for (const text of ["Doe, Jane <j@example.com>", "jane,doe@example.com", ",".repeat(900), "a@b.example, c@d..e"]) {
      const result = parseMailbox(text);
      assert.ok(!result.ok && !result.reason.includes("more than one"), text);
    }
  });

  const refused = ["", "<>", "Jane <>", "Jane", "Jane <jane>", "Doe, Jane <j@example.com>", "a@b.example, c@d.example"];
  refused.push("<a@b.example>, <c@d.example>", "Team: a@b.example;", '"Jane <j@example.com>', "Jane <j@example.com> x");
  refused.push(
    "Jane <<j@example.com>>",
    "Jane > <j@example.com>",
    "j@example.com>",
    `${"x".repeat(257)} <j@example.com>`,
  );
  refused.push("Jane\r\nBcc: x@y.example <j@example.com>", "Jane\u0085 <j@example.com>", "\ud800 <j@example.com>");
  refused.push("j@example.com\n", "\rj@example.com");
  for (const text of refused) {
    it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => assert.equal(parseMailbox(text).ok, false));
  }

  it("reads back what formatMailbox writes", () => {
    const name = fc.string({ unit: "grapheme", maxLength: 40, size: "max" });
    fc.assert(
      fc.property(name, (given) => {
        if (/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u.test(given)) return;
        const result = parseMailbox(formatMailbox({ name: given, email: "jane@example.com" }));
        assert.ok(result.ok);
        assert.equal(result.name, given.trim() === "" ? null : given.trim());
      }),
    );
  });

  it("takes linear time on a long row of quotes", () => {
    assert.equal(parseMailbox(`${'"\\'.repeat(740)} <j@example.com>`).ok, false);
  });
});

function emailOf(text: string): string {
  const result = parseAddress(text);
  assert.ok(result.ok, `${text}: ${JSON.stringify(result)}`);
  return result.address.email;
}

it("the domain of an address is what stands behind its last @", () => {
  assert.equal(domainOf("anna@there.example"), "there.example");
  assert.equal(domainOf('"a@b"@there.example'), "there.example");
  assert.equal(domainOf("there.example"), "there.example");
  assert.equal(domainOf(""), "");
});

it("an address that lacks only the quotes for its dots is read as if it had them", () => {
  const read = (text: string) => {
    const result = parseWrittenAddress(text);
    return result.ok ? result.address.email : null;
  };
  assert.equal(read("a..b@Docomo.example"), '"a..b"@docomo.example');
  assert.equal(read(".a.@docomo.example"), '".a."@docomo.example');
  assert.equal(read("a.b@docomo.example"), "a.b@docomo.example");
  assert.equal(read('"a..b"@docomo.example'), '"a..b"@docomo.example');
  for (const text of ["a b@x.example", 'a".b@x.example', "a..b", "@x.example", "..@", "a..b@foo_bar.example"]) {
    assert.equal(read(text), null, text);
  }
});
