// Customers' regular expressions: RE2, linear in the text, with and without regard to case as they are written. What would
// still take long (large repetitions) is refused, and a text is looked at up to 2,048 characters, whose end is then no end
// to the expression.
import { RE2JS, RE2Set } from "re2js";

/** Instructions of the compiled expression; the worst that this allows takes some 50 ms on a text of the full length. */
const PROGRAM_SIZE_MAX = 800;
const TEXT_CHARS_MAX = 2_048;
/**
 * Bytes that an expression may keep of states it has met. A text that leads to ever new ones fills them twice, and is then
 * read without: to build a state takes several times as long as a step without one, and 8 MB of them took 70 ms.
 */
const STATES_BYTES_MAX = 512 * 1024;

export type Expression = { matches(text: string): boolean };
export type CompiledExpression = { kind: "expression"; expression: Expression } | { kind: "problem"; problem: string };

/** Compiles an expression, or says in a sentence fragment what is wrong with it. It matches anywhere in a text. */
export function compileExpression(source: string): CompiledExpression {
  try {
    if (RE2JS.compile(source).programSize() > PROGRAM_SIZE_MAX) {
      return { kind: "problem", problem: "is too large once its repetitions are written out" };
    }
    let whole: RE2Set | null = null;
    let within: RE2Set | null = null;
    const matches = (text: string) => {
      if (text.length <= TEXT_CHARS_MAX) {
        whole ??= setOf(source);
        return whole.match(text).length > 0;
      }
      within ??= compileWithin(source);
      return within.match(text.slice(0, TEXT_CHARS_MAX + 1)).length > 0;
    };
    return { kind: "expression", expression: { matches } };
  } catch (error) {
    const { name, message } = error as Error;
    if (!name.startsWith("RE2JS")) throw error;
    return { kind: "problem", problem: `is not a valid RE2 expression (${message.slice(0, 200)})` };
  }
}

/** A set of one: only a set takes a limit of what it keeps. */
function setOf(source: string): RE2Set {
  const set = new RE2Set(RE2Set.UNANCHORED, 0, STATES_BYTES_MAX);
  set.add(source);
  return set;
}

/** The same followed by one character more: what it finds ends before the text does. */
function compileWithin(source: string): RE2Set {
  const more = "(?s:.)";
  try {
    return setOf(`(?:${source})${more}`);
  } catch {
    // A \Q that is not ended takes the parenthesis for a letter.
    return setOf(`(?:${source}\\E)${more}`);
  }
}
