// What rules get to know of a mail.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import { factsOf } from "./rules-step.ts";

type Given = Parameters<typeof factsOf>;

test("the domain of a sender is in lower case, so that an expression finds it however it was written", () => {
  const mail = { envelope: { from: "" }, recipient: "a@b.example", route: { tag: null }, size: 1 } as Given[0];
  const read = {
    from: [{ email: "Anna@Shop.Example" }],
    subject: null,
    headers: [],
    attachments: [],
  } as unknown as ParsedMail;
  const auth = { spf: { result: "none" }, dkim: { result: "none" }, dmarc: { result: "none" } } as Given[2];
  const { sender, sender_domain } = factsOf(mail, read, auth, null);
  assert.deepEqual([sender, sender_domain], [["Anna@Shop.Example"], ["shop.example"]]);
});
