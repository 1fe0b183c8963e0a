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
