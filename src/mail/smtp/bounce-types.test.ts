// One table says what is hard: every live reply and every report goes by it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { one, plain, read, report } from "../dsn/sample-reports.fixture.ts";
import { BOUNCE_TYPES } from "./bounce-types.ts";
import { classifyReply, type ReplyStage } from "./classify.ts";
import codeTable from "./enhanced-codes.json" with { type: "json" };
import providerTable from "./provider-patterns.json" with { type: "json" };
import textTable from "./reply-texts.json" with { type: "json" };

const stages: ReplyStage[] = ["connect", "banner", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "final"];
const texts = [...providerTable, ...textTable].map(({ example }) => example.replace(/^[245]\d\d[ -]/, ""));
const enhanced = codeTable.flatMap(({ codes }) => codes.map((code) => `5.${code.replace(/-.*/, "")}`));
const types = (mailClass: keyof typeof BOUNCE_TYPES) => BOUNCE_TYPES[mailClass];

test("a class has one type; a second one has its reason in the row", () => {
  for (const [name, row] of Object.entries(BOUNCE_TYPES)) {
    assert.equal(row.type === "hard", row.soft_when !== undefined, name);
    assert.ok((row.soft_when ?? "a reason is not needed").length > 20, name);
  }
});

test("whatever a server says, at whatever stage, the class decides the type; a temporary code is soft", () => {
  for (const stage of stages) {
    for (const code of [421, 450, 500, 521, 550, 554]) {
      const replies = [
        ...texts.map((text) => ({ text, enhanced: null })),
        ...enhanced.map((status) => ({ text: "no", enhanced: status })),
      ];
      for (const reply of replies) {
        const got = classifyReply({ ...reply, stage, code });
        const want = code < 500 ? "soft" : types(got.class).type;
        assert.equal(got.bounce_type, want, `${stage} ${code} ${JSON.stringify(reply)} (${got.class}, ${got.rule})`);
      }
    }
  }
});

test("whatever a report says, the class decides the type", () => {
  const stagesInWords = ["", "in reply to RCPT TO command", "in reply to end of DATA command"];
  for (const text of texts) {
    for (const code of ["550", "554"]) {
      const words = text.replace(/\s+/g, " ");
      const mails = [
        ...stagesInWords.map((stage) =>
          report(one(`Status: 5.0.0\nDiagnostic-Code: smtp; ${code} ${words} (${stage})`)),
        ),
        plain(`Your message could not be delivered.\n\n<user@there.example>:\n${code} ${words}\n`),
      ];
      for (const { action, bounce_type, class: mailClass } of mails.flatMap((mail) => read(mail).recipients)) {
        if (action !== "failed" || mailClass === null) continue;
        assert.equal(bounce_type, types(mailClass).type, `${code} ${words} (${mailClass})`);
      }
    }
  }
});
