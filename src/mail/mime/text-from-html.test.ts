import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeEntities } from "./html-entities.ts";
import { stripHtml } from "./strip-html.ts";
import { textFromHtml } from "./text-from-html.ts";

const ways: [string, (html: string) => string][] = [
  ["textFromHtml", textFromHtml],
  ["stripHtml", stripHtml],
];

for (const [name, convert] of ways) {
  describe(name, () => {
    const cases: [string, string, string][] = [
      ["paragraphs", "<p>One</p><p>Two</p>", "One\n\nTwo"],
      ["line breaks", "a<br>b<br/>c", "a\nb\nc"],
      ["headings without shouting", "<h1>Hello World</h1><p>x</p>", "Hello World\n\nx"],
      [
        "links with their address",
        '<a href="https://example.com/a?b=1&amp;c=2">Shop</a>',
        "Shop [https://example.com/a?b=1&c=2]",
      ],
      [
        "links that are their address",
        '<a href="https://example.com/">https://example.com/</a>',
        "https://example.com/",
      ],
      ["inline tags inside words", "Hel<b>lo</b> <i>wor</i>ld", "Hello world"],
      ["white space as one space", "a\n\n   b\t<b>c</b>", "a b c"],
      ["entities", "&lt;b&gt; &amp;amp; &quot;&#65;&#x42;&euro;&uuml;&quot;", '<b> &amp; "AB€ü"'],
      ["styles and scripts as nothing", "<style>p{}</style><p>a</p><script>if (a<b) x()</script>b", "a\n\nb"],
      ["comments as nothing", "a<!-- <b>no</b> --> b", "a b"],
      ["pictures by their alternative text", '<img src="https://t.example/x.gif" alt="Logo"> Acme', "Logo Acme"],
      ["cells apart", "<table><tr><td>Item</td><td>12.00</td></tr></table>", "Item 12.00"],
      ["a whole document", "<!DOCTYPE html><html><head><title>T</title></head><body>Hi</body></html>", "Hi"],
      ["nothing as nothing", "", ""],
      ["a > within an attribute", '<p title="a > b">x</p>', "x"],
      ["other scripts", "<p>Привет, <b>мир</b> 😀</p>", "Привет, мир 😀"],
    ];
    for (const [what, html, text] of cases) it(`shows ${what}`, () => assert.equal(convert(html), text));

    it("marks the items of a list", () => {
      assert.match(convert("<ul><li>one</li><li>two</li></ul>"), /^ ?\* one\n ?\* two$/);
    });

    it("answers any string with text", () => {
      const unit = fc.constantFrom(
        "<",
        ">",
        "</",
        "<!--",
        "-->",
        "<p>",
        "</p>",
        "<a href=",
        '"',
        "'",
        "&",
        ";",
        "x",
        " ",
        "<script>",
        "<li>",
        "=",
        "\0",
      );
      fc.assert(
        fc.property(fc.string({ unit, maxLength: 60, size: "max" }), (html) => {
          const text = convert(html);
          assert.ok(text.length <= html.length * 2);
          assert.equal(text, text.trim());
        }),
      );
    });
  });
}

describe("textFromHtml with hostile HTML", () => {
  const units = [
    "<div>",
    "</div>",
    "<table><tr><td>",
    "<ul><li>",
    "<blockquote>",
    "<b><p>",
    "<",
    "<!--",
    "<!",
    "&",
    "&amp;",
    "<a href='x",
    '<a x="',
    "<a x='>",
    "<style>",
    "<br>",
    "<x ",
    " ",
    "<p>x",
    "<ol><li>x",
  ];
  for (const unit of units) {
    it(`takes linear time for 100,000 times ${unit}`, () => {
      const started = process.cpuUsage().user;
      const text = textFromHtml(unit.repeat(100_000));
      assert.ok(process.cpuUsage().user - started < 1_500_000, "more than 1.5 s of processor time");
      assert.ok(text.length <= unit.length * 200_000);
    });
  }

  it("keeps the text of 100,000 nested elements", () => {
    const depth = 100_000;
    assert.equal(textFromHtml(`${"<div>".repeat(depth)}deep${"</div>".repeat(depth)}`), "deep");
  });

  it("does not overflow the stack when closing tags hide how deep it goes", () => {
    for (const unit of ["<b></x>", "<b><!--</b>-->", "<b x='</b>'>"]) {
      assert.equal(typeof textFromHtml(`${unit.repeat(Math.floor(32_000 / unit.length))}deep`), "string");
    }
  });

  it("never writes more than double, where lists in lists would indent every line", () => {
    const html = `${"<ol><li>".repeat(45)}${"x<br>".repeat(5_000)}`;
    assert.ok(textFromHtml(html).length <= html.length * 2);
  });
});

describe("decodeEntities", () => {
  it("leaves unknown names and replaces numbers that are no character", () => {
    assert.equal(decodeEntities("&nope; &constructor; &__proto__; & &amp"), "&nope; &constructor; &__proto__; & &amp");
    assert.equal(decodeEntities("&#0;&#xD800;&#x110000;&#9999999;"), "\ufffd".repeat(4));
    assert.equal(decodeEntities("&nbsp;&yuml;&hellip;&#x1F600;"), "\u00a0ÿ…😀");
  });
});
