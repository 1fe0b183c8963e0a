import assert from "node:assert/strict";
import { test } from "node:test";
import { nearName } from "./near-name.ts";

const SEND = [
  ...[
    "from",
    "to",
    "cc",
    "bcc",
    "reply_to",
    "subject",
    "html_body",
    "text_body",
    "auto_text",
    "template",
    "template_id",
  ],
  ...[
    "variables",
    "headers",
    "attachments",
    "tags",
    "metadata",
    "scheduled_at",
    "expires_at",
    "unsubscribe",
    "ip_pool",
  ],
];

for (const [given, meant] of [
  ["html", "html_body"],
  ["htmlBody", "html_body"],
  ["HtmlBody", "html_body"],
  ["html-body", "html_body"],
  ["body_html", "html_body"],
  ["hmtl_body", "html_body"],
  ["replyTo", "reply_to"],
  ["reply-to", "reply_to"],
  ["replyto", "reply_to"],
  ["form", "from"],
  ["subjcet", "subject"],
  ["templateId", "template_id"],
  ["attachment", "attachments"],
  ["to_address", "to"],
  ["tag", "tags"],
  ["scheduledAt", "scheduled_at"],
  ["text", "text_body"],
  ["tag_list", "tags"],
  ["o:tag", "tags"],
  ["personalizations", null],
  ["body", null],
  ["colour", null],
  ["x", null],
  ["", null],
  ["__proto__", null],
  ["\u0000".repeat(60), null],
  ["html_body".repeat(10_000), null],
] as const) {
  test(`${JSON.stringify(given.slice(0, 40))} means ${meant ?? "nothing that is known"}`, () => {
    assert.equal(nearName(given, SEND), meant);
  });
}
