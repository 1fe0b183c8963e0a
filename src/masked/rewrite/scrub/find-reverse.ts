// The addresses that a reply names anywhere: in quotes, in calendars, in attached mails. Whom reverse addresses among them
// stand for is looked up by the caller. In bounds: what is beyond them is replaced all the same, by the alias.
import { domainToASCII } from "node:url";
import { decodeText } from "../../../mail/mime/decode-charset.ts";
import { decodeTransfer } from "../../../mail/mime/decode-transfer.ts";
import { decodeWords, splitMessage } from "../../../mail/mime/parse-head.ts";
import { type Part, parseStructure } from "../../../mail/mime/parse-structure.ts";
import { collectNamed } from "../named-addresses.ts";
import { fieldOf, filenameOf } from "./part-fields.ts";
import { PART_LIMITS } from "./scrub-parts.ts";

const FOUND_MAX = 1_000;
const OCTETS_MAX = 4_000_000;
const NESTING_MAX = 5;
/** Mail programs show international domains in letters, and quote them so; behind `example` other letters are other words. */
const REVERSE =
  /r\.[a-z2-7]{26}(\+[a-z2-7]{1,700})?@((?:[\p{L}\p{M}\p{N}-]{1,63}\.){1,10}(?:[a-z0-9-]{1,63}|[\p{L}\p{M}\p{N}-]{1,63}))/gu;

type Search = { found: Set<string>; named: Set<string>; octets: number };

/**
 * `reverse`: addresses of the form of reverse addresses, in lower case, without tags, their domains in codes, once each.
 * `named`: all addresses, as any reading of a text names them.
 */
export function findAddressesIn(message: Buffer): { reverse: string[]; named: string[] } {
  const search: Search = { found: new Set(), named: new Set(), octets: OCTETS_MAX };
  lookThrough(message, search, 0);
  return { reverse: [...search.found].slice(0, FOUND_MAX), named: [...search.named] };
}

function lookThrough(message: Buffer, search: Search, nesting: number): void {
  const { body_offset } = splitMessage(message);
  lookAt(decodeWords(message.toString("latin1", 0, Math.min(body_offset, search.octets))), search);
  lookAtPart(parseStructure(message, PART_LIMITS).root, search, nesting);
}

function lookAtPart(part: Part, search: Search, nesting: number): void {
  for (const child of part.children ?? []) lookAtPart(child, search, nesting);
  if (part.children || search.octets <= 0) return;
  collectNamed(filenameOf(part), search.named);
  const isMessage = /^message\//.test(part.type) || /\.eml$/i.test(filenameOf(part));
  if (!isMessage && !/^text\/|calendar|\/ics$/.test(part.type) && !/\.ics$/i.test(filenameOf(part))) return;
  const { bytes } = decodeTransfer(part.body, fieldOf(part, "content-transfer-encoding"));
  if (isMessage && nesting < NESTING_MAX) {
    lookThrough(bytes, search, nesting + 1);
    return;
  }
  const room = bytes.subarray(0, search.octets);
  search.octets -= room.length;
  lookAt(decodeText(room, part.parameters.get("charset") ?? "").text, search);
}

function lookAt(text: string, { found, named }: Search): void {
  collectNamed(text, named);
  const plain = text.replace(/%40|&#64;|&#x40;|&commat;/gi, "@").toLowerCase();
  const joined = plain.replace(/(?<![ \t])[ \t]*\r?\n[>| \t]*/g, "");
  for (const one of [plain, joined]) {
    for (const { 0: address, 1: tag = "", 2: domain = "" } of one.matchAll(REVERSE)) {
      if (found.size >= FOUND_MAX) return;
      const local = address.slice(0, -domain.length - tag.length - 1);
      found.add(`${local}@${domainToASCII(domain) || domain}`);
    }
  }
}
