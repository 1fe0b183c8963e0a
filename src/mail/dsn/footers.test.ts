// What gateways and companies write below every mail is no reason, and hides none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { one, only, report, short } from "./sample-reports.fixture.ts";

const NOTICE = "Delivery to the following recipients failed.\n\n       user@there.example\n";
const below = (text: string, rule = "_".repeat(72)) =>
  only(report(one("Status: 5.1.1"), `${NOTICE}\n\n${rule}\n${text}`));

const FOOTERS = [
  "This e-mail has been scanned for all viruses by Star. The service is powered by MessageLabs.",
  "**** This email has come from the internet and has been\nscanned for all viruses and potentially offensive content ****",
  "Scanned by MailScanner, believed to be clean of spam and malware.",
  "No virus found in this message.\nChecked by AVG - www.avg.example",
  "Diese E-Mail wurde von Avast auf Viren geprüft.\nhttps://www.avast.example/antivirus",
  "Este mensaje ha sido analizado por un antivirus y está libre de virus.",
  "Warning: transmission cannot be guaranteed to be error-free as information could arrive late, be blocked, or contain viruses.",
  "This e-mail is confidential and may be privileged. If you are not the intended recipient, delete it: it may contain\nspam or macro viruses, for which we accept no liability.",
];

test("a footer below a report is not the reason: the address that does not exist stays one", () => {
  for (const footer of FOOTERS) {
    for (const rule of ["_".repeat(72), "", "-----------"]) {
      const recipient = below(footer, rule);
      const wanted = "user@there.example failed hard invalid_recipient 5.1.1  suppress";
      assert.equal(short(recipient), wanted, footer);
      assert.doesNotMatch(recipient.diagnostic, /virus|spam/i);
    }
  }
});

test("what a scanner says of the mail itself is the reason", () => {
  for (const text of [
    "Your message was scanned by the gateway and a virus was found in it.",
    "This message has been checked for malware and was rejected: phishing.",
    "The attachment was scanned for viruses, and the mail was not delivered: Trojan.Generic",
    "550 5.7.1 message scanned by ClamAV: Eicar-Test-Signature",
  ])
    assert.equal(below(text).class, "content", text);
});
