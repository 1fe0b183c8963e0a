import assert from "node:assert/strict";
import { test } from "node:test";
import { createJoiner, isLineDigest, lineDigests } from "./wrapped-lines.ts";

const KEY = "00";
const plain = (line: string) => line;
const joining = (sent: string, isHtml = false) => {
  const digests = lineDigests(KEY, sent, isHtml);
  assert.ok(digests.every(isLineDigest));
  return createJoiner(KEY, digests);
};

const LINE = "please write to one@x.example or to two@y.example and to nobody else before the end of the week";

test("a line that a program broke is one again, with the mark of the quote before it or not", () => {
  const join = joining(`Hello,\r\n${LINE}\r\nBye\r\n`);
  const broken = [
    "please write to one@x.example or to",
    "two@y.example and to nobody else",
    "before the end of the week",
  ];
  for (const marks of ["> ", "| ", ""]) {
    const given = `yes\n${marks}Hello,\n${broken.map((one) => marks + one).join(" \n")}\n${marks}Bye`;
    assert.equal(join?.(given, false, plain), `yes\n${marks}Hello,\n${marks}${LINE}\n${marks}Bye`);
  }
  assert.equal(join?.(`> ${broken.join("\n")}\n`, false, plain), `> ${LINE}\n`);
});

test("lines that were sent as two stay two, also where one text holds both ways", () => {
  const two = "write to one@x.example\r\nor to two@y.example";
  assert.equal(joining(two)?.(`> ${two.replace("\r\n", "\n> ")}`, false, plain), `> ${two.replace("\r\n", "\n> ")}`);
});

test("a mark that the contact wrote within a line stays, wherever the program broke the line", () => {
  const line = "one@x.example > two@y.example >three@z.example and nobody";
  const join = joining(line);
  const broken = [
    "> one@x.example >\n> two@y.example >three@z.example and nobody",
    "> one@x.example\n> > two@y.example >three@z.example and nobody",
    "> one@x.example > two@y.example\n> >three@z.example and nobody",
    "> one@x.example\n>  >  two@y.example >three@z.example  and\nnobody",
  ];
  for (const given of broken) assert.equal(join?.(given, false, plain), `> ${line}`, given);
});

test("where the same words stand in one line and in two, one line stands for both", () => {
  const join = joining("to one@x.example or two\r\n\r\nto one@x.example\r\nor two");
  for (const given of ["to one@x.example or two", "to one@x.example\nor two"]) {
    assert.equal(join?.(given, false, plain), "to one@x.example or two");
  }
  assert.equal(join?.("to one@x.example\n\nor two", false, plain), "to one@x.example\n\nor two");
});

test("the lines beside one with an address are remembered: it may be broken over both", () => {
  for (const sent of ["> one@x.exa\n> mple; and nobody else here", "nobody else but one\n@x.example"]) {
    const join = joining(sent);
    assert.equal(join?.(sent.replace("else ", "else\n> "), false, plain), sent);
  }
});

test("HTML whose source was broken reads in one line; what is preformatted keeps its lines", () => {
  const html = `<p>Hello</p><p>${LINE}</p><pre>a@b.example one\nc@d.example two</pre>`;
  const join = joining(html, true);
  assert.equal(join?.(html.replace("example or", "example\nor"), true, plain), html);
});

test("nothing is remembered of what holds no address, and without that nothing is joined", () => {
  assert.deepEqual(lineDigests(KEY, "Hello, how are you today?\nBye", false), []);
  assert.equal(createJoiner(KEY, ["AAAAAAAAAAAAAAAAAAAAAA"]), null);
});

test("a mail of many lines is remembered in few digests, and each of its lines comes back whole", () => {
  const lines = Array.from({ length: 60 }, (_, n) => `line${n} to guess${n}@x.example or word${n} and so on`);
  const digests = lineDigests(KEY, lines.join("\r\n"), false);
  assert.ok(digests.length <= 5, String(digests.length));
  const join = createJoiner(KEY, digests);
  for (const line of lines) assert.equal(join?.(line.replace(" or ", "\n> or "), false, plain), line);
});
