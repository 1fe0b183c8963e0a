// OpenPGP in the text of a mail (RFC 9580 §6.2, §7): a key names its owner in base64, a signature names the key, and
// key servers name the owner. Keys and signatures are cut out, signed text is unwrapped; an encrypted message is reported, since
// nobody can look into it. Certificates and other PEM stay: the leak gate decodes them.

/** `is_encrypted`: there is a message that only its recipient can read, not in a quote. */
export type Unarmored = { text: string; cut: number; is_encrypted: boolean };

/**
 * The first line of an armour of any kind, in any case, even glued to what stands before it: a mail program may have
 * joined the lines. Marks of quotes may stand behind.
 */
const BEGIN = /^([\s\S]*?)-{5}BEGIN PGP ([A-Z0-9 ,/]+)-{5}[\s>|]*$/iu;
const ENCRYPTED = /^MESSAGE(?:, PART .*)?$/;
const END = /^[\s>|]*-{5}END PGP [A-Z0-9 ,/]+-{5}[\s>|]*$/iu;
/** What stands in armor: fields, base64, a checksum, empty lines. */
const ARMORED = /^[\s>|]*(?:[A-Za-z]{2,20}: .*|[A-Za-z0-9+/=]{0,100})$/;
const MARKS_BEHIND = /(?<![\s>|])[\s>|]+$/;
const HASH = /^[\s>|]*(?:Hash|NotDashEscaped|SaltedHash): /i;

/** Plain text without armor. */
export function cutArmor(given: string): Unarmored {
  if (!/BEGIN PGP /i.test(given)) return { text: given, cut: 0, is_encrypted: false };
  const lines = given.replace(/\r(?!\n)/g, "\n").split("\n");
  const out: string[] = [];
  const found: Unarmored = { text: "", cut: 0, is_encrypted: false };
  let isSigned = false;
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as string;
    const [, before = "", label] = BEGIN.exec(line) ?? [];
    if (label === undefined) {
      out.push(isSigned ? line.replace(/^((?:[>|] ?)*)- /, "$1") : line);
      continue;
    }
    const kind = label.toUpperCase();
    const isGlued = /[^\s>|]/.test(before);
    if (isGlued) out.push(before);
    found.cut += 1;
    isSigned = kind === "SIGNED MESSAGE";
    const begin = at;
    at = isSigned ? behindHashes(lines, at) : endOfArmor(lines, at);
    // A sentence may end with these words.
    const isThere = !isGlued || lines.slice(begin + 1, at + 1).some((one) => /[A-Za-z0-9+/]{40}/.test(one));
    found.is_encrypted ||= ENCRYPTED.test(kind) && isThere && !/^[\s>|]*[>|]/.test(before);
  }
  return { ...found, text: out.join("\n") };
}

function behindHashes(lines: readonly string[], begin: number): number {
  let at = begin;
  while (HASH.test(lines[at + 1] ?? "")) at += 1;
  return /^[\s>|]*$/.test(lines[at + 1] ?? "x") ? at + 1 : at;
}

/** The last line of the armor: its END, or where it stops looking like armor. */
function endOfArmor(lines: readonly string[], begin: number): number {
  let at = begin;
  while (at + 1 < lines.length) {
    const next = lines[at + 1] as string;
    if (END.test(next)) return at + 1;
    if (!ARMORED.test(next.replace(MARKS_BEHIND, ""))) return at;
    at += 1;
  }
  return at;
}

const HTML_BEGIN =
  /-{5}BEGIN(?:\s|&nbsp;)+PGP(?:\s|&nbsp;)+((?:[A-Z0-9,/][A-Z0-9 ,/]*)?)-{5}(?:(?:\s|<br[^<>]{0,20}>|&nbsp;)*Hash: [A-Za-z0-9, ]{1,60})?/giu;
const HTML_END = /-{5}END(?:\s|&nbsp;)+PGP(?:\s|&nbsp;)+(?:[A-Z0-9,/][A-Z0-9 ,/]*)?-{5}/giu;

/** HTML without armor; tags within it stay, so that the document keeps its shape. What is disguised is left to the gate. */
export function cutHtmlArmor(html: string): Unarmored {
  const found: Unarmored = { text: "", cut: 0, is_encrypted: false };
  const ends = [...html.matchAll(HTML_END)].map((match) => match.index + match[0].length);
  let from = 0;
  let next = 0;
  for (const match of html.matchAll(HTML_BEGIN)) {
    if (match.index < from) continue;
    const kind = (match[1] as string).trim().toUpperCase();
    const behind = match.index + match[0].length;
    while (next < ends.length && (ends[next] as number) < behind) next += 1;
    const end = kind === "SIGNED MESSAGE" ? behind : (ends[next] ?? behind);
    found.text += html.slice(from, match.index) + (html.slice(behind, end).match(/<\/?[a-z!][^<>]*>/gi) ?? []).join("");
    found.cut += 1;
    found.is_encrypted ||= ENCRYPTED.test(kind);
    from = end;
  }
  return { ...found, text: found.text + html.slice(from) };
}
