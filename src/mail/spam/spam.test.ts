// What a mail scores, and that no honest mail comes near the threshold of quarantine.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parseMessage } from "../mime/parse-message.ts";
import { addUp, findSymptoms } from "./spam.ts";
import type { Suspect } from "./suspect.ts";

const SAMPLES = new URL("../../../../shared/data/spam-and-ham/", import.meta.url);
const QUARANTINE = 8;

const plain: Suspect = {
  headers: [
    { name: "Date", value: "x" },
    { name: "To", value: "x" },
  ],
  from: [{ name: "Anna", email: "anna@sender.example" }],
  reply_to: [],
  subject: "Lunch",
  date: "2026-11-20T10:00:00Z",
  message_id: "<a@sender.example>",
  text: "See you at noon. https://sender.example/menu?x=1",
  html: null,
  attachments: [],
  auth: null,
  session: null,
};
const scoreMail = (suspect: Suspect) => {
  const symbols = findSymptoms(suspect);
  return { score: addUp(symbols), symbols };
};
const names = (more: Partial<Suspect>) => scoreMail({ ...plain, ...more }).symbols.map(({ name }) => name);

test("a plain mail has no symbols", () => {
  assert.deepEqual(scoreMail(plain), { score: 0, symbols: [] });
});

test("each sign is a symbol, and the score is their sum", () => {
  const cases: [Partial<Suspect>, string][] = [
    [{ auth: { spf: "fail", dkim: "none", dmarc: "none" } }, "SPF_FAIL"],
    [{ auth: { spf: "softfail", dkim: "none", dmarc: "none" } }, "SPF_SOFTFAIL"],
    [{ auth: { spf: "none", dkim: "fail", dmarc: "none" } }, "DKIM_FAIL"],
    [{ auth: { spf: "none", dkim: "none", dmarc: "fail" } }, "DMARC_FAIL"],
    [{ auth: { spf: "pass", dkim: "pass", dmarc: "pass" } }, "DMARC_PASS"],
    [{ from: [] }, "FROM_MISSING"],
    [{ date: null }, "DATE_INVALID"],
    [{ headers: [{ name: "to", value: "x" }] }, "DATE_MISSING"],
    [{ headers: [{ name: "date", value: "x" }] }, "TO_MISSING"],
    [{ message_id: null }, "MESSAGE_ID_MISSING"],
    [{ subject: null }, "SUBJECT_EMPTY"],
    [{ subject: "BUY THIS HOUSE" }, "SUBJECT_SHOUTS"],
    [{ subject: "ADV: houses" }, "SUBJECT_ADVERT"],
    [{ from: [{ name: "info@bank.example", email: "x@evil.example" }] }, "FROM_NAME_IS_OTHER_ADDRESS"],
    [{ reply_to: [{ email: "x@gmail.com" }] }, "REPLY_TO_FREEMAIL"],
    [{ html: "<p>v<!-- x -->i<!-- y -->a<!-- z -->g</p>" }, "HTML_BROKEN_WORDS"],
    [{ html: "<script>x</script>" }, "HTML_SCRIPT"],
    [{ html: "<form action=x>" }, "HTML_FORM"],
    [{ html: '<p style="font-size:0px;">x</p>' }, "HTML_TINY_TEXT"],
    [{ text: "http://192.0.2.1/x" }, "LINK_TO_ADDRESS"],
    [{ text: "http://bank.example@evil.example/" }, "LINK_DISGUISED"],
    [{ text: "http://3221225985/x" }, "LINK_ENCODED"],
    [{ text: "Make money fast" }, "EASY_MONEY"],
    [{ attachments: [{ filename: "invoice.pdf.exe" }] }, "ATTACHED_PROGRAM"],
  ];
  for (const [more, name] of cases) assert.deepEqual(names(more), [name]);
  const two = scoreMail({ ...plain, date: null, auth: { spf: "fail", dkim: "fail", dmarc: "none" } });
  assert.equal(two.score, 3.5);
});

const letter = (subject: string, text: string, more: Partial<Suspect> = {}): Suspect => ({
  ...plain,
  subject,
  text,
  ...more,
});
const byList = { headers: [...plain.headers, { name: "List-Id", value: "<list.example>" }] };

test("everyday mail that shares a word or two with spam is not marked", () => {
  const ham: Suspect[] = [
    letter(
      "Re: class inheritance",
      "The inherited constructor fails: http://10.0.0.5:8080/job/1 http://192.168.1.10/ http://172.16.0.1/",
    ),
    letter(
      "Your payment status",
      "Payment status: paid. Invoices show our bank account details. Add a beneficiary in the app.",
    ),
    letter("Emergency contacts", "Name your next of kin and the beneficiary of your pension."),
    letter(
      "Startup raises $50 million",
      "It raised 50 million dollars. The editor gets rich text. Double your income tax allowance.",
    ),
    letter("Speakers", "You have been selected to speak at our conference. Claim your free ticket."),
    letter("Invoice", "Questions? Contact us immediately."),
    letter("Question!!", "Hello", {
      ...byList,
      from: [{ name: "Bob (bob@x.example) via List", email: "list@lists.example" }],
      reply_to: [{ email: "bob@gmail.com" }],
    }),
    letter("Digest", "", {
      html: '<td style="font-size:0px;padding:1px"><a href="https://medium.example/@a/b%20c">x</a></td>',
    }),
  ];
  for (const mail of ham) assert.ok(scoreMail(mail).score <= 2, JSON.stringify([mail.subject, scoreMail(mail)]));
});

test("what spam says in so many words is a symbol", () => {
  const spam: [text: string, name: string][] = [
    ["The late client left US$ 15.5 million and no next of kin.", "ADVANCE_FEE"],
    ["As beneficiary you get 1,000,000 euros.", "ADVANCE_FEE"],
    ["I recorded you by your webcam. Send bitcoin to my wallet.", "EXTORTION"],
    ["Your mailbox has exceeded its quota. Validate your account.", "ACCOUNT_THREAT"],
    ["Verify your account, or it is suspended.", "ACCOUNT_THREAT"],
    ["Make $5,000 a day!", "EASY_MONEY"],
    ["Reply with your name and your bank account details.", "PAYMENT_DETAILS"],
    ["Our online casino gives 200 free spins.", "GAMBLING"],
    ["Replica watches", "COUNTERFEIT"],
    ["Degrees by life experience, no exams.", "DIPLOMA"],
    ["No credit check.", "LOAN"],
    ["Hot singles in your area", "DATING"],
    ["40 million email addresses", "ADDRESS_LISTS"],
    ["Act now!", "SALES_PRESSURE"],
  ];
  for (const [text, name] of spam) assert.ok(names({ text }).includes(name), text);
});

test("hostile texts take no time", () => {
  const started = process.threadCpuUsage();
  for (const piece of [
    "<",
    "<!--",
    "a@",
    "http://",
    "verify your account ",
    "your account locked ",
    "next of kin ",
    "webcam bitcoin ",
    "degree ",
    " ",
    "%",
    "a<!--",
    '<a href="http://a.example">',
    "<div style='display:none'>",
    '<form><input type="',
    "a\u200b",
    "a.",
    "//",
    "www.",
  ]) {
    scoreMail({ ...plain, subject: piece.repeat(5_000), text: piece.repeat(50_000), html: piece.repeat(50_000) });
  }
  const { user, system } = process.threadCpuUsage(started);
  assert.ok(user + system < 2_000_000, `${(user + system) / 1_000} ms`);
});

test("of the samples no ham reaches quarantine, and GTUBE always scores 1,000", (t) => {
  if (!existsSync(SAMPLES)) return t.skip("the shared test data are not there");
  let caught = 0;
  for (const folder of ["ham", "spam"]) {
    for (const file of readdirSync(new URL(`${folder}/`, SAMPLES))) {
      const bytes = readFileSync(new URL(`${folder}/${file}`, SAMPLES));
      const { score, symbols } = scoreMail({ ...parseMessage(bytes), auth: null, session: null });
      const shown = `${folder}/${file}: ${score} ${symbols.map(({ name }) => name)}`;
      t.diagnostic(shown);
      if (folder === "ham") assert.ok(score < QUARANTINE, shown);
      if (bytes.includes("GTUBE-STANDARD")) assert.ok(score >= 1_000, shown);
      if (folder === "spam" && score >= 5) caught += 1;
    }
  }
  assert.ok(caught >= 3, `only ${caught} spam samples are tagged`);
});
