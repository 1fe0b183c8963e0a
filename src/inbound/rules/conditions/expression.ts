// Customers' regular expressions: RE2, linear in the text, with and without regard to case as they are written. What would
// still take long (large repetitions) is refused, and a text is looked at up to 2,048 characters, whose end is then no end
// to the expression.
import { RE2JS } from "re2js";

/** Instructions of the compiled expression; the worst that this allows takes about 45 ms on a text of the full length. */
const PROGRAM_SIZE_MAX = 800;
const TEXT_CHARS_MAX = 2_048;

export type Expression = { matches(text: string): boolean };
type Program = ReturnType<typeof RE2JS.compile>;
export type CompiledExpression = { kind: "expression"; expression: Expression } | { kind: "problem"; problem: string };

/** Compiles an expression, or says in a sentence fragment what is wrong with it. It matches anywhere in a text. */
export function compileExpression(source: string): CompiledExpression {
  try {
    const compiled = RE2JS.compile(source);
    if (compiled.programSize() > PROGRAM_SIZE_MAX) {
      return { kind: "problem", problem: "is too large once its repetitions are written out" };
    }
    let within: Program | null = null;
    const matches = (text: string) => {
      if (text.length <= TEXT_CHARS_MAX) return compiled.test(text);
      within ??= compileWithin(source);
      return within.test(text.slice(0, TEXT_CHARS_MAX + 1));
    };
    return { kind: "expression", expression: { matches } };
  } catch (error) {
    const { name, message } = error as Error;
    if (!name.startsWith("RE2JS")) throw error;
    return { kind: "problem", problem: `is not a valid RE2 expression (${message.slice(0, 200)})` };
  }
}

/** The same followed by one character more: what it finds ends before the text does. */
function compileWithin(source: string): Program {
  const more = "(?s:.)";
  try {
    return RE2JS.compile(`(?:${source})${more}`);
  } catch {
    // A \Q that is not ended takes the parenthesis for a letter.
    return RE2JS.compile(`(?:${source}\\E)${more}`);
  }
}
