// Contact cards and calendars that a contact sent, by what they are known again: the name in them is the contact's word, and
// one that came back changed or left out would answer a guess, as the address once did.

/** Of one text. Of a calendar one is enough, and of cards all together are known as well. */
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

/** What a calendar is known by: the ids of its meetings, or all of it where there are none. */
export function calendarMarks(text: string): string[] {
  const ids = [...text.replace(/\r?\n[ \t]/g, "").matchAll(/^UID(?:;[^:\r\n]{0,200})?:([^\r\n]+)/gim)];
  const named = ids.slice(0, OBJECTS_MAX).map(([, id = ""]) => `meeting ${plain(id)}`);
  return named.length > 0 ? named : [`calendar ${plain(text)}`];
}

function plain(text: string): string {
  return text.replace(/\s+/g, "");
}
