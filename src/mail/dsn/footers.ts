// What gateways write below every mail that passes them, reports too: "scanned for viruses", "may be confidential". It is
// no word about the mail that came back, but stands behind the recipient's address like a reason. The texts are in
// footers.json, each with a reason; one that gives a code or says what became of a mail is no footer.

import { anyOf } from "../any-of.ts";
import footerTable from "./footers.json" with { type: "json" };

const footers = footerTable.map(({ match, unless }) => ({
  regexp: new RegExp(anyOf(match), "iu"),
  unless: new RegExp(anyOf(unless), "iu"),
}));

const paragraphCharsMax = 4_000;

/** The lines of a report without the paragraphs that are footers. Paragraphs end at empty lines, and at those of one sign. */
export function withoutFooters(lines: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < lines.length; ) {
    let end = at;
    while (end < lines.length && !isBetween(lines[end]!)) end += 1;
    const paragraph = lines.slice(at, end);
    if (paragraph.length > 0 && !isFooter(paragraph)) kept.push(...paragraph);
    if (end < lines.length) kept.push(lines[end]!);
    at = end + 1;
  }
  return kept;
}

function isBetween(line: string): boolean {
  return /^\s*$|^\s*([-_=*#~+])\1{7,}\s*$/.test(line);
}

function isFooter(paragraph: readonly string[]): boolean {
  const text = paragraph.join(" ").slice(0, paragraphCharsMax).replace(/\s+/g, " ");
  return footers.some(({ regexp, unless }) => regexp.test(text) && !unless.test(text));
}
