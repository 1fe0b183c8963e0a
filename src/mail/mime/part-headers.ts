// Content-Type, Content-Disposition and Content-ID of an attachment.
// RFC 2045 §5 (types), RFC 2183 (disposition), RFC 2231 (parameters beyond ASCII and beyond a line), RFC 2392 (cid).
// It does not look into the content to find its type.

// 76 with the space before and the `;` behind a parameter.
const parameterMax = 74;
const token = "[A-Za-z0-9!#$%&'*+.^_`|~-]+";
const mediaType = new RegExp(`^(${token})/(${token})\\s*((?:;.*)?)$`, "s");
const parameter = new RegExp(
  `^;\\s*(${token})\\s*=\\s*(${token}|"(?:[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\x20-\\x7e])*")\\s*`,
);
const wholeToken = new RegExp(`^${token}$`);
const contentTypeCharsMax = 500;
const parametersMax = 10;

/** Extensions whose type we know when the customer names none. */
const typeOf: ReadonlyMap<string, string> = new Map([
  ["avif", "image/avif"],
  ["bmp", "image/bmp"],
  ["csv", "text/csv"],
  ["doc", "application/msword"],
  ["docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  ["eml", "message/rfc822"],
  ["gif", "image/gif"],
  ["gz", "application/gzip"],
  ["htm", "text/html"],
  ["html", "text/html"],
  ["ics", "text/calendar"],
  ["jpeg", "image/jpeg"],
  ["jpg", "image/jpeg"],
  ["json", "application/json"],
  ["md", "text/markdown"],
  ["mp3", "audio/mpeg"],
  ["mp4", "video/mp4"],
  ["odt", "application/vnd.oasis.opendocument.text"],
  ["pdf", "application/pdf"],
  ["png", "image/png"],
  ["ppt", "application/vnd.ms-powerpoint"],
  ["pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
  ["rtf", "application/rtf"],
  ["svg", "image/svg+xml"],
  ["tif", "image/tiff"],
  ["tiff", "image/tiff"],
  ["txt", "text/plain"],
  ["vcf", "text/vcard"],
  ["wav", "audio/wav"],
  ["webp", "image/webp"],
  ["xls", "application/vnd.ms-excel"],
  ["xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ["xml", "application/xml"],
  ["zip", "application/zip"],
]);

/** The media type that goes with a file's extension, `application/octet-stream` when unknown. */
export function typeFromFilename(filename: string): string {
  const extension = filename.slice(filename.lastIndexOf(".") + 1).toLowerCase();
  return typeOf.get(extension) ?? "application/octet-stream";
}

/**
 * Reads a media type with its parameters strictly and writes it again (`type/subtype; name=value`), type and parameter
 * names in lower case; null when it is not well formed ASCII or has more than 10 parameters. `name`, `boundary` and
 * every RFC 2231 form (with `*`) are dropped: the builder writes its own.
 */
export function normalizeContentType(text: string): string | null {
  if (text.length > contentTypeCharsMax) return null;
  const match = mediaType.exec(text.trim());
  if (match === null) return null;
  let out = `${match[1]}/${match[2]}`.toLowerCase();
  let rest = match[3]!;
  for (let count = 0; rest !== "" && !/^;\s*$/.test(rest); count++) {
    const found = parameter.exec(rest);
    if (found === null || count === parametersMax) return null;
    const name = found[1]!.toLowerCase();
    if (name !== "name" && name !== "boundary" && !name.includes("*")) out += `; ${name}=${found[2]}`;
    rest = rest.slice(found[0].length);
  }
  return out;
}

/** The inside of a Content-ID: angle brackets around are dropped; null when it is empty, not ASCII or not one word. */
export function normalizeContentId(text: string): string | null {
  const inner = text.startsWith("<") && text.endsWith(">") ? text.slice(1, -1) : text;
  return /^[\x21\x23-\x3b\x3d\x3f-\x5b\x5d-\x7e]{1,200}$/.test(inner) ? inner : null;
}

/**
 * A header line with one parameter that holds a file name, ended with CRLF, for example
 * `Content-Disposition: attachment;\r\n filename=report.pdf`. A name beyond ASCII or beyond a line is written twice: by
 * RFC 2231 and, behind it, as an ASCII fallback for readers that know only that.
 */
export function fileHeader(start: string, parameterName: string, filename: string): string {
  return `${start}${fileParameters(parameterName, filename)
    .map((text) => `;\r\n ${text}`)
    .join("")}\r\n`;
}

function fileParameters(name: string, filename: string): string[] {
  const plain = `${name}=${quoteValue(filename)}`;
  if (/^[\x20-\x7e]*$/.test(filename) && plain.length <= parameterMax && !filename.includes("=?")) return [plain];
  // The RFC 2231 form first: readers that take the first of two then take the true name (CPython's email does).
  return [...extendedParameter(name, filename), `${name}=${quoteValue(asciiFallback(filename))}`];
}

// RFC 2045 §5.1: a value that is not a token stands in quotes.
function quoteValue(value: string): string {
  return wholeToken.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

// RFC 2231 §4, and §3 for values longer than a line. A character is not split over two sections: not demanded, but
// some readers decode each by itself.
function extendedParameter(name: string, value: string): string[] {
  const characters = Array.from(value.toWellFormed(), percentEncode);
  const whole = `${name}*=UTF-8''${characters.join("")}`;
  if (whole.length <= parameterMax) return [whole];
  const sections: string[] = [];
  let section = `${name}*0*=UTF-8''`;
  for (const character of characters) {
    if (section.length + character.length > parameterMax) {
      sections.push(section);
      section = `${name}*${sections.length}*=`;
    }
    section += character;
  }
  return [...sections, section];
}

// RFC 2231 §7 attribute-char: what encodeURIComponent leaves, without `'`, `(`, `)` and `*`.
function percentEncode(character: string): string {
  return encodeURIComponent(character).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

// A line may be as long as this (RFC 5322 §2.1.1), and a shortened fallback would be a wrong name.
const fallbackCharsMax = 200;

// Accents off, everything else that is not ASCII to one `_`, the extension kept.
function asciiFallback(filename: string): string {
  const unaccented = filename.normalize("NFKD").replace(/\p{M}/gu, "");
  const ascii = unaccented
    .replace(/[^\x20-\x7e]+/gu, "_")
    .replaceAll("=?", "_")
    .slice(-fallbackCharsMax);
  return ascii.replace(/^[_ ]*(?=\.[A-Za-z0-9]+$|$)/, "attachment");
}
