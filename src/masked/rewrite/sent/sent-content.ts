// What a contact sent comes back to it as it was sent. A scrubber that changes a contact's own words where they name the
// owner's mailbox answers any guess: so on the way in the mailbox becomes a token there, a reverse address with its spelling
// in a tag, and on the way out tokens become what stood there, after everything else was scrubbed and searched. What mail
// programs fetch (addresses of pictures and pages) cannot be changed on the way in, because the fetch would tell: it stays,
// and a keyed digest of each such string is what lets it out again. A bare address is never let out so: only a token is.
import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { decodeEntities } from "../../../mail/mime/html-entities.ts";
import { encodedReadings, holdsRun, type Readings } from "../gate/encoded-readings.ts";
import { findLeaks, type Secrets } from "../gate/leak-gate.ts";
import { mayHoldPieces, needlesOf, octetsMayHold, piecesOf } from "../gate/needles.ts";
import { hiddenForms } from "../hidden-forms.ts";
import { exchangeLinked } from "../mailto-links.ts";
import { letterOf, withPlainLetters } from "../scrub/entity-names.ts";
import { withoutCommentsInTags } from "../scrub/html-markup.ts";
import {
  createExchanger,
  createReplacer,
  type Exchange,
  type Replaced,
  type Replacer,
} from "../scrub/replace-addresses.ts";
import { linkForms } from "../scrub/rewritten-links.ts";
import { isSameMailbox } from "../spellings.ts";
import { knownAs, linesOf, normalLine, replaceLines, replaceWords } from "./known-lines.ts";
import { brokenIn, gluedIn, isFetched, replaceOpaque, SCHEME } from "./opaque-strings.ts";
import { BLANK, createShelf, type Shelf, unusedIn } from "./shelf.ts";
import { besideName, joinedToken, spelledIn, type Token, tokenFor, tokenReader, withSeparator } from "./tokens.ts";
import { createJoiner, lineDigests } from "./wrapped-lines.ts";

/**
 * What the reader of a reply has sent so far: digests of strings, and the tokens that may stand for parts of it; `linked` are
 * those of correspondents, for whom links stand (mailto-links.ts).
 */
export type SentContent = {
  key: string;
  digests: readonly string[];
  tokens: readonly Token[];
  linked?: readonly Token[];
};

/** What a string is known by, under the key of its alias. */
function sentDigest(key: string, text: string): string {
  return createHmac("sha256", keyOf(key)).update(text).digest().toString("base64url", 0, 16);
}

/**
 * The key of the alias whose mail is written now. Given a key's bytes, Node makes an object of them for each digest: 23
 * of 29 µs.
 */
let last: { hex: string; key: KeyObject } | null = null;

function keyOf(hex: string): KeyObject {
  if (last?.hex !== hex) last = { hex, key: createSecretKey(hex, "hex") };
  return last.key;
}

/** The digest by which a token is let out for whom this spelling came from. */
export function tokenDigest(key: string, spelled: string): string {
  return sentDigest(key, `token ${spelled}`);
}

/** The digest by which it is known that somebody named a mailbox among the people of a mail. */
export function personDigest(key: string, email: string): string {
  return sentDigest(key, `person ${email}`);
}

/** The digest by which a card or a calendar of a contact is known (calendar/sent-objects.ts). */
export function objectDigest(key: string, mark: string): string {
  return sentDigest(key, `object ${mark}`);
}

/** Writes tokens into what a contact sent; `digests` are those of all that must come back. */
export type ContentHider = Replacer & {
  /** Writes tokens into a Message-ID, which no program breaks into lines. */
  id(text: string): Replaced;
  /** Writes tokens into a field of a head, in which the gate reads what stands on both sides of a blank as one. */
  field(text: string): Replaced;
  /** Writes tokens into an attached file, which stays as it is otherwise. */
  file(text: string): Replaced;
  /** Remembers cards and calendars, as the mailbox gets them. */
  noteObjects(marks: readonly string[]): void;
  digests: ReadonlySet<string>;
  /** Those of whom links name, and of cards and calendars: they are kept whatever else the mail holds. */
  linked: ReadonlySet<string>;
  /** Those of lines that a program may break (wrapped-lines.ts): they are the same, whatever was guessed. */
  lines: ReadonlySet<string>;
};

/** A hider of these mailboxes; `linked` stand for whom links to write a mail name (mailto-links.ts). */
export function createHider(tokens: readonly Token[], key: string, linked: readonly Token[] = []): ContentHider {
  const digests = new Set<string>();
  const forms = tokens.flatMap(formsOf);
  const found = createReplacer(forms.map(({ from, token }) => ({ from, to: token.reverse })));
  const lowered = forms.map(({ from }) => from.normalize("NFKC").toLowerCase());
  const [needles, pieces] = [needlesOf(lowered), piecesOf(lowered)];
  const reads = (text: string) => octetsMayHold(text, needles) && found.name(text.replaceAll("\0", "")).count > 0;
  // What cannot be read to its end comes back as well, whatever it holds: the gate would hold it.
  const isReadAs = ({ texts, isCut }: Readings) => isCut || texts.some(({ text }) => reads(text));
  const holds = remembered((text) => found.name(text).count > 0 || isReadAs(encodedReadings(text)));
  const isBare = (text: string) => text.includes("@") && isTokenAlone(found.text(text).text, tokens);
  const gate = { addresses: forms.map(({ from }) => from), names: [], allowed: "nothing" as const, given: [] };
  const inPages = exchanging(forms, { key, digests, inFile: false });
  const inFiles = exchanging(forms, { key, digests, inFile: true });
  const isKept = keptForms({ key, digests, holds, isBare });
  const hide = (source: string, isHtml: boolean, run: (text: string) => Replaced, by = inPages) => {
    if (!isHtml && holdsNone(source, pieces)) return { text: source, count: 0 };
    const shelf = createShelf(unusedIn(source));
    const opaque: string[] = [];
    let kept = replaceOpaque(source, isHtml, (text, plain) => {
      opaque.push(plain, ...linkForms(plain));
      return isFetched(text) ? shelf.put(text) : text;
    });
    const glued = isHtml ? gluedIn(source).filter((text) => !opaque.includes(text)) : [];
    const broken = brokenIn(kept).map(shelf.take);
    // All at once first: most mail has many links and the mailbox in none.
    const isAnyHeld = holds([...opaque, ...glued, ...broken].join("\x01"));
    if (isAnyHeld) {
      glued.forEach(isKept);
      kept = replaceOpaque(source, isHtml, (text, plain) =>
        isKept(plain) || isFetched(text) ? shelf.put(text) : text,
      );
    }
    by.asked.any = false;
    const { text, count } = run(kept);
    const hidden = count === 0 ? source : shelf.take(text);
    // What the exchanger was not asked about does not stand there.
    const bare = by.asked.any ? by.blank[isHtml ? "html" : "text"](kept).text : kept;
    const isFile = by === inFiles;
    const isBroken = isAnyHeld && broken.some(holds);
    const left = isBroken ? linesOf(shelf.take(bare), isHtml, isFile) : leftIn(bare, isHtml, { shelf, gate, isFile });
    for (const piece of left) if (!isBare(piece)) digests.add(sentDigest(key, piece));
    return { text: hidden, count };
  };
  const lines = new Set<string>();
  const noted = notingLines(key, lines);
  const linkDigests = new Set<string>();
  const link = createLinker({ tokens, linked, key, digests: linkDigests });
  const text = remembered((source: string) => noted(source, false, hide(source, false, inPages.exchanger.text)));
  const field = (source: string) => {
    const isFound = !holdsNone(source.replace(/\s+/g, ""), pieces) && isFoundInField(text(source).text, gate);
    if (isFound) digests.add(sentDigest(key, normalLine(inPages.blank.text(source).text)));
    return text(source);
  };
  return {
    digests,
    linked: linkDigests,
    lines,
    noteObjects: notingObjects(key, linkDigests),
    text,
    field,
    html: remembered((given) => {
      const source = withPlainLetters(withoutCommentsInTags(given)).replace(BASE, "");
      return noted(source, true, link(source, hide(source, true, inPages.exchanger.html)));
    }),
    id: remembered((source) => hideId(source, (bare) => hide(bare, false, inPages.exchanger.text))),
    file: remembered((source) => hide(source, true, inFiles.exchanger.html, inFiles)),
    name: remembered((source) => hideName(source, inPages.exchanger.name(source), { key, gate, digests })),
  };
}

/** True if it is nothing but a token. A mailbox alone is let out for nobody: the author's own would be. */
function isTokenAlone(text: string, tokens: readonly Token[]): boolean {
  return tokens.some(({ reverse }) => text.includes(reverse) && !/[\p{L}\p{N}]/u.test(text.replaceAll(reverse, "")));
}

type Form = { from: string; token: Token };

/**
 * Puts tokens in, or a blank; `asked` says whether there was any place for one. References are undone in pages alone: in a file
 * they come back as they were, by the digest of their word.
 */
function exchanging(
  forms: readonly Form[],
  { key, digests, inFile }: { key: string; digests: Set<string>; inFile: boolean },
) {
  const asked = { any: false };
  const isLeft = (units: readonly string[]) => inFile && units.some((unit) => unit.startsWith("&"));
  const tokens = forms.map(({ from, token }): Exchange => {
    const write: Exchange["write"] = (units, { isHtml }) => {
      if (isLeft(units)) return null;
      asked.any = true;
      const spelled = units.map((unit) => (isHtml && unit.startsWith("&") ? letterOf(unit) : unit)).join("");
      const address = tokenFor(token, spelled);
      if (address === null) return null;
      digests.add(tokenDigest(key, spelled));
      return [...address];
    };
    return { from, anywhere: false, write, comesBack: true };
  });
  const blanks = forms.map(({ from }): Exchange => {
    return { from, anywhere: false, write: (units) => (isLeft(units) ? null : [BLANK]) };
  });
  return { exchanger: createExchanger(tokens), blank: createExchanger(blanks), asked };
}

type Keep = { key: string; digests: Set<string>; holds(text: string): boolean; isBare(text: string): boolean };

/** True for a string that holds a mailbox and must come back as it is: its forms are remembered. */
function keptForms({ key, digests, holds, isBare }: Keep) {
  return (plain: string): boolean => {
    const forms = [plain, ...linkForms(plain), plain.replace(SCHEME, "")];
    if (!forms.some(holds)) return false;
    for (const form of forms) if (!isBare(form)) digests.add(sentDigest(key, form));
    return true;
  };
}

/** Every form of a mailbox that stands for it, with its token. */
function formsOf(token: Token): Form[] {
  const all = hiddenForms([{ from: token.email, to: token.reverse }], []);
  return all.flatMap(({ from, to }) => (to === "" ? [] : [{ from, token }]));
}

type Linking = { tokens: readonly Token[]; linked: readonly Token[]; key: string; digests: Set<string> };

/**
 * Writes tokens into links. Whom a link names is a correspondent from then on, whose words are undone wherever they stand: so
 * is a mailbox that a link names, or the words would tell which it was.
 */
function createLinker({ tokens, linked, key, digests }: Linking) {
  const known = new Map(linked.map((token) => [token.email.toLowerCase(), token]));
  return (source: string, hidden: Replaced): Replaced => {
    exchangeLinked(source, (email) => {
      const owner = tokens.find((token) => isSameMailbox(token.email, email));
      if (owner) digests.add(personDigest(key, owner.email));
      return null;
    });
    if (known.size === 0) return hidden;
    const { text, count } = exchangeLinked(hidden.text, (email, spelled) => {
      const token = known.get(email);
      const address = token ? tokenFor(token, spelled) : null;
      if (address !== null) digests.add(tokenDigest(key, spelled));
      return address;
    });
    return { text, count: hidden.count + count };
  };
}

/** Remembers cards and calendars. */
function notingObjects(key: string, digests: Set<string>) {
  return (marks: readonly string[]): void => {
    for (const mark of marks) digests.add(objectDigest(key, mark));
  };
}

/** Remembers the lines of a text. */
function notingLines(key: string, lines: Set<string>) {
  return (source: string, isHtml: boolean, hidden: Replaced): Replaced => {
    for (const digest of lineDigests(key, source, isHtml)) lines.add(digest);
    return hidden;
  };
}

/** Its angle brackets are the mark of HTML elsewhere, and would have every id searched as closely as a page. */
function hideId(id: string, hide: (text: string) => Replaced): Replaced {
  const [, bare] = /^<([^<>]*)>$/.exec(id) ?? [];
  if (bare === undefined) return hide(id);
  const { text, count } = hide(bare);
  return { text: `<${text}>`, count };
}

type Naming = { key: string; gate: Secrets; digests: Set<string> };

/** A name of a file; one that has no room for tokens, and one in which the gate alone reads anything, is known as a whole. */
function hideName(source: string, { text, count }: Replaced, { key, gate, digests }: Naming): Replaced {
  const isLong = count > 0 && text.length > NAME_CHARS_MAX;
  const left = isLong ? source : text;
  if (isLong || isNamedIn(left, gate)) digests.add(nameDigest(key, source));
  return isLong ? { text: source, count: 0 } : { text, count };
}

/** Longer names are cut on their way. */
const NAME_CHARS_MAX = 150;

/** The digest of a name of a file, which is let out in the place of such a name alone. */
function nameDigest(key: string, name: string): string {
  return sentDigest(key, `name ${normalLine(name)}`);
}

/** A mail goes to each mailbox, with the same texts and the same links many times. */
function remembered<T>(find: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const now = find(text);
    known.set(text, now);
    return now;
  };
}

const SIGNS_OF_CODES = /[^\x01-\x7f]|[<&%\\]|=(?:[0-9a-f]{2}|\r?\n|[y?])|\bbegin[ -]/i;

/** In a text without any of these signs only letters side by side are read as an address. */
function holdsNone(text: string, pieces: ReturnType<typeof piecesOf>): boolean {
  return !SIGNS_OF_CODES.test(text) && !holdsRun(text) && !mayHoldPieces(text.toLowerCase(), pieces);
}

/** It makes links of what is none. */
const BASE = /<base\b[^<>]*>/gi;

/** The spellings behind the tokens in a Message-ID, from every sender. */
export function withoutTokens(tokens: readonly Token[]): (text: string) => string {
  const exchanger = createExchanger(tokens.map((token) => tokenReader(token, () => true, null)));
  return (text) => exchanger.text(text).text;
}

/** `others` puts in what stands for other people. `taken`: nothing is left in the place of what was sent, for who looks for the rest. */
export type Keeping = {
  sent: SentContent;
  restored: readonly Exchange[];
  seed: string;
  taken: boolean;
  others: Replacer;
};

/** A replacer that leaves what was sent as it is. */
export function keepingSent(replacer: Replacer, { sent, restored, seed, taken, others }: Keeping): Replacer {
  const digests = new Set(sent.digests);
  if (digests.size === 0 && restored.length === 0) return replacer;
  const isSent = (spelled: string) => digests.has(tokenDigest(sent.key, spelled));
  const isKnown = (plain: string) => digests.has(sentDigest(sent.key, plain));
  const isAlone = (plain: string) => {
    const letters = plain.replace(/^[^\p{L}\p{N}]+|(?<![^\p{L}\p{N}])[^\p{L}\p{N}]+$/gu, "").toLowerCase();
    return sent.tokens.some(({ email }) => letters === email.toLowerCase());
  };
  const isSpelled = (piece: string, plain: string) =>
    (isKnown(normalLine(plain)) && !isAlone(plain)) || (piece.includes("&") && isKnown(knownAs(piece, plain, true)));
  const readers = [...sent.tokens, ...(sent.linked ?? [])].flatMap((token) => [
    besideName(token, isSent, seed),
    tokenReader(token, isSent, seed),
  ]);
  const run = (source: string, isHtml: boolean, kind: keyof Replacer): Replaced => {
    const shelf = createShelf(seed);
    // What a picture is fetched from stands so in the text that Outlook and others make of HTML.
    const inBrackets = (word: string) =>
      word.replace(/(?<=\[)[^[\]]+(?=\])/g, (one) =>
        isKnown(isHtml ? decodeEntities(one) : one) ? shelf.put(one) : one,
      );
    const exchanger = createExchanger(
      [...readers, ...restored].map((one) => ({ ...one, write: shelved(one.write, shelf) })),
    );
    const exchanged = exchanger[kind](source);
    if (kind === "name" && digests.has(nameDigest(sent.key, shelf.take(exchanged.text)))) {
      return { text: taken ? "" : shelf.take(exchanged.text), count: exchanged.count };
    }
    const whole = replaceLines(exchanged.text, isHtml, (line, plain) =>
      isSpelled(shelf.clear(line), shelf.clear(plain)) ? shelf.put(others[kind](line).text) : line,
    );
    const words =
      digests.size === 0
        ? whole
        : replaceWords(whole, isHtml, (word, plain) => (isSpelled(word, plain) ? shelf.put(word) : inBrackets(word)));
    const kept = replaceOpaque(words, isHtml, (text, plain) => (isKnown(plain) ? shelf.put(text) : text));
    const { text, count, ...of } = replacer[kind](kept);
    return { text: taken ? shelf.clear(text) : shelf.take(text), count: count + exchanged.count, ...of };
  };
  return {
    text: (source) => run(source, false, "text"),
    html: (source) => run(source, true, "html"),
    name: (source) => run(source, false, "name"),
  };
}

/**
 * Writes a quoted text in the lines in which it was sent (wrapped-lines.ts), whatever stands for a mailbox in it; tokens stay.
 * `seed`: letters and digits that no text has.
 */
export function rejoining(
  { key, digests, tokens, linked = [] }: SentContent,
  seed: string,
): (text: string, isHtml: boolean) => string {
  const joiner = createJoiner(key, digests);
  if (joiner === null) return (text) => text;
  const known = new Set(digests);
  return (source, isHtml) => {
    // The letters of a token as they stand, and with the same marks what each of them reads as.
    const [units, letters] = [createShelf(seed), createShelf(seed)];
    const exchanges = [...tokens, ...linked].map((token): Exchange => {
      const isSent = (spelled: string) => known.has(tokenDigest(key, spelled));
      const write: Exchange["write"] = (given) => {
        const spelled = spelledIn(token, given, { isHtml, isSent, seed });
        if (spelled === null) return null;
        // Its words have gaps as all others have.
        const joined = isHtml ? spelled.replace(/\s+/g, " ") : joiner(spelled, false, (text) => text);
        const written = joined === spelled ? given : [...joinedToken(token, joined, seed)];
        const read = [...joined];
        const last = written.length - 1;
        return written.map((unit, at) => {
          letters.put(at === last ? read.slice(last).join("") : (read[at] ?? ""));
          return units.put(unit);
        });
      };
      return { from: token.reverse, anywhere: true, write };
    });
    const { text } = createExchanger(exchanges)[isHtml ? "html" : "text"](source);
    const plain = (piece: string) => letters.take(isHtml ? decodeEntities(piece) : piece);
    return units.take(joiner(text, isHtml, plain));
  };
}

/** What a telling address is written for its reverse address, in its letters. */
export function restoring(reverse: string, email: string): Exchange {
  return { from: reverse, anywhere: true, write: (units) => withSeparator(units, email) };
}

function shelved(write: Exchange["write"], shelf: Shelf): Exchange["write"] {
  return (units, within) => write(units, within)?.map((unit) => shelf.put(unit)) ?? null;
}

// --- strings that stay as they are ------------------------------------------------------------------------------------------

/** For the gate no more than a blank's place: part of no word, code or joint. ASCII, because it reads all other text twice. */
const INERT = "*";
/** Anybody's reverse address, which is looked for elsewhere. */
const REVERSE = /r\.[a-z2-7]{26}/gi;
const TOKEN = /r\.[a-z2-7]{26}(?:\+[a-z2-7]*)?@/gi;

/** True if the leak gate would find anything in a text that holds these lines. */
function isFoundIn(text: string, isHtml: boolean, secrets: Secrets): boolean {
  const head = `Content-Type: text/${isHtml ? "html" : "plain"}; charset=utf-8\r\n\r\n`;
  const plain = text.replace(REVERSE, BLANK).replaceAll(BLANK, INERT);
  return findLeaks(Buffer.from(head + plain), secrets).length > 0;
}

/** True if the leak gate would find anything in this value of a field. */
function isFoundInField(value: string, secrets: Secrets): boolean {
  const plain = value.replace(TOKEN, INERT).replace(/[\r\n]+/g, " ");
  return findLeaks(Buffer.from(`Subject: ${plain}\r\n\r\n`), secrets).length > 0;
}

/** True if the leak gate would find anything in the name of a file. */
function isNamedIn(name: string, secrets: Secrets): boolean {
  const plain = name.replace(REVERSE, INERT).replace(/["\\\r\n]/g, INERT);
  const head = `Content-Type: text/plain\r\nContent-Disposition: attachment; filename="${plain}"\r\n\r\n`;
  return findLeaks(Buffer.from(head), secrets).length > 0;
}

type Left = { shelf: Shelf; gate: Secrets; isFile: boolean };

/** The words, and where that is not enough the lines, in which the gate would find what nothing here did. */
function leftIn(source: string, isHtml: boolean, { shelf, gate, isFile }: Left): string[] {
  const isLeft = (text: string) => isFoundIn(shelf.clear(text), isHtml, gate);
  const asText = (text: string) => decodeEntities(isHtml ? text.replace(/<[^<>]*>/g, "\n") : text);
  if (!isLeft(source) && !(isHtml && isFoundIn(asText(shelf.clear(source)), false, gate))) return [];
  const pieces: string[] = [];
  const rest = replaceWords(source, isHtml, (word, plain) => {
    if (!isFoundIn(shelf.clear(plain), false, gate)) return word;
    pieces.push(knownAs(word, plain, isFile));
    return "";
  });
  if (!isLeft(rest) && !(isHtml && isFoundIn(asText(shelf.clear(rest)), false, gate))) return pieces;
  return [...pieces, ...linesOf(shelf.take(source), isHtml, isFile)];
}
