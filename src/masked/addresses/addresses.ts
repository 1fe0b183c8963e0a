// How masked addresses look, and how people's addresses are kept: local parts of aliases and of reverse addresses, the
// keyed hashes they are looked up by, and the seal they are stored under.
import { uuidText } from "../../mail/token-bytes.ts";
import { SealBroken } from "../../platform/storage/seal.ts";
import type { SealedColumn } from "../../platform/storage/sealed-columns.ts";
import type { World } from "../../platform/world.ts";
import type { ContactSecrets, Format } from "../types.ts";
import { WORDS } from "./words.ts";

type Sealing = Pick<World, "seal">;

// Without 0, 1, l and o, which people misread.
const READABLE = "abcdefghijkmnpqrstuvwxyz23456789";
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const RANDOM_LENGTH = 10;
const REPLY_BYTES = 16;

/** The reverse addresses' form: `r.` and 26 characters of base32, 128 random bits. */
export const REPLY_LOCAL = /^r\.[a-z2-7]{26}$/;

/**
 * A new local part for an alias. Random ones hold 50 bits, words about 40, UUIDs 122: no letter of any person's address, and
 * no time (RFC 9562 §8: that of version 7 would tell when it was made, and which others were made then).
 */
export function newLocalPart(random: World["random"], format: Format): string {
  if (format === "uuid") return uuid4(random.bytes(16));
  if (format === "random") return [...random.bytes(RANDOM_LENGTH)].map((byte) => READABLE[byte & 31]).join("");
  const bytes = random.bytes(8);
  const word = (at: number) => WORDS[bytes.readUInt16BE(at) % WORDS.length];
  return `${word(0)}-${word(2)}-${String(bytes.readUInt32BE(4) % 1_000_000).padStart(6, "0")}`;
}

/** RFC 9562 §5.4. */
function uuid4(bytes: Buffer): string {
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return uuidText(bytes.toString("hex"));
}

/** A new local part for a reverse address. */
export function newReplyLocal(random: World["random"]): string {
  let bits = "";
  for (const byte of random.bytes(REPLY_BYTES)) bits += byte.toString(2).padStart(8, "0");
  const letters = bits.match(/.{1,5}/g)?.map((five) => BASE32[Number.parseInt(five.padEnd(5, "0"), 2)]) ?? [];
  return `r.${letters.join("")}`;
}

/** What one of our addresses is looked up by, over all organizations. */
export function addressDigest({ seal }: Sealing, address: string): Buffer {
  return seal.hashOften(address.toLowerCase(), "masked-address");
}

/** An address without its tag (RFC 5233), which mail to aliases may have and which makes no other mailbox. */
export function untagged(address: string): string {
  const plus = address.indexOf("+");
  const at = address.lastIndexOf("@");
  return plus > 0 && plus < at ? address.slice(0, plus) + address.slice(at) : address;
}

/** What a destination is looked up by, within its organization. */
export function destinationDigest({ seal }: Sealing, orgId: string, email: string): Buffer {
  return seal.hash(`${orgId} ${email.toLowerCase()}`, "masked-destination");
}

/** What confirmation mails to a mailbox are counted by, over all organizations. */
export function mailboxDigest({ seal }: Sealing, email: string): Buffer {
  return seal.hash(untagged(email.toLowerCase()), "masked-mailbox");
}

/** What a contact is looked up by, within its alias. */
export function contactDigest({ seal }: Sealing, aliasId: string, email: string): Buffer {
  return seal.hashOften(`${aliasId} ${email.toLowerCase()}`, "masked-contact");
}

/** What a contact's address is looked up by over all aliases of an organization. */
export function personDigest({ seal }: Sealing, orgId: string, email: string): Buffer {
  return seal.hash(`${orgId} ${email.toLowerCase()}`, "masked-person");
}

/** What a Message-ID is looked up by, within its alias. */
export function messageIdDigest({ seal }: Sealing, aliasId: string, messageId: string): Buffer {
  return seal.hash(`${aliasId} ${messageId}`, "masked-message-id");
}

/** What `sealText` sealed. */
export const SEALED_TEXTS: readonly SealedColumn[] = (
  [
    { table: "masked_contact", column: "sealed", key: ["org_id", "id"] },
    { table: "masked_destination", column: "sealed", key: ["org_id", "id"] },
    { table: "masked_destination", column: "pgp_sealed", key: ["org_id", "id"] },
    { table: "masked_message_id", column: "counterpart", key: ["org_id", "alias_id", "digest"] },
  ] as const
).map((place) => ({ ...place, context: ({ org_id }) => textContext(org_id!) }));

function textContext(orgId: string): string {
  return `masked:${orgId}`;
}

/** Seals a person's text under a key of the organization. */
export function sealText({ seal }: Sealing, orgId: string, text: string): Buffer {
  return seal.seal(Buffer.from(text), textContext(orgId));
}

/** Opens what `sealText` sealed; throws SealBroken under another master key. */
export function openText({ seal }: Sealing, orgId: string, sealed: Buffer): string {
  return seal.openOften(sealed, textContext(orgId)).toString();
}

/** The same; null for what was sealed with a master key that is lost. */
export function tryOpenText(world: Sealing, orgId: string, sealed: Buffer): string | null {
  try {
    return openText(world, orgId, sealed);
  } catch (error) {
    if (error instanceof SealBroken) return null;
    throw error;
  }
}

/** Seals what is known of a contact, as `sealText` does. */
export function sealContact(world: Sealing, orgId: string, secrets: ContactSecrets): Buffer {
  return sealText(world, orgId, JSON.stringify(secrets));
}

/** Opens what `sealContact` sealed; throws SealBroken under another master key. */
export function openContact(world: Sealing, orgId: string, sealed: Buffer): ContactSecrets {
  return JSON.parse(openText(world, orgId, sealed)) as ContactSecrets;
}

/** The same; null for one that was sealed with a master key that is lost. */
export function tryOpenContact(world: Sealing, orgId: string, sealed: Buffer): ContactSecrets | null {
  const text = tryOpenText(world, orgId, sealed);
  return text === null ? null : (JSON.parse(text) as ContactSecrets);
}
