// Addresses in the texts and fields of reports: RFC 3464 §2.3.1–2 (typed addresses), RFC 6533 §3 (utf-8), RFC 3461
// §4 (xtext), source routes (RFC 5321 §4.1.2). Reads tolerantly, returns addresses as they are written; whether one is
// a valid address of ours is not decided here.

// RFC 5321 §4.5.3.1.3; old gateways (X.400, cc:Mail) write local parts beyond 64 octets.
const localCharsMax = 128;
const domainCharsMax = 255;

const localChar = `[^\\s<>()\\[\\]:;,"@\\\\|\\x00-\\x1f]`;
const domainChar = `[^\\s<>()\\[\\]:;,"'@\\\\|\\x00-\\x1f!?*=]`;
const quotedLocal = `"(?:[^"\\\\\\n]|\\\\.){1,128}"`;
/** Source of a pattern for one address, without groups. */
export const addressSource = `(?:${localChar}{1,${localCharsMax}}|${quotedLocal})@${domainChar}{1,${domainCharsMax}}`;

const addressForm = new RegExp(`^${addressSource}$`, "u");

/** Makes an address of what a pattern found: trailing dots off; null when it is none, or shortened as `david...@`. */
export function cleanAddress(found: string): string | null {
  const address = found
    .trim()
    .replace(/^'+/, "")
    .replace(/[.'-]+$/, "");
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
  const bare = candidate.replace(/^(?:smtp|mailto|rfc822)[:=;]\s*/i, "").replace(/\s*\([^()]{0,500}\)\s*$/, "");
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
