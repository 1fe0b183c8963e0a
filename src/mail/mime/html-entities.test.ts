import assert from "node:assert/strict";
import { it } from "node:test";
import { decodeEntities } from "./html-entities.ts";

it("takes numbers of windows-1252 for its characters, as HTML does, and never gives a C1 control", () => {
  assert.equal(decodeEntities("it&#146;s &#x93;fine&#148; &#150; &#128;5"), "it’s “fine” – €5");
  const windows1252 = new TextDecoder("windows-1252");
  for (let code = 0x80; code <= 0x9f; code += 1) {
    const text = windows1252.decode(Uint8Array.of(code));
    assert.equal(decodeEntities(`&#${code};`), /\p{Cc}/u.test(text) ? "\ufffd" : text, code.toString(16));
  }
  assert.equal(decodeEntities("&#127;&#160;&#xE9;"), "\x7f\u00a0é");
});

it("knows every name of HTML, in its own case, and leaves what is no name as it was written", () => {
  assert.equal(
    decodeEntities("Dzi&eogon;kuj&eogon;, &Lstrok;ukasz &zcy; &notin; &CounterClockwiseContourIntegral;"),
    "Dziękuję, Łukasz з ∉ ∳",
  );
  assert.equal(decodeEntities("&eacute;&Eacute;&EACUTE; AT&T &amp &nosuchname;"), "éÉ&EACUTE; AT&T &amp &nosuchname;");
  assert.equal(decodeEntities("&#0;&#xd800;&#x110000;"), "\ufffd\ufffd\ufffd");
});
