// Reads hostile XML as a stream of leaves: the path of an element below <feedback> and its text. No DTD, no entities but
// the five of XML, no element or text that cannot be a report's. What is merely badly formed is read on, as the mail
// world's reporters need it; `defects` counts it.
import { SaxesParser } from "saxes";

const DEPTH_MAX = 20;
/** Without a tag, a comment or the like for this long it is no report. */
const SILENT_CHARS_MAX = 64 * 1024;
const TEXT_CHARS_MAX = 2_048;
const ATTRIBUTES_MAX = 100;
const DEFECTS_MAX = 1_000;
/**
 * Elements, comments and the like: a record has some 20, and 100 with the results of ten signatures. 100 KB of gzip can
 * hold 25,000,000 that stand for nothing, and each costs as much as one that does.
 */
const SIGNS_FREE = 10_000;
const SIGNS_PER_RECORD = 200;
const ROOT = "feedback";
/** An ampersand that begins no reference: XML takes all up to the next semicolon, tags as well, for its name. */
const BARE_AMPERSAND = /&(?!#?\w{1,32};)/g;
const MAY_BE_REFERENCE = /&#?\w{0,32}$/;
const REFERENCE_CHARS_MAX = 35;
/** Stands for a bare one while the parser has it, in a CDATA section too; no character of any text (Unicode §23.7). */
const AMPERSAND = "\ufdd0";

export type LeafHandler = {
  /** An element below the root opened; `path` such as `record/row`. */
  open(path: string): string | null;
  /** An element below the root closed; `text` is its own, trimmed and at most 2,048 characters. */
  close(path: string, text: string): string | null;
  /** How many records were worth reading so far. */
  records(): number;
};

export type XmlReader = {
  /** Takes bytes; a sentence is why the document is refused. */
  write(bytes: Buffer): string | null;
  end(): string | null;
  /** The root's namespace and what was badly formed. */
  seen(): { namespace: string; defects: number };
};

/** `path` is that below <feedback>; empty before and at it. */
type Level = { path: string; text: string };
type State = {
  levels: Level[];
  /** Where <feedback> is in `levels`; -1 before it. */
  root: number;
  found: boolean;
  closed: boolean;
  namespace: string;
  defects: number;
  bare_ampersands: number;
  refusal: string | null;
  last_sign: number;
  signs: number;
};

/** A reader for one document. */
export function createXmlReader(handler: LeafHandler): XmlReader {
  const state: State = {
    ...{ levels: [], root: -1, found: false, closed: false, namespace: "" },
    ...{ defects: 0, bare_ampersands: 0, refusal: null, last_sign: 0, signs: 0 },
  };
  const parser = createParser(state, handler);
  let decode: ((bytes?: Buffer) => string) | null = null;
  let begun = false;
  let held = "";
  const feed = (text: string, final = false): string | null => {
    const whole = held + text;
    // What may be the beginning of a reference waits for the rest of it.
    held = final ? "" : (MAY_BE_REFERENCE.exec(whole.slice(-REFERENCE_CHARS_MAX))?.[0] ?? "");
    const ready = markAmpersands(state, whole.slice(0, whole.length - held.length));
    const allowed = begun ? ready : ready.replace(/^[\ufeff\s]+/, "");
    if (allowed === "") return null;
    begun = true;
    // saxes stops at characters that XML forbids; reporters copy them out of mail. TextDecoder leaves no lone surrogates.
    parser.write(allowed.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd"));
    if (state.refusal === null && parser.position - state.last_sign > SILENT_CHARS_MAX) {
      state.refusal = "the report holds a text that is too long";
    }
    return state.refusal;
  };
  return {
    write(bytes) {
      if (state.refusal !== null) return state.refusal;
      decode ??= decoderFor(bytes);
      return feed(decode(bytes));
    },
    end() {
      if (state.refusal === null && decode) feed(decode(), true);
      if (state.refusal === null) parser.close();
      if (state.refusal !== null) return state.refusal;
      if (!state.found) return "this is no DMARC aggregate report: there is no <feedback>";
      return state.closed ? null : "the report is cut off";
    },
    seen: () => ({ namespace: state.namespace, defects: state.defects + state.bare_ampersands }),
  };
}

function markAmpersands(state: State, text: string): string {
  return text.replace(BARE_AMPERSAND, () => {
    state.bare_ampersands += 1;
    return AMPERSAND;
  });
}

function createParser(state: State, handler: LeafHandler): SaxesParser {
  const parser = new SaxesParser({ xmlns: false });
  const sign = () => {
    state.last_sign = parser.position;
  };
  const refuse = (reason: string | null) => {
    if (reason !== null) state.refusal ??= reason;
  };
  const count = () => {
    sign();
    state.signs += 1;
    const max = SIGNS_FREE + SIGNS_PER_RECORD * handler.records();
    if (state.signs > max) refuse("the report holds too much that is not a record");
  };
  let attributes = 0;
  parser.on("error", () => {
    state.defects += 1;
    if (state.defects > DEFECTS_MAX) refuse("this is not XML");
  });
  parser.on("doctype", () => refuse("the report has a document type, which reports have not"));
  parser.on("comment", count);
  parser.on("processinginstruction", count);
  parser.on("xmldecl", sign);
  parser.on("opentagstart", () => {
    count();
    attributes = 0;
  });
  parser.on("attribute", () => {
    attributes += 1;
    if (attributes > ATTRIBUTES_MAX) refuse("the report holds an element with too many attributes");
  });
  parser.on("opentag", ({ name, attributes: given }) => {
    sign();
    if (state.refusal === null) refuse(openLevel(state, handler, { name, namespace: String(given.xmlns ?? "") }));
  });
  parser.on("text", (text) => addText(state, text));
  parser.on("cdata", (text) => {
    count();
    addText(state, text);
  });
  parser.on("closetag", () => {
    sign();
    if (state.refusal === null) refuse(closeLevel(state, handler));
  });
  return parser;
}

function openLevel(state: State, handler: LeafHandler, tag: { name: string; namespace: string }): string | null {
  if (state.levels.length >= DEPTH_MAX) return `the report nests deeper than ${DEPTH_MAX} levels`;
  const name = localName(tag.name);
  if (state.root >= 0) {
    const parent = state.levels.at(-1)?.path ?? "";
    const path = parent === "" ? name : `${parent}/${name}`;
    state.levels.push({ path, text: "" });
    return handler.open(path);
  }
  state.levels.push({ path: "", text: "" });
  if (name === ROOT && !state.found) {
    state.root = state.levels.length - 1;
    state.found = true;
    state.namespace = tag.namespace.slice(0, 200);
  }
  return null;
}

function closeLevel(state: State, handler: LeafHandler): string | null {
  const level = state.levels.pop();
  if (state.levels.length === state.root) {
    state.root = -1;
    state.closed = true;
    return null;
  }
  return state.root < 0 || !level ? null : handler.close(level.path, level.text.trim());
}

function addText(state: State, text: string): void {
  const level = state.levels.at(-1);
  if (!level || level.text.length >= TEXT_CHARS_MAX) return;
  level.text += text.trimStart().slice(0, TEXT_CHARS_MAX).replaceAll(AMPERSAND, "&");
}

function localName(name: string): string {
  return name.slice(name.lastIndexOf(":") + 1).slice(0, 64);
}

// --- characters ---------------------------------------------------------------------------------------------------------

/** By byte order mark, else by the zeros of UTF-16 or the declaration, else UTF-8; bytes that are wrong in it become U+FFFD. */
function decoderFor(first: Buffer): (bytes?: Buffer) => string {
  const decoder = new TextDecoder(encodingOf(first));
  return (bytes) => (bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode());
}

function encodingOf(first: Buffer): string {
  if (first[0] === 0xff && first[1] === 0xfe) return "utf-16le";
  if (first[0] === 0xfe && first[1] === 0xff) return "utf-16be";
  const head = first.subarray(0, 200).toString("latin1");
  // XML 1.0 Appendix F: `<` and `?` or a letter, each with a zero.
  if (/^<\0[^\0]\0/.test(head)) return "utf-16le";
  if (/^\0<\0[^\0]/.test(head)) return "utf-16be";
  const declared = /^[^<]{0,3}\s*<\?xml[^>]*encoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(head)?.[1]?.toLowerCase();
  // A document whose declaration could be read byte by byte is not in UTF-16, whatever it says.
  return declared && ONE_BYTE.test(declared) ? declared : "utf-8";
}

/** The sets of one byte that TextDecoder has under these names (WHATWG Encoding §4.2); it throws at any other. */
const ONE_BYTE = /^(?:iso-8859-(?:[1-9]|1[013-6])|windows-(?:125[0-8]|874)|us-ascii|ascii|latin1|koi8-[ru])$/;
