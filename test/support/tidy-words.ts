// Words that a reader whose first language is not English reads twice, and the plain word for each (docs/style.md). Looked
// for in every text that people read: code, comments, documents and the dashboard.
import type { Violation } from "./tidy-rules.ts";

const PLAIN: readonly (readonly [word: RegExp, plain: string])[] = [
  [/\btold\b/i, "reported, printed, notified, distinguished"],
  [/\bheard\b/i, "received"],
  [/\banew\b/i, "again, from scratch"],
  [/\bput(?:s|ting)? off\b/i, "deferred, delayed"],
  [/\bof ours\b/i, "Postern's"],
];

/** A docstring whose first sentence asks something: what stands between backticks may hold a `?` of its own. */
const QUESTION = /\/\*\*[\s*]*(?:[^.?`*]|\*(?!\/)|`[^`]*`)*\?(?=\s|\*)/g;

/** A violation for every docstring that asks what it should say: "Is it a day?" is "True for a day". */
export function checkQuestions(texts: ReadonlyMap<string, string>): Violation[] {
  const written = [...texts].filter(([path]) => !path.includes("/generated/"));
  return written.flatMap(([path, text]) =>
    [...text.matchAll(QUESTION)].map(({ 0: question, index }) => ({
      ...{ rule: "words", path, line: text.slice(0, index).split("\n").length },
      message: `asks "${question.replace(/^[/\s*]+/, "")}"; a docstring says what is so: "True if …"`,
    })),
  );
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
