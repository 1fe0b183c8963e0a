// Returned mail as many servers, gateways, mailboxes and complaint desks write it (test/cases/returned, made by hand after
// what is seen of them), and what a careful reader makes of it: whose, hard or soft, its class, and who is suppressed.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { one, only, report } from "./dsn/sample-reports.fixture.ts";
import { type ReturnedMail, readReturnedMail } from "./returned-mail.ts";

const dir = join(import.meta.dirname, "../../test/cases/returned");
const json = (name: string) => JSON.parse(readFileSync(join(dir, name), "utf8"));
const want: Record<string, string> = json("want.json");

function shortly(returned: ReturnedMail): string {
  if (returned.kind === "complaint") {
    const { format, meaning, recipients } = returned.complaint;
    return `${format}: ${meaning} of ${recipients.join(", ")}`.trim();
  }
  if (returned.kind !== "bounce") return returned.kind;
  const words = returned.bounce.recipients.map(({ email, action, bounce_type, class: mailClass, suppress }) => [
    email,
    action === "failed" ? bounce_type : action,
    mailClass,
    suppress ? "suppress" : null,
  ]);
  return words.map((all) => all.filter((word) => word !== null).join(" ")).join(", ");
}

describe("a returned mail is read as a careful reader reads it, whatever its line ends", () => {
  const files = readdirSync(dir).filter((name) => name.endsWith(".eml"));
  test("every mail has its expectation", () => {
    assert.deepEqual(files.map((name) => name.replace(/\.eml$/, "")).sort(), Object.keys(want).sort());
  });
  for (const file of files) {
    test(file, () => {
      const mail = readFileSync(join(dir, file), "latin1");
      for (const end of ["\n", "\r\n"]) {
        const got = shortly(readReturnedMail(Buffer.from(mail.replaceAll("\n", end), "latin1")));
        assert.equal(got, want[file.replace(/\.eml$/, "")]);
      }
    });
  }
});

type Quoted = { of: string; status: string; reply: string; to: string; want: string };

describe("a reply that a Postfix report quotes is classed by its words, its code and its command", () => {
  for (const { of, status, reply, to, want: wanted } of json("replies.json") as Quoted[]) {
    test(of, () => {
      const text = `<user@there.example>: host mx.there.example[192.0.2.7] said: ${reply} (in reply to ${to} command)`;
      const fields = one(`Status: ${status}\nRemote-MTA: dns; mx.there.example\nDiagnostic-Code: smtp; ${reply}`);
      const { bounce_type, class: mailClass, suppress } = only(report(fields, text));
      assert.equal(`${bounce_type} ${mailClass}${suppress ? " suppress" : ""}`, wanted);
    });
  }
});
