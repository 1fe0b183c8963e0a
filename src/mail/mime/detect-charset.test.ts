// Text without a label: Cyrillic and the scripts of East Asia are read as what they are, and text in Latin letters stays what it
// was. Words of many languages are those that Node knows, as random lists; whole sentences are letters of a shop.
import assert from "node:assert/strict";
import { test } from "node:test";
import iconv from "iconv-lite";
import { decodePlainText } from "./decode-charset.ts";
import { detectCharset } from "./detect-charset.ts";
import { parseMessage } from "./parse-message.ts";

const LETTERS: readonly [text: string, charsets: readonly string[]][] = [
  [
    "Здравствуйте, Анна! Спасибо за ваше письмо. Мы получили ваш заказ и отправим его завтра утром. С уважением, Пётр.",
    ["koi8-r", "windows-1251", "iso-8859-5"],
  ],
  [
    "Доброго дня! Ми отримали ваше замовлення і надішлемо його завтра вранці. Якщо вам потрібно змінити адресу, дайте відповідь на цей лист до кінця дня.",
    ["windows-1251"],
  ],
  ["いつもお世話になっております。来週の会議ですが、火曜日の午後三時からに変更となりました。", ["shift_jis", "euc-jp"]],
  ["王先生，您好！我们已经收到您的订单，明天上午将为您发货。请在今天下班之前确认是否参加。", ["gb18030"]],
  ["王先生，您好！我們已經收到您的訂單，明天上午將為您出貨。請在今天下班之前確認是否參加。", ["big5"]],
  ["안녕하세요, 김 과장님. 주문하신 상품은 내일 오전에 발송될 예정입니다. 감사합니다.", ["euc-kr"]],
];

test("a mail without a charset is read in the one that its bytes show, in its text and in its HTML", () => {
  for (const [text, charsets] of LETTERS) {
    for (const charset of charsets) {
      const body = iconv.encode(`${text}\r\n`, charset);
      for (const label of ["", "; charset=us-ascii", "; charset=x-unknown"]) {
        const head = Buffer.from(`From: a@b.example\r\nContent-Type: text/plain${label}\r\n\r\n`);
        assert.equal(parseMessage(Buffer.concat([head, body])).text, `${text}\n`, `${charset}${label}`);
      }
      const page = Buffer.concat([Buffer.from("<style>p{margin:0}</style><p>"), body, Buffer.from("</p>")]);
      const head = Buffer.from("From: a@b.example\r\nContent-Type: text/html\r\n\r\n");
      assert.ok(parseMessage(Buffer.concat([head, page])).html?.includes(text), charset);
    }
  }
});

test("a label is believed, and so is UTF-8 with an error in it", () => {
  const [russian] = LETTERS[0] as (typeof LETTERS)[number];
  const octets = iconv.encode(russian, "koi8-r");
  assert.equal(decodePlainText(octets, "windows-1252").text, iconv.decode(octets, "windows-1252"));
  const broken = Buffer.concat([Buffer.from(russian), Buffer.from([0xff]), Buffer.from(russian)]);
  assert.equal(decodePlainText(broken, "").text, `${russian}\ufffd${russian}`);
});

function wordsOf(language: string): string[] {
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  const names = new Intl.DisplayNames([language], { type: "region", fallback: "none" });
  return letters.flatMap((one) => letters.flatMap((two) => names.of(one + two) ?? []));
}

test("text in Latin letters is no other, whatever its language, length and signs", () => {
  const languages = ["de", "fr", "es", "pt", "it", "sv", "da", "nb", "fi", "nl", "is", "ca", "et", "en", "ga", "gl"];
  for (const language of languages) {
    const words = wordsOf(language);
    assert.ok(words.length > 200, language);
    for (const length of [3, 10, 40, 250]) {
      for (let from = 0; from < words.length; from += length) {
        const text = words.slice(from, from + length).join(", ");
        assert.equal(detectCharset(iconv.encode(text, "windows-1252")), "", text);
      }
    }
  }
  for (const text of [
    "ÄÖÜ ÀÉÈ ÑÕÃ ÇÊÔ ÂÎÛ ËÏÜ ÅÆØ ÞÐÝ ßÿœ ŠŽŒ",
    "Dates – times – places – “quotes” – ‘more’ – and … so – on – and – on – and – on",
    "·······• • • »»» «««  §§§ ©®™ €€€ £££ ½¼¾ ××× ÷÷÷ °°° ±±±",
    "à é è à ù ç ê à é è à ù ç ê à é è à ù",
  ]) {
    assert.equal(detectCharset(iconv.encode(text, "windows-1252")), "", text);
  }
});

test("only the first 64 KiB are looked at", () => {
  const [russian] = LETTERS[0] as (typeof LETTERS)[number];
  const octets = iconv.encode(russian, "koi8-r");
  assert.equal(detectCharset(Buffer.concat([Buffer.alloc(60_000, "x "), octets])), "koi8-u");
  assert.equal(detectCharset(Buffer.concat([Buffer.alloc(66_000, "x "), octets])), "");
});
