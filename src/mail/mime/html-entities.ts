// Character references of HTML, as far as mail uses them: all numeric ones and the named ones of Latin-1, punctuation
// and the common symbols (HTML Living Standard §13.5 has 2,231; the rest stays as written).

const named: ReadonlyMap<string, string> = new Map(
  Object.entries({
    amp: "&",
    apos: "'",
    gt: ">",
    lt: "<",
    quot: '"',
    bull: "•",
    dagger: "†",
    euro: "€",
    hellip: "…",
    larr: "←",
    ldquo: "“",
    lsaquo: "‹",
    lsquo: "‘",
    mdash: "—",
    ndash: "–",
    permil: "‰",
    rarr: "→",
    rdquo: "”",
    rsaquo: "›",
    rsquo: "’",
    sbquo: "‚",
    bdquo: "„",
    trade: "™",
    check: "✓",
    star: "☆",
    starf: "★",
    hearts: "♥",
    minus: "−",
    infin: "∞",
    ne: "≠",
    le: "≤",
    ge: "≥",
    ensp: "\u2002",
    emsp: "\u2003",
    thinsp: "\u2009",
    zwnj: "\u200c",
    zwj: "\u200d",
    lrm: "\u200e",
    rlm: "\u200f",
    OElig: "Œ",
    oelig: "œ",
    Scaron: "Š",
    scaron: "š",
    Yuml: "Ÿ",
    fnof: "ƒ",
    circ: "ˆ",
    tilde: "˜",
  }),
);

// U+00A0 to U+00FF in order.
const latin1Names = (
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave " +
  "Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc " +
  "Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc " +
  "iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml"
).split(" ");
const latin1: ReadonlyMap<string, string> = new Map(
  latin1Names.map((name, index) => [name, String.fromCharCode(0xa0 + index)]),
);

// Writers who took windows-1252 for Unicode: HTML maps these numbers (Living Standard §13.2.5.80); five stand for nothing.
const windows1252 = Array.from("€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ");

/** Replaces character references; unknown names stay as written, numbers that are no character become U+FFFD. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z][a-z0-9]{1,9}));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return named.get(name) ?? latin1.get(name) ?? whole;
    return fromCodePoint(hex === undefined ? Number.parseInt(decimal, 10) : Number.parseInt(hex, 16));
  });
}

function fromCodePoint(code: number): string {
  if (code >= 0x80 && code <= 0x9f) return windows1252[code - 0x80]!;
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : "\ufffd";
}
