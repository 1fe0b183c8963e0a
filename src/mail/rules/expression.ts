// Customers' regular expressions: RE2, linear in the text, with and without regard to case as they are written. What would
// still take long (large repetitions) is refused, and a text is looked at up to 2,048 characters.
import { RE2JS } from "re2js";

/** Instructions of the compiled expression; the worst that this allows takes about 45 ms on a text of the full length. */
const PROGRAM_SIZE_MAX = 800;
export const TEXT_CHARS_MAX = 2_048;

export type Expression = { matches(text: string): boolean };
export type CompiledExpression = { kind: "expression"; expression: Expression } | { kind: "problem"; problem: string };

/** Compiles an expression, or says in a sentence fragment what is wrong with it. It matches anywhere in a text. */
export function compileExpression(source: string): CompiledExpression {
  try {
    const compiled = RE2JS.compile(source);
    if (compiled.programSize() > PROGRAM_SIZE_MAX) {
      return { kind: "problem", problem: "is too large once its repetitions are written out" };
    }
    return { kind: "expression", expression: { matches: (text) => compiled.test(text.slice(0, TEXT_CHARS_MAX)) } };
  } catch (error) {
    const { name, message } = error as Error;
    if (!name.startsWith("RE2JS")) throw error;
    return { kind: "problem", problem: `is not a valid RE2 expression (${message.slice(0, 200)})` };
  }
}
