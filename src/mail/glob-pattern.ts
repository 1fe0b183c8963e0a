// Customers' patterns on one short text, such as a recipient's address: a glob (`*` any run, `?` one character), or `re:`
// and an RE2 expression. Both take time linear in the text for a given pattern; a backtracking engine is never used.
// Compared without regard to case. Not here: what is matched against them.
import { RE2JS } from "re2js";

/** `size`: instructions of the expression, each of which a match may take once for every character; 0 for a glob. */
export type Pattern = { matches(text: string): boolean; size: number };
export type CompiledPattern = { kind: "pattern"; pattern: Pattern } | { kind: "problem"; problem: string };

const PATTERN_LENGTH_MAX = 256;
/** Longer texts match nothing: the longest address has 320 octets. */
const TEXT_LENGTH_MAX = 2_048;
/** Instructions of the compiled expression. `[a-z]{1,64}@[a-z.]{1,255}` has 640; worst match at this size: 80 ms. */
const PROGRAM_SIZE_MAX = 2_000;

/**
 * Compiles a pattern, or says in a sentence fragment what is wrong with it. A glob matches the whole text; an expression
 * matches anywhere in it unless it has `^` and `$`, as RE2 does.
 */
export function compilePattern(text: string): CompiledPattern {
  if (text === "") return { kind: "problem", problem: "must not be empty" };
  if (text.length > PATTERN_LENGTH_MAX) {
    return { kind: "problem", problem: `must have at most ${PATTERN_LENGTH_MAX} characters` };
  }
  if (!text.startsWith("re:")) return { kind: "pattern", pattern: compileGlob(text) };
  return compileExpression(text.slice(3));
}

function compileExpression(source: string): CompiledPattern {
  if (source === "") return { kind: "problem", problem: "must have an expression after 're:'" };
  try {
    const expression = RE2JS.compile(source, RE2JS.CASE_INSENSITIVE);
    const size = expression.programSize();
    if (size > PROGRAM_SIZE_MAX) {
      return { kind: "problem", problem: "is too large once its repetitions are written out" };
    }
    return {
      kind: "pattern",
      pattern: { size, matches: (text) => text.length <= TEXT_LENGTH_MAX && expression.test(text) },
    };
  } catch (error) {
    const { name, message } = error as Error;
    if (!name.startsWith("RE2JS")) throw error;
    return { kind: "problem", problem: `is not a valid RE2 expression (${message.slice(0, 200)})` };
  }
}

function compileGlob(glob: string): Pattern {
  const wanted = [...glob.toLowerCase()];
  return { size: 0, matches: (text) => text.length <= TEXT_LENGTH_MAX && matchesGlob(wanted, [...text.toLowerCase()]) };
}

// Only the last star is ever tried again: at most pattern × text steps.
function matchesGlob(wanted: string[], text: string[]): boolean {
  let at = 0;
  let seen = 0;
  let star = -1;
  let resume = 0;
  while (seen < text.length) {
    if (wanted[at] === "*") {
      star = at;
      resume = seen;
      at += 1;
    } else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === text[seen])) {
      at += 1;
      seen += 1;
    } else if (star !== -1) {
      at = star + 1;
      resume += 1;
      seen = resume;
    } else {
      return false;
    }
  }
  while (wanted[at] === "*") at += 1;
  return at === wanted.length;
}
