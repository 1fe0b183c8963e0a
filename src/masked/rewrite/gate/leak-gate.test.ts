// The gate alone, over messages that nothing was taken out of: every disguise is seen, and other people's addresses pass.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { findLeaks, type Secrets } from "./leak-gate.ts";

const D = "anna.real@home.real.example";
const secrets = (addresses: string[]): Secrets => ({ addresses, names: [], allowed: "nothing", given: [] });
const isHeld = (part: string | Buffer, addresses = [D]) => {
  const bytes = Buffer.isBuffer(part) ? part : Buffer.from(part.replace(/\r?\n/g, "\r\n"));
  return findLeaks(bytes, secrets(addresses)).length > 0;
};
const html = (body: string) => `Content-Type: text/html; charset=utf-8\n\n${body}\n`;
const text = (body: string) => `Content-Type: text/plain; charset=utf-8\n\n${body}\n`;
const file = (content: Buffer, type = "application/octet-stream") =>
  `Content-Type: ${type}\nContent-Transfer-Encoding: base64\n\n${content.toString("base64")}\n`;
const utf16be = (given: string) => Buffer.from(`\ufeff${given}`, "utf16le").swap16();

describe("the gate holds", () => {
  const disguised = [
    "anna.real&ZeroWidthSpace;@home.real.example",
    "anna.real&NoBreak;@home.real.example",
    "anna.real&InvisibleTimes;&commat;home&period;real.example",
    "an&shyna.real@home.real.example",
    "anna.real&#000000000064;home.real.example",
    "anna.real<!-- > -->@home.real.example",
    'anna<b title="a>b"></b>.real@home.real.example',
    "anna<b title='a>b' x=y>.real</b>@home.real.example",
    '<style>.a::after{content:"anna.real\\000040home.real.example"}</style>',
    '<style>.a::after{content:"anna.real\\40 home.real.example"}</style>',
    "<td>Anna</td><td>anna.<i></i>real@home.real.example</td><td>Tel</td>",
    "anna.real@home.real.example.zip",
    "anna.real@home.real.exampleTel",
    "联系anna.real@home.real.example",
    "_anna.real@home.real.example_",
    '{"to":"\\nanna.real@home.real.example"}',
  ];
  for (const one of disguised) test(one, () => assert.ok(isHeld(html(one)), one));

  test("UTF-16 in hexadecimal digits or base64, in text, in fields and in files", () => {
    const hex = utf16be(D).toString("hex").toUpperCase();
    const base64 = Buffer.from(D, "utf16le").toString("base64");
    assert.ok(isHeld(file(Buffer.from(`%PDF-1.7\n<</Author<${hex}>>>`), "application/pdf")));
    const octal = [...utf16be(D)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
    assert.ok(isHeld(file(Buffer.from(`%PDF-1.7\n<</Author(${octal})>>`), "application/pdf")));
    assert.ok(isHeld(text(`see https://t.example/?u=${base64}`)));
    assert.ok(isHeld(`Subject: ${hex}\n${text("x")}`));
  });

  test("hexadecimal digits where base64 should stand, over lines", () => {
    const digits = Buffer.from(D).toString("hex").replace(/.{20}/g, "$&\n");
    const type = "Content-Type: application/octet-stream\nContent-Transfer-Encoding: base64";
    assert.ok(isHeld(`${type}\n\n${digits}5I`));
    assert.ok(!isHeld(`${type}\n\n${Buffer.from("ordinary").toString("hex").repeat(9)}`));
  });

  test("packed text in base64 that is too long to be looked into, by the setting for such files", () => {
    const packed = gzipSync(`${"x".repeat(300_000)}${D}`).toString("base64");
    for (const part of [text(`see https://t.example/${packed}`), html(`<a href="https://t.example/${packed}">x</a>`)]) {
      const [leak, ...more] = findLeaks(Buffer.from(part.replace(/\n/g, "\r\n")), secrets([D]));
      assert.deepEqual([leak?.isUnopened, more], [true, []]);
      assert.match(leak?.where ?? "", /packed text that is too long/);
    }
  });

  test("an address in encoded words that somebody pasted, or a report quotes, over lines and quotes", () => {
    const word = (kind: "Q" | "B", one: string, charset = "utf-8") =>
      `=?${charset}?${kind}?${kind === "Q" ? one.replace("@", "=40") : Buffer.from(one).toString("base64")}?=`;
    for (const kind of ["Q", "B"] as const) {
      for (const gap of ["\n> ", "\n> > ", " ", "\n\t"]) {
        for (const cut of [3, 9, 12]) {
          const pasted = `> To: ${word(kind, `Anna ${D.slice(0, cut)}`)}${gap}${word(kind, D.slice(cut), "iso-8859-1")}`;
          assert.ok(isHeld(text(`${pasted}\n> hi`)), pasted);
        }
      }
    }
    assert.ok(!isHeld(text(`> To: ${word("Q", "Anna otto@home.real.example")}`)));
  });

  test("letters of ASCII that a wrong charset joined two by two", () => {
    for (const swap of [false, true]) {
      for (const before of ["write to ", "write  to "]) {
        const octets = Buffer.from(`${before}${D} please, or call.`.padEnd(80));
        const joined = (swap ? octets.swap16() : octets).toString("utf16le");
        assert.ok(isHeld(Buffer.from(text(joined).replace(/\n/g, "\r\n"))));
        assert.ok(isHeld(`Subject: =?utf-8?B?${Buffer.from(joined).toString("base64")}?=\n${text("x")}`));
      }
    }
    assert.ok(!isHeld(text("\u4f60\u597d\u4e16\u754c\u6211\u4eec\u5728\u8fd9\u91cc\u7b49\u4f60\u4eec".repeat(20))));
  });

  test("an address in a file beside whose strings stand lengths", () => {
    assert.ok(isHeld(file(Buffer.from(`\x01\x00A${D}B\x02`, "latin1"))));
    assert.ok(isHeld(text(`https://t.example/open/${Buffer.from(`xxkk${D}`).toString("base64")}`)));
  });

  test("an address however its parts are joined", () => {
    for (const joint of [
      "@",
      " @ ",
      "\u00a0@\u00a0",
      '"@',
      "=",
      "%",
      "+40",
      "_at_",
      "-at-",
      "(at)",
      " [at] ",
      "{ at }",
    ]) {
      const one = D.replace("@", joint);
      const path = /^[=%]$/.test(joint) ? [`<bounces+12-${one}@list.example>`] : [];
      for (const body of [one, `${one}.pdf`, ...path]) {
        assert.ok(isHeld(text(body)), body);
        assert.ok(isHeld(`Subject: ${body}\n${text("x")}`), body);
      }
    }
    assert.ok(
      !isHeld(
        text(
          "joh.anna.real=home.real.example@l.example ?anna.real=home.real.example more anna.real at home.real.example",
        ),
      ),
    );
  });

  test("an address in words where it is one of the secrets, and nobody else's", () => {
    const shown = ["info at home.real.example"];
    for (const body of [
      "Anna (info at home.real.example)",
      "> info\n> at home.real.example",
      "info at<b></b> home.real.example",
    ]) {
      assert.ok(isHeld(html(body), shown), body);
      assert.ok(isHeld(text(body.replace("<b></b>", "")), shown), body);
    }
    for (const body of ["kundeninfo at home.real.example", "info at home"]) {
      assert.ok(!isHeld(text(body), shown), body);
    }
  });

  test("the same mailbox at Gmail with other dots and tags", () => {
    assert.ok(isHeld(text("a.nna.re.al+x@gmail.com"), ["anna.real@gmail.com"]));
    assert.ok(!isHeld(text("johannareal@gmail.com"), ["anna.real@gmail.com"]));
  });
});

describe("the gate lets pass", () => {
  const others: [string, string][] = [
    ["info@gmx.de", "write to kundeninfo@gmx.de"],
    ["mueller@gmx.de", "max.mueller@gmx.de or karl-mueller@gmx.de"],
    ["a@firma.co", "a@firma.com, a@firma.co.uk"],
    ["a@firma.co", '<a href="mailto:a@firma.com">a@firma.com</a><td>ba@firma.co</td>'],
    ["info@gmx.de", "<p>Mail</p><p><b>kundeninfo@gmx.de</b></p>\n<p>x=3D &nbsp; \\40</p>"],
  ];
  for (const [hidden, body] of others) {
    test(`${body}, though ${hidden} is hidden`, () => {
      assert.ok(!isHeld(html(body), [hidden]));
      assert.ok(!isHeld(text(body), [hidden]));
      assert.ok(!isHeld(`Subject: ${body.replace(/\s+/g, " ")}\n${text("x")}`, [hidden]));
      assert.ok(isHeld(text(`${body} <${hidden}>`), [hidden]));
    });
  }
});

test("markup and references without an end are searched in one pass", () => {
  for (const piece of ["<!--", "<a b='", "<a <", "</", "<a/b=", "&#0", "&a", "\\0", "<b\"'>", "anna+", `+@${D}`]) {
    const filler = piece.repeat(Math.ceil(100_000 / piece.length));
    assert.equal(isHeld(html(filler)), piece.includes(D), piece);
    assert.ok(isHeld(html(`${D} ${filler}`)), piece);
  }
});
