// A stored message as JSON: headers in order, text, HTML, attachments without their bytes. What customers submit over
// SMTP is theirs, so it is parsed as received mail is: in a worker with limits.

import type { ParsePool } from "../../parsing/parse-pool.ts";
import { Refusal } from "../../platform/refusal.ts";

export type ContentView = {
  headers: { name: string; value: string }[];
  text_body: string | null;
  html_body: string | null;
  attachments: { filename: string | null; content_type: string; content_id: string | null; size: number }[];
};

/** 409 for a message that cannot be parsed within the limits; its bytes can still be had. */
export async function showContent(parser: Pick<ParsePool, "parse">, mime: Buffer): Promise<ContentView> {
  const outcome = await parser.parse(mime);
  if (outcome.kind === "failed") {
    const instead = "ask for it as it is, with Accept: message/rfc822";
    throw new Refusal("invalid_state", `this message cannot be parsed (${outcome.reason}); ${instead}`);
  }
  const { headers, text, html, attachments } = outcome.mail;
  return {
    headers,
    text_body: text,
    html_body: html,
    attachments: attachments.map(({ filename, content_type, content_id, size }) => ({
      filename,
      content_type,
      content_id,
      size,
    })),
  };
}
