// Addresses in the texts and fields of reports: RFC 3464 §2.3.1–2 (typed addresses), RFC 6533 §3 (utf-8), RFC 3461
// §4 (xtext), source routes (RFC 5321 §4.1.2). Reads tolerantly, returns addresses as they are written; whether one is
// one of our valid addresses is not decided here.

// RFC 5321 §4.5.3.1.3; old gateways (X.400, cc:Mail) write local parts beyond 64 octets.
const localCharsMax = 128;
const domainCharsMax = 255;

const notLocal = `\\s<>()\\[\\]:;,"@\\\\|\\x00-\\x1f`;
const notDomain = `${notLocal}'!?*=`;
const quotedLocal = `"(?:[^"\\\\\\n]|\\\\.){1,128}"`;
// Punctuation beyond ASCII: quotes, dashes, and what Chinese and Japanese texts, which have no spaces, set around an
// address. In a field of its own an address may hold it (RFC 6532 §3.2).
const textMarks =
  "\\u00ab\\u00bb\\u2010-\\u2027\\u2030-\\u205e\\u3001-\\u3003\\u3008-\\u3020\\u3030\\u303d\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65";
const domainChar = `[^${notDomain}${textMarks}]`;
// "user@example.jp様宛": no top-level domain begins in ASCII and goes on in letters that are not Latin.
const gluedWord = `(?<=\\.[A-Za-z]{2,63})(?=(?!\\p{Script=Latin})\\p{L}(?!${domainChar}{0,${domainCharsMax}}\\.${domainChar}))`;
/** Source of a pattern for one address in a text, without groups. */
export const addressSource = `(?:[^${notLocal}${textMarks}]{1,${localCharsMax}}|${quotedLocal})@(?:${domainChar}{3,${domainCharsMax}}${gluedWord}|${domainChar}{1,${domainCharsMax}})`;
/** Source of what ends an address besides ASCII: a mark, or a word that stands against it. */
export const foreignEnd = `[${textMarks}]|${gluedWord}`;
/** Such marks that open a quotation or a bracket. */
export const foreignOpening = "«‹‘‚“„「『【〔《〈〖（［｛";

const addressForm = new RegExp(
  `^(?:[^${notLocal}]{1,${localCharsMax}}|${quotedLocal})@[^${notDomain}]{1,${domainCharsMax}}$`,
  "u",
);

/** Makes an address of what a pattern found: trailing dots off; null when it is none, or shortened as `david...@`. */
export function cleanAddress(found: string): string | null {
  const address = found
    .trim()
    .replace(/^'+/, "")
    .replace(/(?<![.'-])[.'-]+$/, "");
  if (address.length > localCharsMax + domainCharsMax || !addressForm.test(address)) return null;
  const at = address.lastIndexOf("@");
  const isCut = found.trim().endsWith("...") && !address.slice(at).includes(".");
  const isShortened = isCut || address.startsWith("...") || address.slice(0, at).endsWith("...");
  // A host alone ("root@localhost") is an address; what has neither letter nor digit is not.
  return isShortened || !/[\p{L}\p{N}]/u.test(address.slice(at)) ? null : address;
}

/** The address in a typed field (`rfc822; user@example.com`); null when it names a local part, a program or nothing. */
export function typedAddress(value: string): string | null {
  const semicolon = value.indexOf(";");
  const type = semicolon === -1 ? "" : value.slice(0, semicolon).trim().toLowerCase();
  const text = (semicolon === -1 ? value : value.slice(semicolon + 1)).slice(0, 2_000).trim();
  const plain = type === "utf-8" ? decodeUtf8Address(text) : text;
  return addressIn(plain) ?? addressIn(decodeXtext(plain));
}

/** The one address in a short text: in angle brackets, or bare, with comments and a source route taken off. */
export function addressIn(text: string): string | null {
  const angle = /<([^<>]{1,600})>/.exec(text)?.[1];
  // RFC 5321 §4.1.2: @a.example,@b.example:user@example.com
  const candidate = (angle ?? text).trim().replace(/^(?:@[^\s:@]{1,255}[,:])+/, "");
  const bare = candidate.replace(/^(?:smtp|mailto|rfc822)[:=;]\s*/i, "").replace(/(?<!\s)\s*\([^()]{0,500}\)\s*$/, "");
  const whole = cleanAddress(bare.replace(/^"([^"@]+@[^"@]+)"$/, "$1"));
  if (whole !== null) return whole;
  const found = anyAddress.exec(bare)?.[0];
  return found === undefined ? null : cleanAddress(found);
}

const anyAddress = new RegExp(addressSource, "u");

// RFC 6533 §3: \x{HEXPOINT} in utf-8-addr-xtext and utf-8-addr-unitext.
function decodeUtf8Address(text: string): string {
  return text.replace(/\\x\{([0-9A-Fa-f]{2,6})\}/g, (whole, hex: string) => {
    const point = Number.parseInt(hex, 16);
    return point > 0x20 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)
      ? String.fromCodePoint(point)
      : whole;
  });
}

// RFC 3461 §4: +40 is "@". Only tried where there is no address without it: "+40" is also a subaddress.
function decodeXtext(text: string): string {
  return text.replace(/\+([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
