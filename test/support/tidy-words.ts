// Words that a reader whose first language is not English reads twice, and the plain word for each (docs/style.md). Looked
// for in every text that people read: code, comments, documents and the dashboard.
import type { Violation } from "./tidy-rules.ts";

const PLAIN: readonly (readonly [word: RegExp, plain: string])[] = [
  [/\btold\b/i, "reported, printed, notified, distinguished"],
  [/\bheard\b/i, "received"],
  [/\banew\b/i, "again, from scratch"],
  [/\bput(?:s|ting)?(?: \S+){0,4} off\b/i, "deferred, delayed"],
  [/\bof ours\b/i, "Postern's"],
];

/** A docstring whose first sentence asks something: what stands between backticks may hold a `?` of its own. */
const QUESTION = /\/\*\*[\s*]*(?:[^.?`*]|\*(?!\/)|`[^`]*`)*\?(?=\s|\*)/g;
/** A docstring that belongs to a noun which it does not name: "Of one mail." */
const WITHOUT_NOUN = /\/\*\*[\s*]*Of .*/g;

/** A violation for every docstring that asks what it should say, or leaves out what it is about. Tests may be terse. */
export function checkDocstrings(texts: ReadonlyMap<string, string>): Violation[] {
  return [...texts].flatMap(([path, text]) => {
    if (path.includes("/generated/")) return [];
    const isProduct = !/^test\/|\.(?:test|fixture)\.ts$/.test(path);
    const found = [
      ...[...text.matchAll(QUESTION)].map((match) => ({
        match,
        message: 'asks; a docstring says what is so: "True if …"',
      })),
      ...(isProduct ? [...text.matchAll(WITHOUT_NOUN)] : []).map((match) => ({
        match,
        message: 'names no subject; "Of one mail" is "The most lines of one mail"',
      })),
    ];
    return found.map(({ match, message }) => ({
      ...{ rule: "words", path, line: text.slice(0, match.index).split("\n").length },
      message: `"${match[0].replace(/^[/\s*]+/, "")}" ${message}`,
    }));
  });
}

/** A violation for every line that holds such a word. */
export function checkWords(texts: ReadonlyMap<string, string>): Violation[] {
  return [...texts].flatMap(([path, text]) =>
    text.split("\n").flatMap((content, index) =>
      PLAIN.filter(([word]) => word.test(content)).map(([word, plain]) => ({
        ...{ rule: "words", path, line: index + 1 },
        message: `says "${word.exec(content)?.[0]}"; plainer: ${plain}`,
      })),
    ),
  );
}
