// International names: decoded as RFC 3492 says, shown in Unicode only where a label is of one script.
import assert from "node:assert/strict";
import { it } from "node:test";
import { domainToASCII } from "node:url";
import { decodePunycode, inOneLine, toUnicode } from "./domain-names.ts";

it("Punycode is decoded, as the samples of RFC 3492 §7.1 have it", () => {
  const samples = {
    "4dbcagdahymbxekheh6e0a7fei0b": "למההםפשוטלאמדבריםעברית",
    b1abfaaepdrnnbgefbadotcwatmq2g4l: "почемужеонинеговорятпорусски",
    ihqwcrb4cv8a8dqg056pqjye: "他们为什么不说中文",
    n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa: "なぜみんな日本語を話してくれないのか",
    "3b-ww4c5e180e575a65lsy2b": "3年b組金八先生",
    d9juau41awczczp: "そのスピードで",
  };
  for (const [encoded, decoded] of Object.entries(samples)) assert.equal(decodePunycode(encoded), decoded);
});

it("what is not Punycode is not decoded: foreign signs, a number that ends too soon or is too large", () => {
  for (const text of ["b!cher", "bcher-kv", "99999999", "zzzzzzzzzzzz"]) assert.equal(decodePunycode(text), null, text);
});

it("a label of one script is shown in Unicode; accents are Latin, kana and han are Japanese", () => {
  const names = ["bücher.example", "łódź-1.example", "пример.example", "παράδειγμα.example", "日本語テスト.example"];
  for (const name of [...names, "한국.example", "उदाहरण.example", "ตัวอย่าง.example", "shop.straße.example"]) {
    assert.notEqual(domainToASCII(name), name);
    assert.equal(toUnicode(domainToASCII(name)), name);
  }
  assert.equal(toUnicode("nordkiosk.example"), "nordkiosk.example");
});

it("a label that mixes scripts stays in its ASCII form, beside others that do not", () => {
  for (const label of ["pаypal", "bücherж", "пример1a", "αlpha", "日本a", "テstо"]) {
    const ascii = domainToASCII(`${label}.bücher.example`);
    assert.match(ascii, /^xn--/);
    assert.equal(toUnicode(ascii), `${ascii.split(".")[0]}.bücher.example`, label);
  }
});

it("what the way back does not give again stays as it is: capitals, accents that stand alone, ASCII", () => {
  for (const name of ["xn--Bcher-kva", "xn--nordkiosk-", "xn--i-ubb.example", "xn--.example", "xn--bcher-kvb!"])
    assert.equal(toUnicode(name), name);
});

it("on one line the ASCII form stands in brackets behind the name", () => {
  assert.equal(inOneLine("xn--bcher-kva.example"), "bücher.example (xn--bcher-kva.example)");
  assert.equal(inOneLine("nordkiosk.example"), "nordkiosk.example");
});
