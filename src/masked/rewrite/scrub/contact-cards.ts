// Contact cards in a reply as their readers see them: the names that say whose they are stand in fields of an order of
// their own, and old telephones write them as quoted-printable (vCard 2.1; RFC 6350 §6.2 for the names).
import { decodeText } from "../../../mail/mime/decode-charset.ts";
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { nameSource } from "./own-name.ts";

const ENCODED =
  /^([^:\r\n]{0,300};(?:ENCODING=)?QUOTED-PRINTABLE(?:;[^:\r\n]{0,300})?):((?:[^\r\n]*=\r?\n)*[^\r\n]*)/gim;

/** A card in whole lines, decoded. */
export function readableCard(card: string): string {
  return card
    .replace(ENCODED, (_, field: string, value: string) => {
      const charset = /;CHARSET=([\w.-]{1,40})/i.exec(field)?.[1] ?? "";
      const { bytes } = decodeTransfer(Buffer.from(value, "latin1"), "quoted-printable");
      return `${field}:${decodeText(bytes, charset).text.replace(/[\r\n]+/g, " ")}`;
    })
    .replace(/\r?\n[ \t]/g, "");
}

const NAMES = /^(?:[\w-]{1,40}\.)?(?:FN|N|NICKNAME)(?:;[^:\r\n]*)?:([^\r\n]*)/gim;

/** True if the card has this name among its names. */
export function isCardOf(lines: string, author: string): boolean {
  const name = new RegExp(nameSource(author), "iu");
  return [...lines.matchAll(NAMES)].some(([, value = ""]) => {
    const [family = "", given = "", middle = ""] = value.split(/(?<!\\);/).map(plainValue);
    const ways = [plainValue(value), `${given} ${family}`, `${given} ${middle} ${family}`];
    return ways.some((way) => name.test(way));
  });
}

function plainValue(value: string): string {
  return value.replace(/\\(.)/g, "$1").trim();
}
