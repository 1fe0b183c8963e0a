// Pieces of text that carry an address, or a reverse address of somebody else, in a form that is read only when it is
// decoded: for the random trees of replies.
import { domainToUnicode } from "node:url";
import type { Dice } from "./random-tree.fixture.ts";

const pick = <T>(dice: Dice, from: readonly T[]): T => from[dice(from.length)] as T;

/** A reverse address that no order of these tests knows. */
export const FOREIGN = "r.bbbbbbbbbbbbbbbbbbbbbbbb77@other.mask.example";

/** A piece of plain text, of one line or several. */
export function carrier(dice: Dice, address: string): string {
  const b64 = (text: string) => Buffer.from(text).toString("base64");
  const lines = (text: string, length: number) => text.match(new RegExp(`.{1,${length}}`, "g"))?.join("\r\n") ?? "";
  const half = Math.floor(address.length / 2) + dice(3);
  const key = (kind: string) =>
    `-----BEGIN PGP ${kind}-----\r\nVersion: X\r\n\r\n${lines(b64(`\x99\x01Anna <${address}>\x02 padding of a key`), 64)}\r\n=abcd\r\n-----END PGP ${kind}-----`;
  return pick(dice, [
    () => key("PUBLIC KEY BLOCK"),
    () => key("PUBLIC KEY BLOCK").replace(/^/gm, "> "),
    () => `-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA256\r\n\r\n- -- \r\nhi ${address}\r\n${key("SIGNATURE")}`,
    () => `-----BEGIN CERTIFICATE-----\r\n${lines(b64(`0\x82email ${address} \x01`), 64)}\r\n-----END CERTIFICATE-----`,
    () => `https://t.example/open/${b64(address).replace(/=+$/, "")}/x.gif`,
    () => `https://t.example/?u=x${b64(`to:${address}`)}`,
    () => `see ${Buffer.from(address).toString("hex")}`,
    () => `/Author<${Buffer.from(`\ufeff${address}`, "utf16le").swap16().toString("hex").toUpperCase()}>`,
    () => `see ${Buffer.from(address, "utf16le").toString("base64")}`,
    () => uuencoded(`mail ${address}`),
    () => address.replace("@", "=40"),
    () => `{"mail":"${address.replace("@", "\\u0040")}"}`,
    () => `${address.slice(0, half)}\r\n${address.slice(half)}`,
    () => `> ${address.slice(0, half)} \r\n> ${address.slice(half)}`,
    () => `${FOREIGN.replace("@", "%40")} and <${FOREIGN}>`,
    () => `Cc: Y (y at y.example) <${FOREIGN.toUpperCase()}>`,
    () => FOREIGN.replace("@", "&#64;"),
    ...international(address).map((form) => () => form),
  ])();
}

function uuencoded(text: string): string {
  const bytes = Buffer.from(text.padEnd(45));
  let line = "M";
  for (let at = 0; at < bytes.length; at += 3) {
    const word = bytes.readUIntBE(at, 3);
    for (const shift of [18, 12, 6, 0]) line += String.fromCharCode(((word >> shift) & 63) + 32 || 96);
  }
  return `begin 644 a.txt\r\n${line.replaceAll(" ", "`")}\r\n\`\r\nend`;
}

/** An address of an international domain as people write it; none for other addresses. */
export function international(address: string): string[] {
  const [local = "", domain = ""] = address.split("@");
  const name = domainToUnicode(domain);
  if (name === domain) return [];
  const whole = `${local}@${name}`;
  return [
    whole,
    whole.toUpperCase(),
    whole.normalize("NFD"),
    whole.replace("ö", "&ouml;"),
    encodeURIComponent(whole),
    whole.replace(/\./g, "。"),
  ];
}
