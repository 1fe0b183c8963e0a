// A message that could not be parsed still has its head: who wrote to whom, about what, in answer to what. In bounds, and
// for every message there is; its parts stay unread.
import { parseAddressList } from "./parse-addresses.ts";
import { decodeWords, headerValues, splitMessage } from "./parse-head.ts";
import { answeredMax, type ParsedMail } from "./parsed-mail.ts";

/** What the head alone tells; `reason` says why there is no more and stands in `defects`. Never throws. */
export function readHead(bytes: Buffer, reason: string): ParsedMail {
  const { headers } = splitMessage(bytes);
  const first = (name: string) => headerValues(headers, name)[0] ?? null;
  const ids = (name: string) =>
    (headerValues(headers, name)
      .join(" ")
      .match(/<[^<>\s]+>/g) ?? []) as string[];
  const addresses = (name: string) => headerValues(headers, name).flatMap(parseAddressList);
  const subject = first("subject");
  return {
    headers: headers.map(({ name, value }) => ({ name, value: decodeWords(value) })),
    from: addresses("from"),
    sender: addresses("sender"),
    to: addresses("to"),
    cc: addresses("cc"),
    reply_to: addresses("reply-to"),
    subject: subject === null ? null : decodeWords(subject),
    date: null,
    message_id: ids("message-id")[0] ?? null,
    in_reply_to: ids("in-reply-to")[0] ?? null,
    answered: ids("in-reply-to").slice(0, answeredMax),
    references: ids("references"),
    text: null,
    html: null,
    attachments: [],
    auto_submitted: !/^\s*(no\b|$)/i.test(first("auto-submitted") ?? ""),
    defects: [`not_parsed: ${reason}`.slice(0, 200)],
  };
}
