// Three numbers are a code only where a code stands (reply-codes.ts). Here they are put into every other place of every
// report of the corpora and of test/cases/returned: subjects, banners, host names, programs, dates, trace fields. Whatever
// they are, what is read of the report stays the same.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { rounds } from "../../../test/support/rounds.ts";
import { readReturnedMail } from "../returned-mail.ts";

const root = join(import.meta.dirname, "../../..");
const folders = [
  ...["bounce-sisimai/eml", "bounce-flufl/mail", "dsn-misc/enmime-dsn", "dsn-misc/flanker", "dsn-misc/kumomta-rfc3464"],
  ...["dsn-misc/mimekit", "dsn-misc/ruby-mail"],
].map((name) => join(root, "../shared/data", name));

/** Each place with a mark in it; a line that goes on in the next one (quoted-printable) stays as it is. */
const places: readonly [name: string, line: RegExp, marked: string][] = [
  ["subjects", /^((?:>|\s)*Subject:.{0,200}[^=\r\n])$/gim, "$1 Version {v} is out"],
  ["banners", /^(.{0,40}(?:<<<|<--|received>>>) ?220 .*[^=\r\n])$/gim, "$1 MailGuard {v}"],
  ["programs", /^(.{0,80}\b(?:this is (?:the|a)|program|daemon|mail system) .*[^=\r\n])$/gim, "$1 MailGuard {v}"],
  ["hosts", /\b(host |while talking to |connected to )([a-z][a-z0-9-]*\.[a-z0-9.-]*[a-z])\b/gi, "$1mx-{v}.$2"],
  ["names in fields", /^((?:reporting|remote|received-from)-mta: *dns; *)([a-z])/gim, "$1mx-{v}.$2"],
  ["trace", /^(Received: from )/gim, "$1[mx-{v}.us.example] (MailGuard {v}) by "],
  ["what a server says of itself", /^(Diagnostic-Code: *smtp; *[45]\d\d .*[^=\r\n])$/gim, "$1 (MailGuard {v})"],
  ["programs in fields", /^(Message-ID: .*)$/gim, "$1\nX-Mailer: MailGuard {v}\nX-Spam-Checker-Version: {v}"],
  ["dates", /^(The original message was received at )/gim, "$1{v} "],
];
const numbers = ["5.1.1", "5.2.1", "5.2.2", "4.2.2", "2.0.1", "5.7.1", "1.12.2026"];

function marked(mail: string): string {
  return places.reduce((text, [, line, instead]) => text.replace(line, instead), mail);
}

function outcome(mail: string): string {
  const returned = readReturnedMail(Buffer.from(mail, "latin1"));
  if (returned.kind !== "bounce") return returned.kind === "complaint" ? returned.complaint.meaning : returned.kind;
  const recipients = returned.bounce.recipients.map(({ diagnostic: _, ...rest }) => rest);
  return JSON.stringify(recipients);
}

function reportsIn(folder: string): { name: string; mail: string }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => !name.endsWith(".json"))
    .map((name) => ({ name, mail: readFileSync(join(folder, name), "latin1").replaceAll("\r\n", "\n") }));
}

describe("any three numbers in places where no code stands change nothing", () => {
  for (const folder of [...folders, join(root, "test/cases/returned")]) {
    const reports = reportsIn(folder);
    test(`in ${folder.slice(folder.lastIndexOf("/", folder.lastIndexOf("/") - 1) + 1)}`, {
      skip: reports.length === 0 ? "../shared/data is not here" : false,
    }, (t) => {
      let count = 0;
      for (const { name, mail } of reports) {
        const shape = marked(mail);
        const expected = outcome(shape.replaceAll("{v}", "seven"));
        for (const three of numbers.slice(0, rounds(1, numbers.length))) {
          assert.equal(outcome(shape.replaceAll("{v}", three)), expected, `${name}: ${three}`);
        }
        count += shape.split("{v}").length - 1;
      }
      t.diagnostic(`${count} places in ${reports.length} reports`);
      assert.ok(count >= reports.length, `only ${count} places`);
    });
  }
});

test("every kind of place is there", () => {
  const all = [...folders, join(root, "test/cases/returned")].flatMap(reportsIn).map(({ mail }) => mail);
  for (const [name, line] of places)
    assert.ok(
      all.some((mail) => new RegExp(line, "im").test(mail)),
      name,
    );
});
