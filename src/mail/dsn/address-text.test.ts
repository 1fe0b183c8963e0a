// Addresses in texts whose languages set no space around them, and addresses that are themselves in those languages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressSource, typedAddress } from "./address-text.ts";
import { only, plain, short } from "./sample-reports.fixture.ts";

const first = (text: string) => new RegExp(addressSource, "iu").exec(text)?.[0];

test("an address ends at punctuation beyond ASCII, and begins behind it", () => {
  for (const text of [
    "「u@x.example」宛",
    "：u@x.example，原因",
    "（u@x.example）不",
    "【u@x.example】。",
    "„u@x.example“",
    "«u@x.example»",
  ]) {
    assert.equal(first(text), "u@x.example", text);
  }
  assert.equal(first("u@x.example’s mailbox"), "u@x.example");
});

test("an address ends before a word that stands against its top-level domain", () => {
  for (const text of ["u@x.example様宛のメール", "u@x.example님에게 보낸", "u@x.exampleに送信", "u@x.example님에게."]) {
    assert.equal(first(text)?.replace(/\.$/, ""), "u@x.example", text);
  }
  assert.equal(first("u@例え.example様宛"), "u@例え.example");
});

test("international addresses are read whole", () => {
  for (const address of [
    ...["jörg@bücher.example", "u@mail.grün.de", "u@exa.gru\u0308n", "u@x.vermögensberatung", "иван@почта.рф"],
    ...["用户@例子.中国", "u@mail.abc株式会社.jp", "사용자@예시.한국", "παράδειγμα@δοκιμή.ελ"],
  ]) {
    assert.equal(first(`<${address}>: `), address);
    assert.equal(first(`${address}，`), address);
    assert.equal(typedAddress(`utf-8; ${address}`), address);
  }
  assert.equal(typedAddress("utf-8; o’brien@x.example"), "o’brien@x.example");
});

test("reports in Chinese, Japanese and Korean name the recipient that stands within their text", () => {
  const texts = {
    系统退信: "退信\n收件人：user@there.example，退信原因：550 5.1.1 User not found\n",
    配信不能: "「user@there.example」宛のメールは配信できませんでした。\n550 5.1.1 User unknown\n",
    配信エラー: "user@there.example様宛のメールは送信できませんでした。\n550 5.1.1 User unknown\n",
    "메일 발송 실패": "user@there.example님에게 보낸 메일이 전달되지 못했습니다.\n550 5.1.1 User unknown\n",
  };
  for (const [subject, text] of Object.entries(texts)) {
    assert.match(
      short(only(plain(text, subject))),
      /^user@there\.example failed hard invalid_recipient .*suppress$/,
      text,
    );
  }
});
