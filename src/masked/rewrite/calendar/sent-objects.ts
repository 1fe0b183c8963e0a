// Contact cards, calendars and files that a contact sent, by what they are known again: the name in a card is the contact's word, and
// one that came back changed or left out would answer a guess, as the address once did. A file that comes back as it was sent tells its
// sender nothing, whatever it holds, and one that was held would.
import { createHash } from "node:crypto";

/** The most objects of one text. For a calendar one is enough, and cards are also known by all of them together. */
const OBJECTS_MAX = 200;
const CARD = /^BEGIN:VCARD\b[\s\S]*?^END:VCARD[^\n]*(?:\n|$)/gim;

/** The contact cards in a text, each as it stands. */
export function cardsIn(text: string): string[] {
  return text.match(CARD) ?? [];
}

/** What cards are known by: each alone, and all together where there are many. */
export function cardMarks(cards: readonly string[]): string[] {
  return [...cards.slice(0, OBJECTS_MAX), cards.join("")].map((card) => `card ${plain(card)}`);
}

/** What a calendar is known by: the ids of its meetings, or all of it without any. */
export function calendarMarks(text: string): string[] {
  const ids = [...text.replace(/\r?\n[ \t]/g, "").matchAll(/^UID(?:;[^:\r\n]{0,200})?:([^\r\n]+)/gim)];
  const named = ids.slice(0, OBJECTS_MAX).map(([, id = ""]) => `meeting ${plain(id)}`);
  return named.length > 0 ? named : [`calendar ${plain(text)}`];
}

/** What a file is known by: all of its bytes. */
export function fileMark(content: Buffer): string {
  return `file ${createHash("sha256").update(content).digest("base64")}`;
}

function plain(text: string): string {
  return text.replace(/\s+/g, "");
}
