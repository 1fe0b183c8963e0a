// What a reader sees of the head of a mail that is attached to a reply: who wrote it, to whom, what about and when. The owner
// of the alias goes by the name of the alias there, as in the head of the reply itself.
import { parseAddress } from "../../../mail/address.ts";
import { charsetOfText } from "../../../mail/mime/choose-bodies.ts";
import { mailboxesOf, readableValue, unfoldedValue } from "../../../mail/mime/header-text.ts";
import type { ParsedAddress } from "../../../mail/mime/parse-addresses.ts";
import { parseMailDate } from "../../../mail/mime/parse-date.ts";
import type { Part } from "../../../mail/mime/parse-structure.ts";
import { type HeaderMailbox, mailboxHeader, rawHeader, textHeader } from "../../../mail/mime/write/encode-header.ts";
import { oneLine } from "../header-fields.ts";
import type { Replaced, Replacer } from "./replace-addresses.ts";

const FIELDS = ["from", "to", "cc", "subject", "date"];
const PEOPLE = ["from", "to", "cc"];

/** The fields of `root`, and what was replaced in them, with its marks. `own` is whom the reply comes from. */
export function nestedHead(
  root: Part,
  { text: replace }: Replacer,
  { own, mark }: { own: HeaderMailbox; mark: string },
): { head: string; replaced: Replaced[] } {
  let head = "";
  const all: Replaced[] = [];
  const text = (given: string) => {
    const replaced = replace(given);
    return { ...replaced, text: replaced.text.replaceAll(mark, ""), marked: replaced.text };
  };
  const charset = charsetOfText(root);
  for (const { name, raw } of root.headers) {
    const lower = name.toLowerCase();
    if (!FIELDS.includes(lower)) continue;
    const shown = lower.replace(/^./, (letter) => letter.toUpperCase());
    const replaced = text(readableValue(unfoldedValue(raw, charset)));
    all.push({ ...replaced, text: replaced.marked });
    const list = PEOPLE.includes(lower) ? mailboxesOf(raw, charset) : [];
    const people = peopleOf(list, text, own);
    // In one form, however long the name was before; what is no address stays as it is read.
    const isWritten = people.length > 0 && (people.length === list.length || isNamed(replaced.text, own));
    const date = lower === "date" ? parseMailDate(replaced.text) : null;
    // In UTC: the zone of an earlier mail of the author's tells where that was.
    if (date !== null) head += rawHeader(shown, new Date(date).toUTCString().replace("GMT", "+0000"));
    else head += isWritten ? mailboxHeader(shown, people) : textHeader(shown, oneLine(replaced.text));
  }
  return { head, replaced: all };
}

function isNamed(text: string, { email }: HeaderMailbox): boolean {
  return text.toLowerCase().includes(email.toLowerCase());
}

function peopleOf(
  list: readonly ParsedAddress[],
  text: (given: string) => { text: string },
  own: HeaderMailbox,
): HeaderMailbox[] {
  return list.flatMap(({ name, email }) => {
    const address = parseAddress(text(email ?? "").text);
    if (!address.ok) return [];
    if (address.address.email.toLowerCase() === own.email.toLowerCase()) return [own];
    const shown = oneLine(text(name ?? "").text);
    return [{ name: shown === "" ? null : shown, email: address.address.email }];
  });
}
