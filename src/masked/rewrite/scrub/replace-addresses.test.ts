// What is left of an address after replacing: nothing that reads as it, disguised or as it stands; and other people's
// addresses, as they were.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createReplacer, type Replacement } from "./replace-addresses.ts";

const A = "k3x@mask.example";
const hiding = (...from: string[]) => createReplacer(from.map((one): Replacement => ({ from: one, to: A })));
const replacer = hiding("anna@home.example");

test("an address is found where what stands before it makes a code of its first letters", () => {
  for (const text of ["%4anna@home.example", "&#4anna@home.example", "&aanna@home.example", "%25%4anna@home.example"]) {
    assert.doesNotMatch(replacer.text(text).text, /anna@home/i, text);
    assert.doesNotMatch(replacer.html(text).text, /anna@home/i, text);
  }
});

test("an address is found around another one that stood in its way", () => {
  for (const kind of ["text", "html"] as const) {
    const { text } = replacer[kind]("AN<an<><>na@home.example<>NA+@HOME.EXAMPLE");
    assert.equal(replacer[kind](text).count, 0, text);
    assert.doesNotMatch(text, /home/i);
  }
});

test("ten addresses in a row are found, though each begins as a top level that the domain before could have", () => {
  for (const kind of ["text", "html"] as const) {
    assert.equal(hiding("anna.re@home.example")[kind]("anna.re@home.example".repeat(10)).text, A.repeat(10));
  }
});

describe("in HTML an address is found", () => {
  const cases: Record<string, string> = {
    "anna&ZeroWidthSpace;@home.example": A,
    "an&NoBreak;na@home&NegativeThinSpace;.example": A,
    "anna&#00000000000064;home&period;example": A,
    "an&shyna@home.example": A,
    "<p>&aopf;nn&afr;@home.example</p>": `<p>${A}</p>`,
    "anna<!-- > -->@home.example": `${A}<!-- > -->`,
    "anna<!-->@home.example": `${A}<!-->`,
    'an<b title="a>b"></b>na@home.example': `${A}<b title="a>b"></b>`,
    "an<b title='a>b' x=c>na</b>@home.example": `${A}<b title='a>b' x=c></b>`,
    '<style>.a::after{content:"anna\\000040home.example"}</style>': `<style>.a::after{content:"${A}"}</style>`,
    '<style>.a::after{content:"anna\\40 home\\2e example"}</style>': `<style>.a::after{content:"${A}"}</style>`,
    "anna\\@home\\.example": A,
    'Anna<br>an<b title=">">na</b>@home.example<br>Tel. 1': `Anna<br>${A}<b title=">"></b><br>Tel. 1`,
  };
  for (const [html, wanted] of Object.entries(cases)) {
    test(html, () => assert.equal(replacer.html(html).text, wanted));
  }
});

describe("however its parts are joined, an address is found", () => {
  const cases: Record<string, string> = {
    "anna @ home.example": "k3x @ mask.example",
    "anna&nbsp;@&nbsp;home.example": "k3x @ mask.example",
    '"anna"@home.example': '"k3x"@mask.example',
    "anna [at] home.example, anna(at)home.example": "k3x [at] mask.example, k3x(at)mask.example",
    "anna_at_home.example.pdf": "k3x_at_mask.example.pdf",
    "<bounces+12-ab-anna=home.example@list.example>": "<bounces+12-ab-k3x=mask.example@list.example>",
    "list+anna+tag=home.example@list.example": "list+k3x=mask.example@list.example",
    "anna%home.example@relay.example": "k3x%mask.example@relay.example",
    "https://x.example/?u=anna%3Dhome.example": "https://x.example/?u=k3x=mask.example",
  };
  for (const [text, wanted] of Object.entries(cases)) {
    test(text, () => assert.equal(replacer.html(text).text, wanted));
  }

  test("and others stay", () => {
    const others = [
      "hanna=home.example@l.example",
      "max.anna=home.example@l.example",
      "https://x.example/?anna=home.example",
    ];
    for (const text of [...others, "anna at home.example"]) {
      assert.equal(replacer.text(text).text, text);
    }
    assert.equal(hiding("a@firma.co").text("a=firma.com@l.example").text, "a=firma.com@l.example");
  });
});

test("markup that never ends, and much of it, is read in one pass", () => {
  for (const piece of ["<!--", "<a b='", '<a b="', "<a <", "</", "<!x", "<a/b=", "&#0", "\\0", "<a b=c\n", "<b\"'>"]) {
    const html = piece.repeat(Math.ceil(200_000 / piece.length));
    assert.equal(replacer.html(html).text, html, piece);
    assert.match(replacer.html(`anna@home.example ${html}`).text, /^k3x@mask\.example /, piece);
  }
});

describe("somebody else's address stays", () => {
  const cases: [string, string][] = [
    ["info@gmx.de", "write to kundeninfo@gmx.de"],
    ["mueller@gmx.de", "max.mueller@gmx.de, karl-mueller@gmx.de"],
    ["a@firma.co", "a@firma.com and a@firma.co.uk and a@firma.co-op.com"],
    ["a@firma.co", '<a href="mailto:a@firma.com">a@firma.com</a><td>ba@firma.co</td>'],
    ["anna@gmail.com", "hanna@gmail.com, johanna@googlemail.com"],
  ];
  for (const [from, text] of cases) {
    test(`${text}, though ${from} is hidden`, () => {
      const replaced = hiding(from).html(text);
      assert.deepEqual([replaced.text, hiding(from).text(text).text, replaced.count], [text, text, 0]);
    });
  }
});

describe("what a reader takes for the address is hidden, whatever it touches", () => {
  const cases: Record<string, string> = {
    "联系anna@home.example谢谢": `联系${A}谢谢`,
    "mailto:anna@home.example?x": `mailto:${A}?x`,
    "MAILTOanna@home.example": `MAILTO${A}`,
    "1.anna@home.example 2.anna@home.example": `1.${A} 2.${A}`,
    "anna@home.exampleanna@home.example": `${A}${A}`,
    "to=anna@home.example&x": `to=${A}&x`,
    "_anna@home.example_": `_${A}_`,
    "…anna@home.example...": `…${A}...`,
    "-anna@home.example-": `-${A}-`,
    '"Mail:\\nanna@home.example\\n"': `"Mail:\\n${A}\\n"`,
    "=3Danna@home.example=20": `=3D${A}=20`,
    "anna@home.example¹": `${A}¹`,
    "anna@home.example.zip": `${A}.zip`,
    "anna@home.exampleTel": `${A}Tel`,
    "kunden\u200banna@home.example": `kunden\u200b${A}`,
    "see\nanna@home.\nexample\nnow": `see\n${A}\nnow`,
  };
  for (const [text, wanted] of Object.entries(cases)) {
    test(JSON.stringify(text), () => assert.equal(replacer.text(text).text, wanted));
  }
  test("a sentence that begins behind it without a space", () => {
    assert.equal(hiding("a@firma.com").text("a@firma.com.My name").text, `${A}.My name`);
    assert.equal(hiding("a@firma.com").text("a@firma.com.Danke").text, `${A}.Danke`);
  });
  test("an address after a cell of a table that ends in a letter", () => {
    const html = "<td>Anna</td><td>an<i></i>na@home.example</td><td>Tel</td>";
    assert.equal(replacer.html(html).text, `<td>Anna</td><td>${A}<i></i></td><td>Tel</td>`);
  });
  test("many addresses in a row", () => {
    const html = "an<b>na@home</b>.example".repeat(9);
    assert.equal(replacer.html(html).text, `${A}<b></b>`.repeat(9));
  });
  test("in the name of a file", () => {
    assert.equal(replacer.name("key-anna@home.example.asc").text, `key-${A}.asc`);
  });
});

test("a name that an address was shown as is found as words only", () => {
  const { text } = createReplacer([{ from: "a at b.co", to: "a@b.co" }]);
  assert.equal(text("data at b.co and a at b.com, a at b.co.").text, "data at b.co and a at b.com, a@b.co.");
});

test("who is known by a reverse address of another service stays who they are", () => {
  const there = `r.${"c".repeat(26)}@mask2.example`;
  const { text } = createReplacer([{ from: `r.${"a".repeat(26)}@mask.example`, to: there }], A);
  const given = `ORGANIZER:mailto:r.${"a".repeat(26)}@mask.example, r.${"b".repeat(26)}@mask3.example`;
  assert.equal(text(given).text, `ORGANIZER:mailto:${there}, ${A}`);
});

test("Gmail's dots hide nothing", () => {
  const { text } = hiding("anna.real@gmail.com");
  assert.equal(text("annareal@gmail.com, a.n.n.a.real+x@GMail.com").text, `${A}, ${A}`);
});

test("what is glued before a mailbox at a domain of its own hides nothing of it; initials are somebody else's", () => {
  const { text } = createReplacer([{ from: "anna@home.example", to: "k3x@mask.example" }]);
  for (const glued of ["ab-", "x.", "To", "m_123-", "\u00fcber"]) {
    assert.equal(text(`see ${glued}anna@home.example`).text, `see ${glued}k3x@mask.example`);
  }
  const short = createReplacer([{ from: "a@home.example", to: "k3x@mask.example" }]);
  assert.equal(short.text("anna@home.example, x.a@home.example").text, "anna@home.example, x.k3x@mask.example");
});
