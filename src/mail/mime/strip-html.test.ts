import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decodeEntities } from "./html-entities.ts";
import { stripHtml } from "./strip-html.ts";

describe("stripHtml", () => {
  const cases: [string, string, string][] = [
    ["paragraphs", "<p>One</p><p>Two</p>", "One\n\nTwo"],
    ["line breaks", "a<br>b<br/>c<br><br><br>d", "a\nb\nc\n\nd"],
    ["headings without shouting", "<h1>Hello World</h1><p>x</p>", "Hello World\n\nx"],
    [
      "links with their address",
      '<a href="https://example.com/a?b=1&amp;c=2">Shop</a>',
      "Shop [https://example.com/a?b=1&c=2]",
    ],
    ["links that are their address", '<a href="https://example.com/">https://example.com</a>', "https://example.com"],
    ["addresses and numbers that are links once", '<a href="mailto:a@b.example">a@b.example</a>', "a@b.example"],
    ["a full stop right behind a link", '<a href="https://e.example/x">here</a>.', "here [https://e.example/x]."],
    [
      "the address of a button beside its words",
      '<a href="https://e.example/x"><table><tr><td>Pay now</td></tr></table></a><p>x</p>',
      "Pay now [https://e.example/x]\n\nx",
    ],
    [
      "links without an address as words",
      '<a name="top">Top</a> <a href="#top">Up</a> <a href="javascript:x()">No</a>',
      "Top Up No",
    ],
    ["inline tags inside words", "Hel<b>lo</b> <i>wor</i>ld", "Hello world"],
    ["white space as one space", "a\n\n   b\t<b>c</b>", "a b c"],
    ["entities", "&lt;b&gt; &amp;amp; &quot;&#65;&#x42;&euro;&uuml;&quot;", '<b> &amp; "AB€ü"'],
    ["styles and scripts as nothing", "<style>p{}</style><p>a</p><script>if (a<b) x()</script>b", "a\n\nb"],
    ["comments as nothing", "a<!-- <b>no</b> --> b<!--[if mso]><p>Outlook</p><![endif]-->", "a b"],
    [
      "a preview line that nobody sees as nothing",
      '<div style="display:none;font-size:0">Hi<div>x</div></div><p>Text</p>',
      "Text",
    ],
    ["an unseen picture as nothing", '<img style="display: none" alt="x">a', "a"],
    ["what an unseen element without an end holds", '<div style="display:none">a<p>b</p>', "a\n\nb"],
    ["pictures by their alternative text", '<img src="https://t.example/x.gif" alt="Logo"> Acme', "Logo Acme"],
    ["cells apart", "<table><tr><td>Item</td><td>12.00</td></tr></table>", "Item 12.00"],
    [
      "rows as lines",
      "<table><thead><tr><th>Item</th><th>Price</th></tr></thead><tbody><tr><td>Hat</td><td>3.00</td></tr></tbody></table>x",
      "Item Price\nHat 3.00\n\nx",
    ],
    ["the items of a list", "a<ul><li>one</li><li>two</ul>b", "a\n\n* one\n* two\n\nb"],
    ["numbers of a list", "<ol><li>one</li><li><p>two</p></li></ol>", "1. one\n2. two"],
    [
      "lists in lists, and lines of an item below one another",
      "<ol><li>a<ul><li>b<br>c</li></ul></li><li>d</li></ol>",
      "1. a\n  * b\n    c\n2. d",
    ],
    ["an item without a list", "<li>x", "* x"],
    ["quotations", "<p>a</p><blockquote>b<br>c<p>d</p></blockquote>e", "a\n\n> b\n> c\n>\n> d\n\ne"],
    ["preformatted lines as they are", "<pre>a  b\n  c</pre>d", "a  b\n  c\n\nd"],
    ["a rule", "a<hr>b", "a\n\n---\n\nb"],
    ["a whole document", "<!DOCTYPE html><html><head><title>T</title></head><body>Hi</body></html>", "Hi"],
    ["nothing as nothing", "", ""],
    ["a > within an attribute", '<p title="a > b">x</p>', "x"],
    ["other scripts", "<p>Привет, <b>мир</b> 😀 　日本</p>", "Привет, мир 😀 日本"],
    ["a < that is none of markup's", "1 < 2 and 3 <4", "1 < 2 and 3 <4"],
  ];
  for (const [what, html, text] of cases) it(`shows ${what}`, () => assert.equal(stripHtml(html), text));

  it("answers any string with text", () => {
    const unit = fc.constantFrom(
      ...'< </ <!-- --> <p> </p> <a_href= " \' & ; x <script> <ol> </ol> <li> <pre> </pre> <blockquote> = \0 <b_style="display:none">'
        .split(" ")
        .map((word) => word.replace("_", " ")),
      " ",
      "\n",
    );
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60, size: "max" }), (html) => {
        const text = stripHtml(html);
        assert.ok(text.length <= html.length * 5);
        assert.equal(text, text.trim());
      }),
    );
  });
});

describe("stripHtml with hostile HTML", () => {
  const units = [
    "<div>",
    "</div>",
    "<table><tr><td>",
    "<ul><li>",
    "<blockquote>",
    "<blockquote>x",
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
    "<pre>\n x",
    '<b style="display:none">',
    "<p display",
    "<p display: none",
  ];
  for (const unit of units) {
    it(`takes linear time for 100,000 times ${unit}`, () => {
      const started = process.cpuUsage().user;
      const text = stripHtml(unit.repeat(100_000));
      assert.ok(process.cpuUsage().user - started < 1_500_000, "more than 1.5 s of processor time");
      assert.ok(text.length <= unit.length * 500_000);
    });
  }

  it("takes linear time for 30,000 unseen elements of different names that never end", () => {
    const names = Array.from({ length: 30_000 }, (_, i) => `<n${i} style="display:none">`);
    const started = process.cpuUsage().user;
    assert.equal(stripHtml(`${names.join("")}x`), "x");
    assert.ok(process.cpuUsage().user - started < 1_000_000);
  });

  it("keeps the text of 100,000 nested elements", () => {
    const depth = 100_000;
    assert.equal(stripHtml(`${"<div>".repeat(depth)}deep${"</div>".repeat(depth)}`), "deep");
  });

  it("grows with the text, not with the depth of lists and quotations", () => {
    for (const nest of ["<ol><li>", "<blockquote>"]) {
      const html = `${nest.repeat(2_000)}${"x<br>".repeat(5_000)}`;
      assert.ok(stripHtml(html).length <= html.length * 2);
    }
  });
});

describe("decodeEntities", () => {
  it("leaves unknown names and replaces numbers that are no character", () => {
    assert.equal(decodeEntities("&nope; &constructor; &__proto__; & &amp"), "&nope; &constructor; &__proto__; & &amp");
    assert.equal(decodeEntities("&#0;&#xD800;&#x110000;&#9999999;"), "\ufffd".repeat(4));
    assert.equal(decodeEntities("&nbsp;&yuml;&hellip;&#x1F600;"), "\u00a0ÿ…😀");
  });
});
